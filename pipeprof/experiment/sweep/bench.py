"""One repetition of one variant of a sweep: a fresh process of the command, timed out if need be, and its stages.

Stages of one repetition: from a run of pipeprof's, from a log of load_and_run, or from any text by patterns.

Every function gives stage -> value, in ns, bytes or 1/s. What was not measured is not in it.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import signal
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import psutil

from pipeprof.collect.launch import command_path, not_started, signals_held
from pipeprof.errors import MeasureError, SourceError
from pipeprof.experiment.pairs import steady_rate
from pipeprof.experiment.repetition import Bench, Clocks
from pipeprof.experiment.runs import changed_probe
from pipeprof.experiment.sweep.spec import units_of
from pipeprof.experiment.trial import (
    Trial,
    end_all,
    how_it_failed,
    run_trial,
    time_limit,
    took_longer,
    working_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pipeprof.experiment.sweep.spec import Capture, Context, DatasetChange, Spec
    from pipeprof.read.megengine.load_and_run import Log


HOOK = Path(__file__).parent / "hook"
PREPARING = "-prepare-"  # between a repetition's name and the number of a command that prepares it
POLL_S = 0.02
COUNTED_LATE_KIB = 4096  # of a process, at most: the kernel adds up its pages some at a time


@dataclass(frozen=True)
class Order(Trial):
    """One repetition to be made, with what of the dataset and of MindSpore's context is changed in it."""

    dataset: DatasetChange | None = None
    context: Context | None = None


class SweepBench(Clocks):
    """What a sweep needs from the world: clocks, and measured repetitions. Tests bring their own."""

    def still_running(self, path: Path) -> list[int]:
        """Processes of an interrupted repetition that have not ended yet: of a recorded one, or the command itself."""
        return [*Bench().still_running(path), *_alive(_note_of(path))]

    def prepare(self, order: Order) -> None:
        """Run a preparing command once, unmeasured. Raises as `run` for one that fails or takes too long."""
        status, _, expired = _started(order)
        _check_end(order, status, expired=expired)

    def run(self, order: Order, spec: Spec) -> dict[str, float]:
        """Run the command once; returns stage -> value.

        Raises WorkloadError when it fails or takes too long, UsageError when it cannot be started, MeasureError when a
        stage cannot be read or a change was not applied, KeyboardInterrupt when it was interrupted.
        """
        began = self.now()
        stage_values = _recorded(order) if spec.measure == "run" else _plain(order, spec)
        stage_values = {"total": (self.now() - began) * 1e9} | stage_values
        if spec.judge not in stage_values:
            long = "is the run long enough? it needs 7 steps or more"
            hint = long if spec.measure == "run" else f"its output is in `{order.log}`"
            raise MeasureError(f"`{spec.judge}` was not measured", hint)
        return stage_values


def _recorded(order: Order) -> dict[str, float]:
    """Under the recorder: step times and memory only, as in `whatif`."""
    change = override_of(order.dataset)
    probe = changed_probe(override=change, memory=True)
    env = dict(order.env) | (hook_variables(order.context, order.env) if order.context else {})
    options = {"ops": "off", "queue_interval": 0, "service": False, "memory": True, "override": change}
    ended = run_trial(replace(order, probe=probe, options=options, env=env), processes=True)
    if ended.failure:
        raise order.failed(ended.failure)
    events = {name: [e for p in ended.processes for e in p.all(name)] for name in ("override", "override_missed")}
    with signals_held():
        if change and not events["override"]:
            missed = events["override_missed"]
            why = missed[0]["why"] if missed else "no dataset iterator was made"
            raise MeasureError(f"the change of `{change['op_type']}` was not applied: {why}")
        return _stages_of(order.path)


def _stages_of(path: Path) -> dict[str, float]:
    from pipeprof.query.measure import measure  # noqa: PLC0415 - its libraries start threads
    from pipeprof.read.spool.finish import open_run  # noqa: PLC0415
    from pipeprof.record import store  # noqa: PLC0415

    run = open_run(path)
    if run.manifest.tables.get("step", 0) == 0:
        raise MeasureError(f"no training step was seen in `{path}`", 'for other commands: measure = "regex"')
    steps = store.read(run, "step").to_pylist()
    stages = store.read(run, "stage").to_pylist() if run.manifest.tables.get("stage", 0) else []
    values = {name: by_rep[0] for name, by_rep in measure(run).values.items() if 0 in by_rep}
    stage_values = from_run(steps, stages, values)
    duration = run.manifest.reps[0].dur_ns
    return stage_values | ({"total": float(duration)} if duration is not None else {})


