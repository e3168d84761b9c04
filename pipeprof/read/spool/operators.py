"""Op windows to operator executions: which step each ran in, its phase, and the steps' FP and BP points.

While a window is open, everything launched in a step has finished before the step is over, so an execution belongs to
the step in which it started.
"""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeprof.errors import SourceError
from pipeprof.read.mindspore_ops import Execution, PoolSample, graph_collective, op_type, read_folder
from pipeprof.read.spool.marks import Mark, Marks
from pipeprof.read.spool.process import LATEST, Process
from pipeprof.read.spool.sections import Structure, last_update
from pipeprof.read.spool.step_rows import EVAL, Step, StepRows
from pipeprof.read.spool.torch_window import read_windows

UPDATES = frozenset({
    "Adam", "AdamWeightDecay", "AdamNoUpdateParam", "AdamW", "FusedAdam", "FusedAdamWeightDecay", "FusedSparseAdam",
    "FusedSparseFtrl", "FusedSparseLazyAdam", "Lamb", "LambApplyOptimizerAssign", "LambApplyWeightAssign", "LARSUpdate",
    "Momentum", "SGD",
})  # fmt: skip
SEED = "Ones"


@dataclass(frozen=True)
class Placed:
    """An execution, the index of its step (None: between steps), its phase and its name within the rank."""

    execution: Execution
    step: int | None
    phase: str
    name: str


@dataclass
class Recorded:
    """Everything the op recorder left of one process, times in ns of the monotonic clock."""

    executions: list[Execution]
    pool: list[PoolSample]
    windows: list[tuple[int, int]]
    notes: list[str]
    led: list[Execution] = field(default_factory=list)  # of warm-up steps of windows, which count for nothing


class PointNotFoundError(SourceError):
    """A forward-start or backward-end point names no operator that was recorded."""


def recorder_at_work(process: Process) -> list[tuple[int, int]]:
    """When op windows were opened, and closed, which writes what they hold: between steps, in the training's thread."""
    opened = [(int(event["begin"]), int(event.get("began", event["begin"]))) for event in process.all("window_open")]
    closed = [(int(event.get("closing", event["end"])), int(event["end"])) for event in process.all("window")]
    return sorted(opened + closed)


def load_windows(process: Process) -> Recorded:
    """Executions of all complete windows without their warm-up steps, and of the script's own profile."""
    recorded = Recorded([], [], [], [])
    opened = process.by_number("window_open")
    closed = process.by_number("window")
    for number, event in opened.items():
        if number not in closed:
            recorded.windows.append((int(event["begin"]), process.last_ns))
    for number, event in closed.items():
        begun = opened.get(number, {})
        ticks, lead = event["ticks"], int(event.get("warmup", begun.get("warmup", 0)))
        recorded.windows.append((int(event["begin"]), int(event["end"])))
        skip_until = ticks[min(lead, len(ticks) - 1)]
        since = (skip_until, skip_until if begun.get("memory", True) else LATEST)
        problem = _load(process.folder / f"window-{number}", event, since, recorded)
        if problem:
            process.notes.damaged(problem)
    ends = [int(event["t"]) for event in process.all("user_profile_end")]
    seen: set[str] = set()
    for event in process.all("user_profile"):
        begin = int(event["t"])
        recorded.windows.append((begin, min((end for end in ends if end >= begin), default=process.last_ns)))
        folder = event.get("folder")
        if folder and folder not in seen:
            seen.add(folder)
            problem = _load(Path(folder), event, (0, begin), recorded)
            recorded.notes += [problem] if problem else []
            if not recorded.executions:
                recorded.notes.append(f"the script's own profile in `{folder}` has no operator executions to import")
    recorded.executions.sort(key=lambda execution: execution.start_ns)
    return recorded


def _load(folder: Path, event: dict[str, Any], skip_until: tuple[int, int], recorded: Recorded) -> str:
    """Add executions and pool samples, each from a time on; what is wrong with the files, if anything is.

    MindSpore writes all samples that it ever took in the process into the file of each window.
    """
    offset = int(event["monotonic"]) - int(event["realtime"])
    try:
        executions, pool = read_folder(folder, skip_until[1] - offset)
        of_torch = read_windows(folder, offset)
    except SourceError as error:
        return str(error)
    for execution in executions:
        start = execution.start_ns + offset
        destination = recorded.executions if start >= skip_until[0] else recorded.led
        destination.append(Execution(execution.name, start, execution.dur_ns, execution.type, execution.shapes))
    recorded.executions += (one for one in of_torch if one.start_ns >= skip_until[0])
    recorded.led += (one for one in of_torch if one.start_ns < skip_until[0])
    samples = (replace(sample, t_ns=sample.t_ns + offset) for sample in pool)
    recorded.pool.extend(sample for sample in samples if sample.t_ns >= skip_until[1])
    return ""


