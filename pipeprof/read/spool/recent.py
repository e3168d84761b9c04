"""The pace of a run that is being recorded, from the newest part of its spool alone. Nothing is changed."""

from __future__ import annotations

import contextlib
import copy
import statistics
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.read.spool import lines as records
from pipeprof.read.spool.convert import convert_rep
from pipeprof.read.spool.lines import SpoolNotes
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.pipelines import pipeline_keys
from pipeprof.read.spool.process import Process, events_of, newest_marks
from pipeprof.read.spool.steps import find_steps
from pipeprof.record.document import BAD_JSON
from pipeprof.record.note import note
from pipeprof.record.plain_file import file_end
from pipeprof.record.run import SPOOL, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeprof.read.spool.step_rows import Step


@contextlib.contextmanager
def snapshot(run: Run) -> Iterator[Run]:
    """The newest repetition's tables up to now; the run is only read. Raises RunError when they cannot be made."""
    with tempfile.TemporaryDirectory(prefix="pipeprof-") as folder:
        copied = Run(Path(folder), copy.deepcopy(run.manifest))
        (copied.path / SPOOL).symlink_to(run.spool.resolve(), target_is_directory=True)
        if reps := run.spooled_reps():
            result = convert_rep(copied, reps[-1])
            copied.manifest.tables = dict(result.rows)
        copied.manifest.decide("partial", note("being_recorded"))
        yield copied


MOST_MARKS = 4000  # a step has 2 to 5
RECENT_NS = 10_000_000_000
_SAMPLES_BYTES = 1 << 18  # a sample of a job with 100 threads has 8 kB
_BEGINS = {Kind.TRAIN_STEP: Kind.TRAIN_BEGIN, Kind.EVAL_STEP: Kind.EVAL_BEGIN}


@dataclass(frozen=True)
class Pace:
    """Training steps of the last 10 seconds, or of the newest marks where those are fewer; times in ns.

    `done` of `planned` steps of the `Model.train` that runs; both None where its length is not known.
    """

    steps: int
    over_ns: int
    median_ns: int
    wait_share: float | None
    done: int | None = None
    planned: int | None = None

    @property
    def per_second(self) -> float:
        """Steps per second, what lies between them included."""
        return self.steps / self.over_ns * 1e9

    @property
    def left_ns(self) -> int | None:
        """What the rest of the plan takes at this pace."""
        if self.done is None or self.planned is None:
            return None
        return round(max(0, self.planned - self.done) / self.per_second * 1e9)


@dataclass(frozen=True)
class Usage:
    """The machine and the job's processes between the two newest samples. `cores`: of the machine."""

    idle_share: float
    job_cores: float
    rss_bytes: int
    processes: int


def pace(folder: Path) -> Pace | None:
    """Of the process in a spool's folder; None while fewer than two training steps were recorded."""
    marks = newest_marks(folder, MOST_MARKS)
    notes = SpoolNotes()
    process = Process(folder, {}, marks, events_of(folder, notes))
    hidden = [number for number, event in process.by_number("iterator").items() if event.get("hidden")]
    steps = find_steps(_with_begin(marks), hidden, pipeline_keys(process)).steps
    recent = _pace([step for step in steps if step.kind in ("train", "warmup")][1:])
    return None if recent is None else replace(recent, **_progress(process, marks))


def _progress(process: Process, marks: Sequence[Mark]) -> dict[str, int]:
    """`done` and `planned` of the last `Model.train`, while it lasts."""
    plan = max(process.all("plan"), key=lambda event: event["t"], default=None)
    if plan is None:
        return {}
    own = [mark for mark in marks if mark.begin >= plan["t"]]
    done = max((mark.number for mark in own if mark.kind == Kind.TRAIN_STEP), default=None)
    if done is None or any(mark.kind == Kind.TRAIN_END for mark in own):
        return {}
    return {"done": done, "planned": plan["epochs"] * plan["batches"]}


def _with_begin(marks: Sequence[Mark]) -> list[Mark]:
    """The marks, behind the begin of the `Model.train` that they are from where it is no longer among them."""
    first = next((mark for mark in marks if mark.kind in (*_BEGINS, *_BEGINS.values())), None)
    if first is None or first.kind not in _BEGINS:
        return list(marks)
    return [Mark(_BEGINS[first.kind], 0, 0, 0, marks[0].begin, marks[0].begin), *marks]


def _pace(steps: Sequence[Step]) -> Pace | None:
    recent = [step for step in steps if step.end >= steps[-1].end - RECENT_NS]
    if not recent or recent[-1].end <= recent[0].start:
        return None
    waits = [step.input_ns for step in recent if step.input_ns is not None]
    spent = sum(step.end - step.start for step in recent)
    return Pace(
        steps=len(recent),
        over_ns=recent[-1].end - recent[0].start,
        median_ns=round(statistics.median(step.end - step.start for step in recent)),
        wait_share=sum(waits) / spent if waits and spent else None,
    )


def usage(spool: Path) -> Usage | None:
    """Of a repetition's spool; None before its second sample."""
    samples = _newest_samples(spool / "host.jsonl")
    if len(samples) < 2:
        return None
    before, last = samples[-2:]
    times = {name: last[name] - before[name] for name in ("user", "sys", "idle", "steal")}
    seconds, total = (last["t"] - before["t"]) / 1e9, sum(times.values())
    if seconds <= 0 or total <= 0:
        return None
    earlier = {process["pid"]: process for process in before["procs"]}
    used = [
        process[name] - earlier[process["pid"]][name]
        for process in last["procs"]
        if process["pid"] in earlier
        for name in ("user", "sys")
    ]
    return Usage(
        idle_share=times["idle"] / total, job_cores=sum(max(0.0, one) for one in used) / seconds,
        rss_bytes=sum(process["rss"] for process in last["procs"]), processes=len(last["procs"]),
    )  # fmt: skip


def _newest_samples(path: Path) -> list[dict[str, Any]]:
    """Whole samples at the end of the file; a damaged one is left out."""
    try:
        data, begin = file_end(path, _SAMPLES_BYTES, inside=path.parent)
    except OSError:
        return []
    *lines, _ = data.split(b"\n")
    samples = []
    for line in lines[1:] if begin else lines:
        with contextlib.suppress(*BAD_JSON):
            samples.append(records.sample(line))
    return samples