def _plain(order: Order, spec: Spec) -> dict[str, float]:
    """Without the recorder: the stages are in what the command says."""
    status, peak, expired = _started(order)
    memory = {"peak_memory": float(peak)} if peak else {}
    _check_end(order, status, expired=expired)
    if spec.measure == "load_and_run":
        from pipeprof.read.megengine.load_and_run import read_log  # noqa: PLC0415

        try:
            return memory | from_load_and_run(read_log(order.log), order.log)
        except SourceError as error:
            raise MeasureError(error.message, error.hint) from error
    text = order.log.read_text(encoding="utf-8", errors="replace")
    return memory | from_text(text, spec.stages, spec.judge)


def _started(order: Order) -> tuple[int, int, bool]:
    """Exit status, peak of the resident set of the largest process in bytes, and whether it took too long.

    The system's own figure begins with what this process held when it started the other one. Where it is no more than
    that, what was seen while the command ran is taken, which may lack its last moment.
    """
    seen, pause = 0, 0.001
    with working_in(order.workdir, order.env):
        path = command_path(order.command)
        with order.log.open("wb") as log:
            words = [path, *order.command[1:]]
            try:
                child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            except OSError as error:
                raise not_started(order.command, error) from error
        inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + COUNTED_LATE_KIB
        note = _note_of(order.path)
        note.write_text(f"{child.pid} {psutil.Process(child.pid).create_time()}\n", encoding="utf-8")
        with time_limit(order.longest_s) as expired:
            try:
                while True:
                    seen = max(seen, _high_water(child.pid))
                    done, status, usage = os.wait4(child.pid, os.WNOHANG)
                    if done:
                        break
                    time.sleep(pause)
                    pause = min(2 * pause, POLL_S)  # a short command is seen as well
            except BaseException:
                end_all(kill=True)
                child.wait()
                raise
    child.returncode = os.waitstatus_to_exitcode(status)
    note.unlink()
    peak = usage.ru_maxrss if usage.ru_maxrss > inherited else seen
    return child.returncode, peak * 1024, expired.is_set()


def _note_of(path: Path) -> Path:
    """Where the process of a repetition, or of what prepares it, is noted while it runs, if it outlives a kill."""
    return path.with_name(f"{path.name.partition(PREPARING)[0]}.pid")


def _alive(note: Path) -> list[int]:
    """The process of a note, if it is still that one."""
    try:
        pid, began = note.read_text(encoding="utf-8").split()
        process = psutil.Process(int(pid))
        same = process.create_time() == float(began) and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, ValueError, psutil.Error):
        return []
    return [process.pid] if same else []


def _high_water(pid: int) -> int:
    """Most KiB that a process and each of its descendants held so far, of the largest; 0 for one that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    except OSError:
        return 0
    match = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return max([int(match[1]) if match else 0, *(_high_water(int(child)) for child in children)])


def _check_end(order: Order, status: int, *, expired: bool) -> None:
    if expired:
        raise order.failed(took_longer(order.longest_s))
    if status == -signal.SIGINT:
        raise KeyboardInterrupt
    if status:
        raise order.failed(how_it_failed(status, order.log))


def override_of(change: DatasetChange | None) -> dict[str, Any] | None:
    """What the probe is told about a change of a dataset operator."""
    if change is None:
        return None
    kind = change.op if change.op.endswith("Op") else f"{change.op.removesuffix('Dataset')}Op"
    settings = {"workers": change.workers, "prefetch": change.prefetch, "processes": change.processes}
    return {"op_type": kind, "ordinal": change.nth - 1} | settings


def hook_variables(context: Context, env: Mapping[str, str]) -> dict[str, str]:
    """Variables that make every Python of the command set MindSpore's context so (`sweep_hook`)."""
    settings = {name: getattr(context, name) for name in ("mode", "jit_level", "threads")}
    variables = {"PIPEPROF_CONTEXT": json.dumps({name: value for name, value in settings.items() if value is not None})}
    rest = env.get("PYTHONPATH") or os.environ.get("PYTHONPATH")
    variables["PYTHONPATH"] = str(HOOK) + (os.pathsep + rest if rest else "")
    if context.threads is not None and "OMP_NUM_THREADS" not in env:
        variables["OMP_NUM_THREADS"] = str(context.threads)
    return variables