def place(
    executions: Sequence[Execution],
    steps: Iterable[Step],
    structures: Mapping[int, Structure] | None = None,
    updates: Iterable[Mark] = (),
) -> list[Placed]:
    """Give each execution its step and phase. `steps` must be in order of start; evaluation may lie inside training.

    `structures`: by index, of the steps whose sections are known; `updates`: marks of updates, which ended what they
    launched.
    """
    structures, steps, updates = structures or {}, StepRows.of(steps), Marks.of(updates)
    updates = updates[np.argsort(updates.begin, kind="stable")]
    step_at = _StepAt(steps)
    by_step: dict[int | None, list[Execution]] = defaultdict(list)
    for execution in executions:
        by_step[step_at(execution.start_ns)].append(execution)
    placed: list[Placed] = []
    for index, members in by_step.items():
        step = steps[index] if index is not None else None
        if index is not None and index in structures:
            at = structures[index].at  # of the section in which an execution started, but for what is certain
            phases = [_certain_phase(one) or at(one.start_ns) for one in members]
        else:
            phases = _phases(members, step, None if step is None else last_update(step, updates))
        names = _instance_names(members, is_step=index is not None)
        placed.extend(
            Placed(execution, index, phase, name) for execution, phase, name in zip(members, phases, names, strict=True)
        )
    return sorted(placed, key=lambda item: item.execution.start_ns)


def _certain_phase(execution: Execution) -> str | None:
    """That of communication, and what PyTorch tells."""
    is_collective = execution.phase is None and graph_collective(op_type(execution.name))
    return "communication" if is_collective else execution.phase


class _StepAt:
    """The innermost step that holds a time: the latest one that began before it and has not ended."""

    def __init__(self, steps: StepRows) -> None:
        self._starts, self._ends, self._kinds = steps.start.data, steps.end.data, steps.kind.data

    def __call__(self, time_ns: int) -> int | None:
        index = bisect_right(self._starts, time_ns) - 1
        for candidate in range(index, max(-1, index - 4096), -1):
            if self._ends[candidate] > time_ns:
                return candidate
            if self._kinds[candidate] != EVAL:
                return None
        return None


def _phases(members: Sequence[Execution], step: Step | None, updated: int | None) -> list[str]:
    """Phase of each execution of one step whose sections are not known. Graph mode: by scope.

    There, what PyNative launched behind the last update (which was over at `updated`) is `after`.
    """
    fixed = [execution.phase or _fixed_phase(execution) for execution in members]
    if step is not None and step.kind == "eval":
        return [phase or "forward" for phase in fixed]
    if any(execution.name.startswith("Gradients/") for execution in members):
        return [
            "after" if _is_behind(execution, updated) and phase != "communication" else phase or "forward"
            for execution, phase in zip(members, fixed, strict=True)
        ]
    return _phases_by_types(members, fixed, [fetch.end for fetch in step.fetches] if step is not None else [])


def _is_behind(execution: Execution, updated: int | None) -> bool:
    return updated is not None and execution.start_ns >= updated and "/" not in execution.name


def _phases_by_types(
    members: Sequence[Execution], fixed: Sequence[str | None], micro_steps: Sequence[int]
) -> list[str]:
    """PyNative, by the types of operators: forward, backward from the gradient seed on, optimizer, after.

    What follows the first collective is arithmetic on reduced gradients, unless its type says otherwise. What follows
    an update begins the next forward when gradients are still to come, and so does a batch.
    """
    kinds = [execution.type or op_type(execution.name) for execution in members]
    gradients = [kind.endswith("Grad") or "Backprop" in kind for kind in kinds]
    last_gradient = max((index for index, gradient in enumerate(gradients) if gradient), default=-1)
    phases: list[str] = []
    state, boundary = "forward", 0
    for index, execution in enumerate(members):
        while boundary < len(micro_steps) and execution.start_ns >= micro_steps[boundary]:
            state, boundary = "forward", boundary + 1
        phase = fixed[index]
        if phase == "communication":
            state = "other"
        elif phase == "optimizer" and state in ("backward", "other"):
            state = "forward" if last_gradient > index else "after"
        elif state == "forward" and (gradients[index] or kinds[index] == SEED):
            state = "backward"
        reduced = "backward" if gradients[index] else state
        phases.append(phase or reduced)
    return phases


def _fixed_phase(execution: Execution) -> str | None:
    """The phase that the name alone decides, else None."""
    name = execution.name
    kind = op_type(name)
    if graph_collective(kind):
        return "communication"
    if "/optimizer-" in name or kind.startswith(("Apply", "Assign")) or kind in UPDATES:
        return "optimizer"
    if "grad_reducer-" in name:
        return "other"
    if name.startswith("Gradients/"):
        return "backward"
    return None


def _instance_names(members: Sequence[Execution], *, is_step: bool) -> list[str]:
    """Names that tell instances apart: a bare PyNative name (`MatMul`) gets its ordinal within the step.

    PyNative gives one name to gradients of several layers, too: from the second shapes in a step on these are numbered.
    """
    seen: Counter[str] = Counter()
    forms: dict[str, dict[str | None, int]] = defaultdict(dict)
    names = []
    for execution in members:
        name = execution.name
        if "/" not in name and "-op" not in name:
            seen[name] += 1
            name = f"{name}#{seen[execution.name]}"
        elif is_step:
            form = forms[name].setdefault(execution.shapes, len(forms[name]) + 1)
            name = name if form == 1 else f"{name}#{form}"
        names.append(name)
    return names


