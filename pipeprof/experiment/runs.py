"""Unprofiled runs of a command: only step times are recorded, each run in a folder of its own."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipeprof import escape
from pipeprof.collect.launch import ProbeOptions, signals_held
from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment.pairs import (
    LEAST_STEPS,
    Rate,
    Side,
    plan_line,
    rates_of_parts,
    sides,
    standing_line,
    starts_of,
    steady_rate,
)
from pipeprof.experiment.trial import Trial, run_trial
from pipeprof.record.plain_file import replacing
from pipeprof.record.text import printable_all
from pipeprof.units import format_bytes
from pipeprof.verdict.speedup import answer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.experiment.pairs import Plan, Stopped
    from pipeprof.read.spool.process import Process
    from pipeprof.verdict.speedup import Answer, Band

LIGHT = ProbeOptions(queue_interval_ms=0, ops="off", service=False, memory=False)
HOST_INTERVAL_S = 5.0
TOO_FEW_LATER = "too few steps after the first epoch, which fills the cache: each run has to train for more epochs"


@dataclass(frozen=True)
class Measured:
    """One run: which side of which pair, its folder, its rate, what its processes recorded, the rates of its parts.

    `later_rate`: of the steps from the second epoch on; None where there are too few.
    """

    side: Side
    pair: int
    path: Path
    rate: Rate
    training_steps: int
    processes: Sequence[Process]
    part_rates: Sequence[float] = ()
    later_rate: Rate | None = None

    @property
    def name(self) -> str:
        """Side and pair, such as `b1`; the run's folder has it too."""
        return f"{self.side}{self.pair}"

    def events(self, name: str) -> list[Mapping[str, Any]]:
        """Events of one name from all its processes, those of the lowest rank first: which began first is chance."""
        ranked = sorted(self.processes, key=lambda process: process.about.get("rank") or 0)
        return [event for process in ranked for event in process.all(name)]

    def of_later_epochs(self) -> Measured:
        """Copy with the rate from the second epoch on. Raises MeasureError where too few steps follow the first."""
        if self.later_rate is None:
            raise MeasureError(f"run `{self.path}` has {TOO_FEW_LATER}")
        return replace(self, rate=self.later_rate, part_rates=[])

    def without_marks(self) -> Measured:
        """Copy without the intervals of its processes, which take memory for each step."""
        from pipeprof.read.spool.marks import Marks  # noqa: PLC0415

        return replace(self, processes=[replace(process, marks=Marks.of([])) for process in self.processes])


@dataclass(frozen=True)
class Series:
    """The runs in the order in which they were made, what their pairs say, and why there were no more."""

    runs: Sequence[Measured]
    answer: Answer
    stopped: Stopped

    def rates(self, side: Side) -> list[float]:
        """Steps per second of the runs of a side, in the order of the pairs."""
        return rates_of(self.runs, side)


def measure_pairs(
    folder: Path,
    command: Sequence[str],
    sought: tuple[Plan, Band],
    probe_of: Callable[[Side, Sequence[Measured]], ProbeOptions],
    check: Callable[[Sequence[Measured]], None],
    say: Callable[[str], None],
) -> Series:
    """Run both sides in turn, a b b a ..., until the plan ends or their speed-up is known to be in or outside the band.

    `probe_of` gives the options of a side and sees the runs so far, the marks only of the first pair's. `check` sees
    the runs of each pair before the next one begins, and raises when they are not what they should be. Raises
    WorkloadError when the command fails, MeasureError when a run has too few steps, KeyboardInterrupt when it was
    interrupted.
    """
    plan, band = sought
    say(plan_line(plan))
    done: list[Measured] = []
    began, pairs = time.monotonic(), 0
    while True:
        for side in sides(pairs):
            say(f"pair {pairs + 1}, {'unchanged' if side == 'a' else 'changed'}")
            run = run_once(folder, command, side, pairs, replace(probe_of(side, done), stop_after=plan.steps))
            run = run.of_later_epochs() if plan.later else run
            say(f"  {run.rate.per_second:.2f} steps/s over {run.rate.steps} steps")
            done.append(run if pairs == 0 else run.without_marks())
        check(done[-2:])
        pairs, spent_s = pairs + 1, time.monotonic() - began
        ratios = [changed / plain for plain, changed in zip(rates_of(done, "a"), rates_of(done, "b"), strict=True)]
        answer = answer_of(ratios, band)
        stopped = plan.stop(pairs, spent_s, decided=answer.decided is not None)
        if stopped is not None:
            return Series(done, answer, stopped)
        say(standing_line(ratios, spent_s, plan))