_TAKE: dict[str, Callable[[Sequence[float]], float]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "median": median,
    "mean": fmean,
    "min": min,
    "max": max,
    "sum": sum,
}


def with_derived(values: Mapping[str, float]) -> dict[str, float]:
    """With what follows from the others, where it was not measured itself.

    `setup`: configure and the warm-up steps together, from configure and a first one on; `throughput`: 1 / steady.
    """
    derived = dict(values)
    if "configure" in derived and "warmup_first" in derived and "setup" not in derived:
        derived["setup"] = derived["configure"] + derived["warmup_first"] + derived.get("warmup_second", 0.0)
    if derived.get("steady") and "throughput" not in derived:
        derived["throughput"] = 1e9 / derived["steady"]
    return derived


def from_run(
    steps: Iterable[Mapping[str, Any]], stages: Iterable[Mapping[str, Any]], measured: Mapping[str, float]
) -> dict[str, float]:
    """Stages from the tables `step` and `stage` of a run, and from its metrics (`query.measure`).

    configure: from the launch to the start of the first training step, and the graph compilation inside that step;
    warmup_first: the rest of that step; warmup_second: the second one; steady: mean of the steps after the first
    quarter, for a median hides stalls that come every few steps. Of several ranks, the slowest.
    """
    rows, marks = list(steps), [row for row in stages if row["stage"] == "compile"]
    ranks = sorted({row["rank"] for row in rows})
    stage_values: dict[str, float] = {}
    for rank in ranks:
        mine = [row for row in rows if row["rank"] == rank]
        setup = with_derived(_setup(mine, [row for row in marks if row["rank"] == rank]))
        for name, value in setup.items():
            stage_values[name] = max(stage_values.get(name, value), value)
    if "peak_memory" in measured:
        stage_values["peak_memory"] = measured["peak_memory"]
    rate = steady_rate(rows)
    if rate is not None:
        stage_values["steady"], stage_values["throughput"] = 1e9 / rate.per_second, rate.per_second
    return with_derived(stage_values)


def _setup(steps: Sequence[Mapping[str, Any]], compiled: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    training = sorted((row for row in steps if row["kind"] != "eval"), key=lambda row: int(row["start_ns"]))
    if not training:
        return {}
    start, end = int(training[0]["start_ns"]), int(training[0]["end_ns"])
    inside = sum(_overlap(int(row["start_ns"]), int(row["dur_ns"]), start, end) for row in compiled)
    inside = min(inside, end - start)
    setup = {"configure": float(start + inside), "warmup_first": float(end - start - inside)}
    if len(training) > 1:
        setup["warmup_second"] = float(int(training[1]["end_ns"]) - int(training[1]["start_ns"]))
    return setup


def _overlap(start: int, duration: int, low: int, high: int) -> int:
    return max(0, min(start + duration, high) - max(start, low))


def from_load_and_run(log: Log, path: Path) -> dict[str, float]:
    """Stages of the last test case of a log: configure is its "prepare" line, steady the mean of its iterations.

    With several test cases, set-up is that of the first. Raises MeasureError when the log ends before its last line.
    """
    if not log.complete:
        raise MeasureError(f"the log `{path}` ends before its test case does", "look at its last lines")
    first, last = log.tests[0], log.tests[-1]
    stage_values: dict[str, float] = {}
    if first.configure_ns is not None:
        stage_values["configure"] = float(first.configure_ns)
    for name, value in zip(("warmup_first", "warmup_second"), first.warmup_ns, strict=False):
        stage_values[name] = float(value)
    if last.mean_ns:
        stage_values["steady"] = float(last.mean_ns)
    return with_derived(stage_values)


def from_text(text: str, captures: Mapping[str, Capture], judge: str) -> dict[str, float]:
    """Stages from what a command said. Raises MeasureError when the stage that is judged is not in it, or no number."""
    stage_values: dict[str, float] = {}
    for stage, capture in captures.items():
        values = [_number(match[1], stage) for match in re.finditer(capture.pattern, text, re.MULTILINE)]
        if values:
            stage_values[stage] = _TAKE[capture.take](values) * units_of(stage)[capture.unit]
    if judge not in stage_values and judge in captures:
        raise MeasureError(f"the pattern of `{judge}` matches nothing in what the command said", "see its log")
    return with_derived(stage_values)


def _number(text: str | None, stage: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise MeasureError(
            f"the pattern of `{stage}` found `{text}`, expected a number, 0 or more",
            "let its first group be the number",
        )
    return value
