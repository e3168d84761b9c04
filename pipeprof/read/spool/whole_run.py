"""Divides the whole run of a rank into parts that add up to its wall time exactly.

Where parts overlap, the one that comes first in `ORDER` has the time; below all of them is what lies between the steps.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.operators import recorder_at_work
from pipeprof.read.spool.step_rows import EVAL, KINDS, StepRows
from pipeprof.read.spool.steps import EVALUATION, Steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipeprof.read.spool.process import Process
    from pipeprof.read.tables.rows import RankRows

CALLBACK = 0  # flag of Kind.PART; 1: a checkpoint
QUEUED = 64  # batches: more than the queues of a pipeline hold by MindSpore's default
REST_OF_EPOCH = "rest_of_epoch"  # the pipeline works off what the loop does not take
WRITES = "Checkpoint"  # in the name of a callback's class: it writes checkpoints
ORDER = {
    "recompile": 8, "compile_eval": 8, "compile": 8, "checkpoint": 7, "evaluation": 6, "callback": 5, "profiling": 5,
    "dataset_build": 4, "import": 4, "look": 4, "epoch_gap": 3, "first_steps": 2, "training": 2,
}  # fmt: skip


Key = tuple[str, str, str, str]  # part, detail, cause, site


class Stretch(NamedTuple):
    """One stretch of time that a part asks for; `times`: how often the part happens in it. ns, monotonic clock."""

    begin: int
    end: int
    part: str
    detail: str | None = None
    cause: str | None = None
    times: int = 1
    site: str | None = None


def add_whole_run(members: Sequence[tuple[Process, Steps]], out: RankRows, end: int) -> None:
    """Add the rank's rows of `run_part`, from the repetition's zero to `end`; `members`: its processes in order."""
    members = sorted(members, key=lambda member: int(member[0].about["started"]))
    for key, (count, first, length) in sorted(divide(_stretches(members, out.zero, end), out.zero, end).items()):
        part, detail, cause, site = key
        out.add(
            "run_part", part=part, detail=detail or None, cause=cause or None, site=site or None, count=count,
            start_ns=out.at(first), dur_ns=length,
        )  # fmt: skip


def divide(stretches: Sequence[Stretch], begin: int, end: int) -> dict[Key, tuple[int, int, int]]:
    """Count, first start and length of each (part, detail, cause, site); what no stretch covers is not_recorded."""
    clipped = [one._replace(begin=max(begin, one.begin), end=min(end, one.end)) for one in stretches]
    bounded = [one for one in clipped if one.begin < one.end]
    edges = [(one.begin, 1, number) for number, one in enumerate(bounded)]
    edges += [(one.end, 0, number) for number, one in enumerate(bounded)]
    edges.sort()
    active: dict[int, dict[int, None]] = {level: {} for level in sorted({*ORDER.values(), 0}, reverse=True)}
    lengths: dict[Key, int] = defaultdict(int)
    starts: dict[Key, int] = {}
    seen: set[int] = set()  # stretches that have some time
    before = begin
    for time, opens, number in [*edges, (end, 0, -1)]:
        if time > before:
            holder = next((level for level in active.values() if level), None)
            last = next(reversed(holder)) if holder else None
            key = ("not_recorded", "", "", "") if last is None else _key(bounded[last])
            seen |= set() if last is None else {last}
            lengths[key] += time - before
            starts.setdefault(key, before)
            before = time
        if number >= 0:
            level = active[ORDER.get(bounded[number].part, 0)]
            if opens:
                level[number] = None
            else:
                level.pop(number, None)
    counts: dict[Key, int] = defaultdict(int)
    for index in seen:
        counts[_key(bounded[index])] += bounded[index].times
    return {key: (counts.get(key, 1), starts[key], length) for key, length in lengths.items()}


def _key(one: Stretch) -> Key:
    return one.part, one.detail or "", one.cause or "", one.site or ""


def _stretches(members: Sequence[tuple[Process, Steps]], zero: int, end: int) -> list[Stretch]:
    stretches: list[Stretch] = []
    free = zero  # until here no process of the rank ran
    for process, recognised in members:
        steps = recognised.steps
        started = int(process.about["started"])
        if started > free:
            stretches.append(Stretch(free, started, "start"))
        followers = [int(other.about["started"]) for other, _ in members if int(other.about["started"]) > started]
        last = min([end, *followers])
        free = last if process.ended_normally else min(last, process.last_ns)
        stretches += _between(process.all("calls"), steps, started, free)
        stretches += _starts_of_workers(process, steps)
        evaluations = _evaluations(process)
        of_steps = list(_of_steps(steps))
        if evaluations:  # the steps of one that was recorded as a whole are no evaluation of their own
            of_steps = [_of_evaluation(one, evaluations) if one.part == "evaluation" else one for one in of_steps]
        stretches += of_steps
        stretches += (Stretch(mark.begin, mark.end, "look") for mark in recognised.looks)
        stretches += _of_process(process, steps, evaluations)
    return stretches


def _of_evaluation(steps: Stretch, evaluations: Sequence[Stretch]) -> Stretch:
    """Steps as a part of the evaluation that they lie in, which is counted; `evaluations` in order."""
    at = bisect_right(evaluations, steps.begin, key=lambda one: one.begin) - 1
    inside = at >= 0 and steps.begin < evaluations[at].end
    return steps._replace(times=0, site=evaluations[at].site if inside else None)


def _between(calls: Iterable[Mapping[str, Any]], steps: StepRows, started: int, last: int) -> Iterator[Stretch]:
    """What lies before, between and after the steps."""
    if not len(steps):
        yield Stretch(started, last, "set_up")
        return
    training = np.flatnonzero(steps.kind != EVAL)
    training = training if len(training) else np.arange(len(steps))
    start, end, epoch = steps.start[training], steps.end[training], steps.epoch[training]
    yield Stretch(started, int(start[0]), "set_up")
    for gap in np.flatnonzero(start[1:] > end[:-1]).tolist():
        part = "between_steps" if epoch[gap] == epoch[gap + 1] else "epoch_gap"
        yield Stretch(int(end[gap]), int(start[gap + 1]), part)
    until = min(last, _worked_off(calls, steps, int(training[-1])))
    yield Stretch(int(end[-1]), until, "ending", cause=REST_OF_EPOCH)
    yield Stretch(until, last, "ending")


def _starts_of_workers(process: Process, steps: StepRows) -> Iterator[Stretch]:
    """What the first batch of an epoch is waited for while the workers of its loader start anew.

    Of the first wait, what the longest of the others does not take: so long a batch takes to be made.
    """
    anew = {number for number, event in process.by_number("iterator").items() if _starts_anew(event)}
    waits: dict[int, list[Mark]] = defaultdict(list)
    for index in np.flatnonzero(steps.kind != EVAL).tolist() if anew else ():
        for fetch in steps[index].fetches:
            if fetch.subject in anew:
                waits[fetch.subject].append(fetch)
    for first, *others in waits.values():
        usual = max((fetch.end - fetch.begin for fetch in others), default=first.end - first.begin)
        yield Stretch(first.begin, max(first.begin, first.end - usual), "epoch_gap", times=0)


def _starts_anew(iterator: Mapping[str, Any]) -> bool:
    """Whether an iterator of a later epoch starts workers of its own."""
    settings = iterator.get("settings") or {}
    return bool(iterator.get("iteration") and settings.get("num_workers") and not settings.get("persistent_workers"))


def _worked_off(calls: Iterable[Mapping[str, Any]], steps: StepRows, index: int) -> int:
    """Until when the pipeline of the last step made rows for no batch; the step's end if it only filled queues."""
    step = steps[index]
    own = {fetch.subject for fetch in step.fetches}
    parts: dict[tuple[int, int, int], list[Mapping[str, Any]]] = defaultdict(list)
    for event in calls:
        if event["pipeline"] in own:
            parts[event["pipeline"], event["node"], event.get("part") or 0].append(event)
    until = step.end
    for events in parts.values():
        late = [one for one in events if int(one["t"]) > step.end and not one["batches"] and one["calls"]]
        batches = sum(one["batches"] for one in events)
        of_batches = sum(one["calls"] for one in events if one["batches"])
        if batches and sum(one["calls"] for one in late) > QUEUED * of_batches / batches:
            until = max(until, *(int(one["t"]) for one in late))
    return until


