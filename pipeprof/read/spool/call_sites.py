"""Where operators come from: from the PyNative step that was run line by line, or from the cells in their names.

Frames (`file.py(12): function`) are the program's own and those of MindSpore's modules that it calls
(`mindspore/nn/layer/conv.py(390): Conv2d.construct`), innermost first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from pipeprof.read.spool.graph_lines import load_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.read.mindspore_ops import Execution
    from pipeprof.read.spool.operators import Placed
    from pipeprof.read.spool.process import Process

Frames = tuple[str, ...]


def by_line(process: Process) -> list[tuple[int, int]]:
    """From the first to the last line of steps that ran line by line, and so more slowly; they end behind that."""
    return [(int(event["rows"][0][0]), int(event["rows"][-1][0])) for event in process.all("lines") if event["rows"]]


class CallSites:
    """The frames of the k-th execution of each type in a step, for steps that launch as many of the type.

    An operator of a graph has the lines that lead to it, where they were recorded; else those of the cells in its name,
    each with the line at which its `construct` begins.
    """

    def __init__(self, process: Process, led: Sequence[Execution]) -> None:
        self._sites: dict[str, list[Frames]] = {}
        self._launched: dict[int, Frames] = {}  # by the start of an execution within a step that ran line by line
        self._modules = [_Modules(event) for event in process.all("modules")]
        self._scopes: dict[str, Frames] = {}
        self._graphs = _of_graphs(process)
        for event in process.all("lines"):
            begins = [int(begin) for begin, _ in event["rows"]]
            for execution in sorted(led, key=lambda item: item.start_ns):
                index = bisect_right(begins, execution.start_ns) - 1
                number = event["rows"][index][1] if index >= 0 else len(event["sites"])
                if number < len(event["sites"]) and execution.start_ns < int(event["t"]):
                    frames = self._launched[execution.start_ns] = _frames(event, number)
                    self._sites.setdefault(execution.name, []).append(frames)

    def of(self, placed: Sequence[Placed]) -> list[Frames]:
        """The frames of each execution; none where the step launched another number of its type."""
        counts: Counter[tuple[int | None, str]] = Counter((item.step, item.execution.name) for item in placed)
        seen: Counter[tuple[int | None, str]] = Counter()
        frames: list[Frames] = []
        for item in placed:
            name = item.execution.name
            sites = self._sites.get(name, ())
            fits = item.step is not None and counts[item.step, name] == len(sites)
            if "/" in name:  # all executions of such a name are one operator
                fits = fits and len(set(sites)) == 1
            cells = self._of_scope(name.rpartition("/")[0])
            apart = "/" in name and len(set(sites)) > 1
            launched = () if apart else self._launched.get(item.execution.start_ns, ())
            cells = self._graphs.get(item.name) or cells
            frames.append(cells or (sites[seen[item.step, name]] if fits else launched))
            seen[item.step, name] += 1
        return frames

    def _of_scope(self, scope: str) -> Frames:
        """Of the graphs, the one that knows most cells of a scope decides; none where two do and differ."""
        if scope and scope not in self._scopes:
            candidates = [modules.of(scope) for modules in self._modules]
            best = max((depth for depth, _ in candidates), default=0)
            frames = {frames for depth, frames in candidates if depth == best}
            self._scopes[scope] = frames.pop() if len(frames) == 1 else ()
        return self._scopes.get(scope, ())


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
