"""One repetition of one arm: a fresh process of the command under the recorder, and what was measured of it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psutil
from msgspec.structs import replace as replace_fields

from pipeprof.collect.launch import ProbeOptions, signals_held
from pipeprof.errors import MeasureError, RunError
from pipeprof.experiment.trial import Trial, run_trial
from pipeprof.record.lock import processes_alive
from pipeprof.record.measures import Repetition, merged
from pipeprof.record.note import note
from pipeprof.record.run import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.record.measures import Measures
    from pipeprof.verdict.gate.planned import Look
    from pipeprof.verdict.gate.policy import Policy

# What both arms are recorded with: step times, queue samples, service times, op windows of about 1 % of the time,
# instructions of the first rows.
PROFILE = ProbeOptions(instructions=True)
OPTIONS = {"ops": "window", "queue_interval": 100, "service": True, "memory": True, "schedule": None}


class Clocks:
    """The clocks of an experiment."""

    def now(self) -> float:
        """Monotonic time in seconds."""
        return time.monotonic()

    def clock(self, ahead_s: float) -> str:
        """The time of day in `ahead_s` seconds, `14:03:20`."""
        return time.strftime("%H:%M:%S", time.localtime(time.time() + ahead_s))


class Bench(Clocks):
    """What an experiment needs from the world: clocks, repetitions, measures, verdicts. Tests bring their own."""

    def run(
        self, command: Sequence[str], env: Mapping[str, str], workdir: Path, path: Path, slow_down: float | None = None
    ) -> None:
        """Run a command once and write its run to `path`, what it said to `path`.log.

        Raises WorkloadError with its last words when it fails, KeyboardInterrupt when it was interrupted.
        """
        probe = replace(PROFILE, slow_down=slow_down) if slow_down else PROFILE
        options = OPTIONS | ({"slow_down": slow_down} if slow_down else {})
        trial = Trial(path, command, probe, options, workdir, env)
        failure = run_trial(trial).failure
        if failure:
            raise trial.failed(failure)

    def cpu(self) -> tuple[float, float]:
        """CPU seconds of the whole machine since its start: those it used, and those its hypervisor gave to others."""
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        guest = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # counted as user time, too
        stolen = getattr(times, "steal", 0.0)
        return sum(times) - idle - guest - stolen, stolen

    def measure(self, path: Path) -> Measures:
        """The metrics of a run. Raises RunError when it is gone or damaged, MeasureError without a training step."""
        with signals_held():  # its libraries start threads
            from pipeprof.query.measure import measure  # noqa: PLC0415
            from pipeprof.read.spool.finish import open_run  # noqa: PLC0415

            run = open_run(path)
            if run.manifest.tables.get("step", 0) == 0:
                raise MeasureError(
                    f"no training step was seen in `{path}`",
                    "does the command train with MindSpore? in sink mode pipeprof sees no steps: switch it off",
                )
            measures = measure(run)
            if any(warning.code == "slow_down" for warning in run.manifest.warnings):
                measures.notes.append(note("slowed_down"))
            return measures

    def compare(self, base: Measures, new: Measures, policy: Policy, plan: Sequence[Look]) -> dict[str, Any]:
        """What `pipeprof compare` says about the repetitions so far, judged at the planned looks."""
        with signals_held():
            from pipeprof.experiment.compare import compare_sides  # noqa: PLC0415

            return compare_sides(base, new, policy, plan=plan)

    def still_running(self, path: Path) -> list[int]:
        """Processes of an interrupted repetition that have not ended yet."""
        try:
            return list(processes_alive(load(path)))
        except RunError:
            return []  # it was killed before there was a manifest


def as_side(parts: Iterable[tuple[int, Measures]], job: str, label: str, what: str) -> Measures:
    """Repetitions, each with its place in time, as one side of a comparison. Raises MeasureError when they differ."""
    placed = [
        replace_fields(
            part, reps={rep: Repetition(order=order, job=job) for rep in part.reps}, kind="session", interleaved=True
        )
        for order, part in parts
    ]
    try:
        return merged(placed, label)
    except ValueError as error:
        raise MeasureError(f"{what} cannot be put together: {error}") from error
