"""Where operators come from: from the PyNative step that was run line by line, or from the cells in their names.

Frames (`file.py(12): function`) are the program's own and those of MindSpore's modules that it calls
(`mindspore/nn/layer/conv.py(390): Conv2d.construct`), innermost first.

Lines that operators of graphs come from (`graph-N.lines`), out of MindSpore's own dump of what it compiled.

Of each operator its full name, then from the outermost call to the operator the places in Python: a function's first
line, with its text, and the line in it that leads on. A gradient has those of the operator it belongs to.

Which forward operator each backward operator of a PyNative step belongs to, so that it has the line of that one.

The backward pass goes through the forward operators in reverse order, and each gives a few gradients, one after the
other. So the backward operators are cut into stretches, one for each forward operator; of all ways to do that the one
counts whose types fit best. What does not fit belongs to nobody: views, for one, are no operators of the forward pass.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.read.mindspore_ops import op_type
from pipeprof.read.spool.lines import content
from pipeprof.read.spool.marks import Kind
from pipeprof.read.spool.sections import BACKWARD, FORWARD, OPTIMIZER
from pipeprof.read.tables.rows import MODULES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeprof.read.mindspore_ops import Execution
    from pipeprof.read.spool.lines import SpoolNotes
    from pipeprof.read.spool.operators import Placed
    from pipeprof.read.spool.process import Process

Frames = tuple[str, ...]
GRADIENT = 3  # flag of a call: a PyNative forward begins
OPTIMIZERS = "mindspore/nn/optim/"
_BACKWARD, _OTHERS = "\0backward", "\0others"  # behind the name of an operator: where it is launched in a step


def by_line(process: Process) -> list[tuple[int, int]]:
    """From the first to the last line of steps that ran line by line, and so more slowly; they end behind that."""
    return [(int(event["rows"][0][0]), int(event["rows"][-1][0])) for event in process.all("lines") if event["rows"]]


class CallSites:
    """The frames of the k-th execution of each type in a step, for steps that launch as many of the type.

    An operator of a graph has the lines that lead to it, where they were recorded; else those of the cells in its name,
    each with the line at which its `construct` begins. PyNative runs operators one by one in graphs that have no cells:
    these have the line that launched them, and so has what an optimizer or a function launched that was compiled,
    behind the frame of that.
    """

    def __init__(self, process: Process, led: Sequence[Execution]) -> None:
        self._sites: dict[str, list[Frames]] = {}  # by type, and by type and phase
        self._launched: dict[int, Frames] = {}  # by the start of an execution within a step that ran line by line
        self._modules = [_Modules(event) for event in process.all("modules")]
        self._scopes: dict[str, tuple[int, set[Frames]]] = {}
        self._graphs = _of_graphs(process)
        self._calls = _CompiledCalls(process) if _is_pynative(process) else None
        for event in process.all("lines"):
            members, lines = _by_line(event, led)
            numbered = _numbered_gradients(members)
            for at, forward_at in numbered.items():
                lines[at] = lines[forward_at]
            passes = [] if numbered else _passes(process, members)
            for forward, backward in passes:
                owners = forward_of([members[at] for at in forward], [members[at] for at in backward])
                for at, owner in zip(backward, owners, strict=True):
                    if owner is not None:  # else the line that takes the gradients
                        lines[at] = lines[forward[owner]]
            gradients = set(numbered) or {at for _, backward in passes for at in backward}
            for at, (execution, frames) in enumerate(zip(members, lines, strict=True)):
                self._launched[execution.start_ns] = frames
                phase = _BACKWARD if at in gradients else _OTHERS
                for key in (execution.name, execution.name + phase):
                    self._sites.setdefault(key, []).append(frames)

    def of(self, placed: Sequence[Placed]) -> list[Frames]:
        """The frames of each execution; no line where the step launched another number of its type.

        What a step launches differently outside of its backward pass takes no line from that, nor the other way round.
        """
        if not self._launched:
            return [self._graphs.get(item.name) or self._of_cells(item.execution, ()) for item in placed]
        counts = Counter((item.step, key) for item in placed for key in _keys(item))
        seen: Counter[tuple[int | None, str]] = Counter()
        frames: list[Frames] = []
        for item in placed:
            line = self._launched.get(item.execution.start_ns, ())
            for key in _keys(item):
                sites = self._sites.get(key, ())
                if item.step is not None and counts[item.step, key] == len(sites):
                    line = sites[seen[item.step, key]]
                seen[item.step, key] += 1
            frames.append(self._graphs.get(item.name) or self._of_cells(item.execution, line))
        return frames

    def _of_cells(self, execution: Execution, line: Frames) -> Frames:
        """Of the graphs, the one that knows most cells of a scope decides; no frame of them where two do and differ."""
        scope = execution.name.rpartition("/")[0]
        if not scope:
            return line
        if scope not in self._scopes:
            candidates = [modules.of(scope) for modules in self._modules]
            most = max((depth for depth, _ in candidates), default=0)
            self._scopes[scope] = most, {frames for depth, frames in candidates if depth == most}
        depth, compiled = self._scopes[scope]
        if not depth and self._calls is not None:
            inside = [frames for frames in compiled if frames and self._calls.has(execution.start_ns, frames[0])]
            return (*inside[0], *line) if len(inside) == 1 else line
        return next(iter(compiled)) or line if len(compiled) == 1 else line


def _keys(item: Placed) -> tuple[str, str]:
    """Under which the k-th execution of a step is looked up: the latter counts where it has the same number."""
    name = item.execution.name
    return name, name + (_BACKWARD if item.phase == "backward" else _OTHERS)


def _by_line(event: Mapping[str, Any], led: Sequence[Execution]) -> tuple[list[Execution], list[Frames]]:
    """The executions of a step that ran line by line, in order of start, and the frames of the line of each."""
    begins = [int(begin) for begin, _ in event["rows"]]
    members, lines = [], []
    for execution in sorted(led, key=lambda item: item.start_ns):
        index = bisect_right(begins, execution.start_ns) - 1
        number = event["rows"][index][1] if index >= 0 else len(event["sites"])
        if number < len(event["sites"]) and execution.start_ns < int(event["t"]):
            members.append(execution)
            lines.append(_frames(event, number))
    return members, lines


def _numbered_gradients(members: Sequence[Execution]) -> dict[int, int]:
    """The index of its forward operator for each gradient, where both have the same number, as in PyTorch.

    What needs no gradient has the number of what comes next that does: the last one with a number is meant.
    """
    forward: dict[int, int] = {}
    owners: dict[int, int] = {}
    for at, execution in enumerate(members):
        number = execution.sequence
        if number is None or number < 0:
            continue
        if execution.phase != "backward":
            forward[number] = at
        elif number in forward:
            owners[at] = forward[number]
    return owners


def _passes(process: Process, members: Sequence[Execution]) -> list[tuple[list[int], list[int]]]:
    """Indices of the executions of each backward pass, behind those of the forward pass before it."""
    sections = [mark for mark in process.marks.only(Kind.SECTION) if not mark.number]
    sections.sort(key=lambda mark: mark.begin)
    starts = [execution.start_ns for execution in members]
    passes: list[tuple[list[int], list[int]]] = []
    forward: list[int] = []
    for mark in sections:
        inside = list(range(bisect_left(starts, mark.begin), bisect_left(starts, mark.end)))
        if mark.flag == FORWARD:
            forward += inside
        elif mark.flag == BACKWARD and inside:
            passes.append((forward, inside))
            forward = []
    return passes


def told_apart(placed: Sequence[Placed], frames: Sequence[Frames]) -> list[Placed]:
    """The executions with names of their own where one name was launched from several places.

    PyNative gives operators of the same shapes in several layers one name. The first place keeps it.
    """
    names = {item.name for item in placed}
    places: dict[tuple[str, str], dict[Frames, str]] = defaultdict(dict)
    apart = []
    for item, place in zip(placed, frames, strict=True):
        known = places[item.name, item.phase]
        if "/" in item.name and place and place not in known:
            known[place] = _next_name(item.name, names) if known else item.name
            names.add(known[place])
        name = known.get(place, item.name)
        apart.append(item if name == item.name else replace(item, name=name))
    return apart


def _next_name(name: str, names: Collection[str]) -> str:
    return next(text for number in itertools.count(2) if (text := f"{name}#{number}") not in names)


def _is_pynative(process: Process) -> bool:
    """Whether Python launched operators one by one, so that one without cells need not be of a graph of the program."""
    calls = process.marks.only(Kind.CALL)
    return bool(process.all("lines")) or process.marks.has(Kind.SECTION) or bool((calls.flag == GRADIENT).any())


class _CompiledCalls:
    """When optimizers, and functions and cells that may be compiled, were called."""

    def __init__(self, process: Process) -> None:
        calls = process.marks.only(Kind.UPDATE, Kind.CALL)
        calls = calls[calls.flag != GRADIENT]
        self._calls = calls[np.argsort(calls.begin, kind="stable")]
        self._begins = self._calls.begin.data
        self._owners = {
            int(event["number"]): str(event.get("owner")) for event in process.all("unit") if "number" in event
        }

    def has(self, time_ns: int, frame: str) -> bool:
        """Whether what was compiled, by its frame, can have been called at that time."""
        index = bisect_right(self._begins, time_ns) - 1
        if index < 0 or self._calls[index].end < time_ns:
            return False
        mark = self._calls[index]
        is_optimizer = frame.startswith(OPTIMIZERS) or f": {self._owners.get(mark.subject)}." in frame
        return bool(is_optimizer == (mark.flag == OPTIMIZER))


def _of_graphs(process: Process) -> dict[str, Frames]:
    """Frames of operators of graphs, where lines were asked for; functions have the names of the cells they begin."""
    frames = [frame for event in process.all("modules") for frame in (event["frame"], *dict(event["cells"]).values())]
    names = {place: name for place, _, name in (frame.rpartition(": ") for frame in frames)}
    return load_lines(process.folder, process.notes, names)


class _Modules:
    """The cells of what was compiled, by their names."""

    def __init__(self, event: Mapping[str, Any]) -> None:
        self._frame = str(event["frame"])
        self._cells = dict(event["cells"])

    def of(self, scope: str) -> tuple[int, Frames]:
        """How many cells of a scope (`Default/network-WithLossCell/head-Dense`) are known, and their frames."""
        name, depth, frames = "", 0, [self._frame]
        for part in scope.split("/"):
            inner = f"{name}.{part.rpartition('-')[0]}" if name else part.rpartition("-")[0]
            if inner in self._cells:
                name, depth = inner, depth + 1
                frames.append(self._cells[inner])
        return depth, tuple(frame for frame in reversed(frames) if frame)


def _frames(event: Mapping[str, Any], number: int) -> Frames:
    """A site and those that called it; the caller of a site has a lower number."""
    callers = event.get("callers", ())
    frames = [event["sites"][number]]
    while number < len(callers) and 0 <= callers[number] < number:
        number = callers[number]
        frames.append(event["sites"][number])
    return tuple(frames)


_NAME = re.compile(r"# Fullname with scope: \((.*)\)")
_PLACE = re.compile(r"# In file (.+?):(\d+)(?:~\d+)?, \d+~\d+/(.*)/")
_FUNCTION = re.compile(r"\s*(?:async )?def (\w+)")
_MODULE = "construct"  # the one function of MindSpore's modules that is shown
MOST_FILES = 64


def load_lines(folder: Path, notes: SpoolNotes, names: Mapping[str, str]) -> dict[str, Frames]:
    """Frames of each operator by full name, innermost first. Where two graphs differ in one, it has none.

    `names`: of functions by where they begin, `net.py(12)`: `Network.construct`.
    """
    merged: dict[str, Frames] = {}
    for path in sorted(folder.glob("graph-*.lines"))[:MOST_FILES]:
        for name, frames in _operators(content(path, notes).decode(errors="replace").splitlines(), names):
            merged[name] = frames if merged.get(name, frames) == frames else ()
    return {name: frames for name, frames in merged.items() if frames}


def _operators(lines: Iterable[str], names: Mapping[str, str]) -> Iterator[tuple[str, Frames]]:
    name, places = "", []
    for line in lines:
        place, named = _PLACE.search(line), _NAME.search(line)
        if place:
            places.append((place[1], int(place[2]), place[3]))
        elif places or named:  # the next operator, or another one that a gradient may belong to
            if name:
                yield name, _line_frames(places, names)
            name, places = named[1] if named else "", []
    if name:
        yield name, _line_frames(places, names)


def _line_frames(places: Iterable[tuple[str, int, str]], names: Mapping[str, str]) -> Frames:
    """`net.py(14): Network.construct` for each function on the way that is the program's or a module of MindSpore's."""
    frames: list[tuple[str, int, str]] = []
    for path, line, text in places:
        function = _FUNCTION.match(text)
        if function or text.lstrip().startswith("@"):
            frames.append((path, line, names.get(f"{path}({line})", function[1] if function else "")))
        elif frames and frames[-1][0] == path:
            frames[-1] = (path, line, frames[-1][2])
        else:
            frames.append((path, line, ""))
    shown = (
        (path, line, name)
        for path, line, name in reversed(frames)
        if not path.startswith(MODULES) or name.rpartition(".")[2] == _MODULE
    )
    return tuple(f"{path}({line}): {name}" if name else f"{path}({line})" for path, line, name in shown)


MOST_GRADIENTS = 10  # of one forward operator
MOST_WORK = 2_000_000  # stretches that are compared; longer steps are left
# How well a gradient fits: it is of this type alone, of the same type, often so, of whatever it is, not.
OWN, SAME, LIKELY, ANY, ODD = 4, 3, 2, 0, -1
USED = 1  # that a forward operator has a gradient at all
ALIKE = 2  # gradients of one type that one forward operator has, such as the products for both factors

_VARIANT = re.compile(r"(Ext|V\d+|D)+$")
_EXPANDED = re.compile(r"/_([A-Za-z0-9]+?)(?:Backward|Grad)/")  # operators of C++ that stand for one gradient
_OWN = re.compile(r"Grad|Backprop|Backward")
_NAMES = {"RealDiv": "Div", "Sum": "ReduceSum", "Mean": "ReduceMean", "BMM": "BatchMatMul", "AddN": "Add"}
_ANYWHERE = frozenset({"Add", "Ones", "OnesLike", "ZerosLike", "Zeros"})  # sums of tensors used twice, and seeds
_SUMS, _PRODUCTS, _SPREAD = {"ReduceSum"}, {"MatMul", "BatchMatMul", "Transpose"}, {"Tile", "BroadcastTo"}
_GIVES: dict[str, set[str]] = {
    "Add": _SUMS, "Sub": {"Neg", *_SUMS}, "Mul": {"Mul", *_SUMS}, "Div": {"Div", "Neg", "Mul", *_SUMS},
    "ReduceSum": _SPREAD, "ReduceMean": {"Div", "Mul", *_SPREAD}, "ReduceMax": {"Equal", "Div", "Mul", *_SUMS},
    "ReduceMin": {"Equal", "Div", "Mul", *_SUMS}, "Exp": {"Mul"}, "Log": {"Div"}, "Square": {"Mul"},
    "Pow": {"Mul", "Pow", "Log"}, "Sqrt": {"Div", "Mul"}, "Erf": {"Pow", "Square", "Neg", "Exp", "Mul"},
    "Softmax": {"Mul", "Sub", *_SUMS}, "LogSoftmax": {"Exp", "Mul", "Sub", *_SUMS}, "Tile": _SUMS,
    "BroadcastTo": _SUMS, "MaskedFill": {"MaskedFill", *_SUMS}, "Select": {"Select", "Mul", *_SUMS},
    "Gather": {"UnsortedSegmentSum"}, "StridedSlice": {"Pad"}, "Concat": {"Slice", "Split"}, "Split": {"Concat"},
    "Dropout": {"Mul"}, "MatMul": _PRODUCTS, "BatchMatMul": _PRODUCTS, "Dense": {"BiasAddGrad", *_PRODUCTS, *_SUMS},
}  # fmt: skip


def forward_of(forward: Sequence[Execution], backward: Sequence[Execution]) -> list[int | None]:
    """The index of its forward operator for each backward operator; both in order of start.

    None for all where there are too many to compare.
    """
    if len(forward) * len(backward) * MOST_GRADIENTS > MOST_WORK:
        return [None] * len(backward)
    reversed_types = [_type(one) for one in reversed(forward)]
    gradients = [(_type(one), one.name) for one in backward]
    owners: list[int | None] = [None] * len(backward)
    for number, begin, end in _stretches(reversed_types, gradients):
        fits = [_fit(reversed_types[number], *gradient) for gradient in gradients[begin:end]]
        if max(fits) > ANY:
            owners[begin:end] = [None if fit == ODD else len(forward) - 1 - number for fit in fits]
    return owners


def _stretches(forward: Sequence[str], gradients: Sequence[tuple[str, str]]) -> Iterator[tuple[int, int, int]]:
    """(forward operator, begin, end) of each stretch that is not empty, the last first."""
    worst = -(1 << 30)
    best = [0, *[worst] * len(gradients)]  # by how many gradients the forward operators so far have
    chosen: list[list[int]] = []  # for each forward operator: how many of the first `end` come before its own
    for kind in forward:
        following, begins = list(best), list(range(len(best)))
        fits = [_fit(kind, *gradient) for gradient in gradients]
        for end in range(1, len(best)):
            value = 0
            seen: list[str] = []
            for begin in range(end - 1, max(-1, end - 1 - MOST_GRADIENTS), -1):
                fit, gradient = fits[begin], gradients[begin][0]
                value += fit if fit <= ANY or seen.count(gradient) < ALIKE else ODD
                if fit > ANY:
                    seen.append(gradient)
                total = best[begin] + value + (USED if seen else 0)
                if total > following[end]:
                    following[end], begins[end] = total, begin
        best = following
        chosen.append(begins)
    end = len(gradients)
    if best[end] <= worst // 2:  # more gradients than the forward operators can have
        return
    for number in range(len(forward) - 1, -1, -1):
        begin = chosen[number][end]
        if begin < end:
            yield number, begin, end
        end = begin


def _fit(forward: str, gradient: str, name: str) -> int:
    """How well a gradient fits a forward operator, by types; `name`: the gradient's full one."""
    if gradient in _ANYWHERE:
        return ANY
    expanded = _EXPANDED.search(f"/{name}")
    if expanded is not None:
        return OWN if _plain(expanded[1]) == forward else ODD
    if _OWN.search(gradient):
        if _plain(_OWN.split(gradient)[0]).lower() == forward.lower():  # ReluGrad is of ReLU
            return OWN
    elif gradient == forward:
        return SAME
    if gradient in _GIVES.get(forward, ()):
        return LIKELY
    return ANY if gradient == "Cast" else ODD


def _type(execution: Execution) -> str:
    kind = execution.type or op_type(execution.name)
    return kind if _OWN.search(kind) else _plain(kind)


def _plain(kind: str) -> str:
    """A type without what tells its variants apart: `SumExt` and `ReduceSum` have the same gradients."""
    plain = _VARIANT.sub("", kind) or kind
    return _NAMES.get(plain, plain)