def _of_steps(steps: StepRows) -> Iterator[Stretch]:
    """The steps; those that follow each other without a gap are one stretch, and one evaluation of one iterator."""
    parts = {"warmup": "first_steps", "train": "training", "eval": "evaluation"}
    if not len(steps):
        return
    iterator = steps.first_subject
    begins = np.append(True, (steps.kind[1:] != steps.kind[:-1]) | (steps.start[1:] != steps.end[:-1]))
    counts = begins | (steps.kind != EVAL) | np.append(True, iterator[1:] != iterator[:-1])
    first = np.flatnonzero(begins)
    times = np.add.reduceat(counts.astype(np.int64), first)
    last = np.append(first[1:], len(steps)) - 1
    for at, until, count in zip(first.tolist(), last.tolist(), times.tolist(), strict=True):
        yield Stretch(int(steps.start[at]), int(steps.end[until]), parts[KINDS[steps.kind[at]]], times=count)


def _of_process(process: Process, steps: StepRows, evaluations: Sequence[Stretch]) -> Iterator[Stretch]:
    """What the process did besides its steps."""
    yield from (Stretch(begin, end, "import") for begin, end in process.import_times())
    for event in process.all("iterator"):
        if not event.get("again"):
            yield Stretch(int(event["begin"]), int(event["end"]), "dataset_build")
    yield from (Stretch(begin, end, "profiling") for begin, end in recorder_at_work(process))
    yield from evaluations
    yield from _callbacks(process)
    of_eval = steps.kind == EVAL
    of_steps = list(zip(steps.start[of_eval].tolist(), steps.end[of_eval].tolist(), strict=True))
    yield from _compiled(process, steps, [*((one.begin, one.end) for one in evaluations), *of_steps])