def rates_of(runs: Sequence[Measured], side: Side) -> list[float]:
    """Steps per second of the runs of a side, in the order of the pairs."""
    mine = sorted((run for run in runs if run.side == side), key=lambda run: run.pair)
    return [run.rate.per_second for run in mine]


def run_once(
    folder: Path, command: Sequence[str], side: Side, pair: int, probe: ProbeOptions,
    host_interval_s: float = HOST_INTERVAL_S, longest_s: float | None = None,
) -> Measured:  # fmt: skip
    """Run the command once, recording as little as step times need. `longest_s`: after which it is ended."""
    path = folder / f"{side}{pair}"
    recording = {"ops": "off", "queue_interval": 0, "service": False, "memory": False, "override": probe.override}
    trial = Trial(path, command, probe, recording | {"cached": probe.cached}, host_interval_s=host_interval_s,
                  longest_s=longest_s)  # fmt: skip
    ended = run_trial(trial, processes=True)
    if ended.failure:
        broken = next((event for process in ended.processes for event in process.all("stand_in_failed")), None)
        if broken is not None:
            raise MeasureError(
                f"the operator could not be replaced in run `{path}`: {broken['why']}",
                f"its output is in `{trial.log}`",
            )
        raise trial.failed(f"the command failed in run `{path}`: {ended.failure}")
    with signals_held():
        from pipeprof.record import store  # noqa: PLC0415 - its libraries start threads

        rows = store.read(ended.run, "step").to_pylist()
        starts = starts_of(store.read(ended.run, "pipeline").to_pylist())
    rate = steady_rate(rows, starts)
    if rate is None:
        train = sum(row["kind"] == "train" for row in rows)
        raise MeasureError(
            f"run `{path}` has {train} training steps, too few for a rate (at least {LEAST_STEPS} after the first "
            "quarter are needed)",
            "let the script train longer; in sink mode pipeprof sees no steps: switch it off",
        )
    trained = sum(row["kind"] != "eval" for row in rows)
    later = steady_rate((row for row in rows if row["epoch"]), starts)
    return Measured(side, pair, path, rate, trained, ended.processes, rates_of_parts(rows), later)


def kept_nothing(run: Measured) -> str | None:
    """Why the cache of a run kept no rows; None where it had none, or kept some."""
    for event in run.events("cache_stale"):
        changed = f"`{event['value']}`, of what makes the rows, is not the same in every epoch"
        return f"{changed}, so none were kept in run `{run.path}`"
    for event in run.events("cache_full"):
        limit = format_bytes(event["limit"])
        return f"the rows take more than {limit}, or hold dicts, so none were kept in run `{run.path}`"
    return None


def changed_probe(**options: Any) -> ProbeOptions:
    """Options of an unprofiled run with something changed."""
    return replace(LIGHT, **options)


def make_folder(folder: Path) -> None:
    """A new folder for the runs of an experiment. Raises UsageError when there is one already."""
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"`{folder}` exists", "give a new name with -o")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write `{folder}`: {error.strerror}", "choose another folder with -o") from error


def json_text(content: Mapping[str, Any]) -> str:
    """The result for programs; what is not UTF-8 with escapes, or no JSON reader would take it."""
    return escape.json(json.dumps(printable_all(content), indent=2)) + "\n"


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file whole: to a temporary name, then renamed. Raises MeasureError when it cannot be written."""
    try:
        with replacing(path) as temporary:
            temporary.write_text(json_text(content), encoding="utf-8")
    except OSError as error:
        raise MeasureError(f"cannot write `{path}`: {error.strerror}", "free some space; the runs are kept") from error