@dataclass(frozen=True)
class Points:
    """Names of the operators that mark FP and BP; `problems`: fp | bp -> why the one that was named is not used."""

    fp: str | None
    bp: str | None
    problems: Mapping[str, str] = field(default_factory=dict)


def choose_points(placed: Sequence[Placed], steps: Iterable[Step], fp: str | None, bp: str | None) -> Points:
    """FP: the forward operator that is first in most training steps. BP: the backward one that ends last in most.

    With communication, BP feeds the step's last collective: it has ended when that begins.

    A name given by the user wins: the full name, or a suffix that only one operator has. One that matches nothing, or
    several, is a problem of the result, and the point is chosen as if there were no name.
    """
    kinds = StepRows.of(steps).kind.data
    training = [item for item in placed if item.step is not None and kinds[item.step] != EVAL]
    names = sorted({item.name for item in training})
    first: dict[int, Placed] = {}
    last: dict[int, Placed] = {}
    reduced = _last_collectives(training)
    for item in training:
        index = item.step if item.step is not None else -1
        if item.phase == "forward" and (
            index not in first or item.execution.start_ns < first[index].execution.start_ns
        ):
            first[index] = item
        feeds = index not in reduced or _end(item) <= reduced[index]
        if item.phase == "backward" and feeds and (index not in last or _end(item) > _end(last[index])):
            last[index] = item
    chosen = {"fp": _most(first), "bp": _most(last)}
    problems = {}
    for point, wanted in (("fp", fp), ("bp", bp)):
        try:
            chosen[point] = match_point(wanted, names, f"{point.upper()}_POINT") if wanted else chosen[point]
        except PointNotFoundError as error:
            instead = f"; the automatic choice is used: `{chosen[point]}`" if chosen[point] else ""
            problems[point] = f"{error.message}; {error.hint}{instead}"
    return Points(chosen["fp"], chosen["bp"], problems)


def _last_collectives(placed: Sequence[Placed]) -> dict[int, int]:
    """Start of the last collective per step index."""
    starts: dict[int, int] = {}
    for item in placed:
        if item.phase == "communication" and item.step is not None:
            starts[item.step] = max(starts.get(item.step, 0), item.execution.start_ns)
    return starts


def match_point(wanted: str, names: Sequence[str], what: str) -> str | None:
    """The recorded operator that a point names; None when no operators were recorded at all."""
    if not names or wanted in names:
        return wanted if names else None
    ending = [name for name in names if name.endswith(wanted)]
    if len(ending) == 1:
        return ending[0]
    near = ending[:5] or difflib.get_close_matches(wanted, names, 5, 0.3) or list(names[:5])
    problem = "matches several operators" if ending else "matches no operator that was recorded"
    raise PointNotFoundError(f"{what} `{wanted}` {problem}", "did you mean: " + ", ".join(f"`{name}`" for name in near))


def step_points(placed: Sequence[Placed], points: Points) -> dict[int, tuple[int | None, int | None]]:
    """FP start and BP end per step index, ns of the monotonic clock; the last execution of BP counts.

    A name without a number stands for all executions that MindSpore gives it, of whatever shapes.
    """
    by_step: dict[int, tuple[int | None, int | None]] = {}
    for item in placed:
        names = {item.name, item.execution.name}
        if item.step is None or names.isdisjoint((points.fp, points.bp)):
            continue
        start, end = by_step.get(item.step, (None, None))
        if points.fp in names:
            start = item.execution.start_ns if start is None else min(start, item.execution.start_ns)
        if points.bp in names:
            end = _end(item) if end is None else max(end, _end(item))
        by_step[item.step] = (start, end)
    return by_step


def section_points(
    placed: Sequence[Placed],
    by_operators: Mapping[int, tuple[int | None, int | None]],
    structures: Mapping[int, Structure],
    own: Collection[str],
) -> dict[int, tuple[int | None, int | None]]:
    """The points, but of steps whose sections are known by these: the first forward operator, the last backward pass.

    `own`: the points that the user named, which stay.
    """
    first: dict[int, int] = {}
    for item in placed:
        if item.step is not None and item.step in structures and item.phase == "forward":
            first.setdefault(item.step, item.execution.start_ns)
    points = dict(by_operators)
    for index, structure in structures.items():
        fp, bp = by_operators.get(index, (None, None))
        points[index] = (fp if "fp" in own else first.get(index, fp), bp if "bp" in own else structure.backward_end)
    return points


def _end(item: Placed) -> int:
    return item.execution.start_ns + item.execution.dur_ns


def _most(chosen: dict[int, Placed]) -> str | None:
    counts = Counter(item.name for item in chosen.values())
    return min(counts, key=lambda name: (-counts[name], name)) if counts else None