def timed_parts(process: Process) -> list[Stretch]:
    """The checkpoints and evaluations of a process, whatever they call."""
    return [one for one in _callbacks(process) if one.part == "checkpoint"] + _evaluations(process)


def _callbacks(process: Process) -> Iterator[Stretch]:
    """Callbacks and checkpoints; what a callback does around one is of the only line that writes them."""
    classes, sites = process.by_number("callback"), _sites(process)
    marks = [mark for mark in process.marks.only(Kind.PART) if mark.flag != EVALUATION]
    writing = {sites.get(mark.subject) for mark in marks if mark.flag != CALLBACK}
    site = writing.pop() if len(writing) == 1 else None
    for mark in marks:
        if mark.flag != CALLBACK:
            yield Stretch(mark.begin, mark.end, "checkpoint", site=sites.get(mark.subject))
            continue
        kind = classes.get(mark.subject, {})
        if WRITES in kind.get("label", ""):  # what it does around a checkpoint, such as writing the graph, is no other
            yield Stretch(mark.begin, mark.end, "checkpoint", times=0, site=site)
        else:
            yield Stretch(mark.begin, mark.end, "callback", kind.get("label"), site=kind.get("site"))


def _sites(process: Process) -> dict[int, str]:
    """Lines that write checkpoints or evaluate, by the number that marks have."""
    return {int(one["number"]): one["site"] for one in process.all("part_site")}


def _evaluations(process: Process) -> list[Stretch]:
    """The evaluations of Model; of older recordings from their first callback to their last."""
    sites = _sites(process)
    recorded = [mark for mark in process.marks.only(Kind.PART) if mark.flag == EVALUATION]
    if recorded:
        found = [Stretch(mark.begin, mark.end, "evaluation", site=sites.get(mark.subject)) for mark in recorded]
        return sorted(found, key=lambda one: one.begin)
    begins, ends = process.marks.only(Kind.EVAL_BEGIN).begin.tolist(), process.marks.only(Kind.EVAL_END).end.tolist()
    return [Stretch(begin, end, "evaluation") for begin, end in zip(begins, ends, strict=False) if begin < end]


def _compiled(process: Process, steps: StepRows, evaluations: Sequence[tuple[int, int]]) -> Iterator[Stretch]:
    """Each graph that was compiled: the first of its network, or again and why."""
    events = process.all("compiled")
    named = {(int(event["begin"]), int(event["end"])) for event in events}
    for mark in process.marks.only(Kind.COMPILE):  # recorded before compilations were named
        if (mark.begin, mark.end) not in named:
            yield Stretch(mark.begin, mark.end, _role(mark.begin, evaluations))
    training = np.flatnonzero(steps.kind != EVAL)
    first = int(steps.end[training[0]]) if len(training) else None
    before: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for event in sorted(events, key=lambda event: int(event["begin"])):
        cause = why_again(event, before[event["label"]], first)
        before[event["label"]].append(event)
        part = "recompile" if cause else _role(int(event["begin"]), evaluations)
        yield Stretch(int(event["begin"]), int(event["end"]), part, event["label"], cause)


def _role(at: int, evaluations: Sequence[tuple[int, int]]) -> str:
    return "compile_eval" if any(begin <= at < end for begin, end in evaluations) else "compile"


def why_again(event: Mapping[str, Any], before: Sequence[Mapping[str, Any]], first_step: int | None) -> str | None:
    """Why a network is compiled once more; None when it is not. `before`: compilations of that name before.

    The same name is another network while the first step has not ended (`first_step`), or for other shapes.
    """
    own = [other for other in before if other["owner"] == event["owner"]]
    if not own:
        late = first_step is not None and int(event["begin"]) >= first_step
        return "new_object" if late and any(other["shapes"] == event["shapes"] for other in before) else None
    if any(other["shapes"] == event["shapes"] for other in own):
        return "again"
    return "short_batch" if any(_shorter(event["shapes"], other["shapes"]) for other in own) else "changed_shapes"


def _shorter(new: Sequence[Sequence[int]], old: Sequence[Sequence[int]]) -> bool:
    """Whether inputs differ in their first size alone, and have less of it."""
    pairs = [(one, other) for one, other in zip(new, old, strict=False) if one != other]
    return (
        len(new) == len(old)
        and bool(pairs)
        and all(len(one) == len(other) and one[1:] == other[1:] and one[0] < other[0] for one, other in pairs)
    )
