"""Raw files of MindSpore's CPU profiler (folder FRAMEWORK): executions and launches, and the steps they tell.

Starts are ns since the epoch, durations decimal ms. There are no step numbers. In graph mode every operator runs once
per step, and steps do not overlap: the k-th execution of each is step k. In PyNative nothing tells the steps.
"""

from __future__ import annotations

import re
from itertools import chain, islice, pairwise, repeat
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.errors import SourceError
from pipeprof.read.ascend.graph_ops import type_of
from pipeprof.read.ascend.values import collective_kind
from pipeprof.read.source.content import HINT, LONG_LINE, lines
from pipeprof.read.source.numbers import duration, whole
from pipeprof.read.tables.operators import MOST as MOST_OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeprof.read.ascend.checks import Checks
    from pipeprof.read.ascend.out import Out

CLOCK = "epoch"
OPERATOR_BYTES = 1 << 26  # of a line, which has all executions of an operator
_ITEM = re.compile(r"\S+")
MOST = 1_000_000  # executions that are put in order


class Execution(NamedTuple):
    """One execution; `item` is its position in its operator's line."""

    start_ns: int
    dur_ns: int
    name: str
    item: int


class Source(NamedTuple):
    """A kind of these files: where the operators ran, and the unit of their durations."""

    device: str
    unit: str


HOST = Source("CPU", "ms")
GPU = Source("GPU", "us")


def read_executions(
    path: Path, launches: Path | None, out: Out, checks: Checks, *, steps: bool, source: Source = HOST
) -> dict[str, list[int]]:  # fmt: skip
    """Executions of one rank, with types and shapes from the launch list; steps too, where they are wanted and told.

    Returns (count, total in ns) by name, for the check.
    """
    rest = _executions(path, source.unit, out)
    found = sorted(islice(rest, MOST))
    if not found:
        raise SourceError(f"no execution in `{path}`, expected lines `name;HostCpuOps;start,duration,flag ...`", HINT)
    whole_file = len(found) < MOST
    told = _windows(found) if whole_file else []
    if not whole_file:
        out.notes.add("steps", f"`{path.name}`: steps are not known: more than {MOST:,} executions are too many")
    elif steps and told:
        _add_steps(found, told, out)
    elif steps:
        out.notes.add("steps", f"`{path.name}`: operators run several times per step (PyNative): steps cannot be found")
    described = chain(_launches(launches if whole_file else None, found, checks), repeat((None, None)))
    sums: dict[str, list[int]] = {}
    for execution, (stated, shapes) in zip(chain(found, rest), described, strict=False):
        step = out.steps.position(execution.item) if steps and told else out.steps.at(execution.start_ns, CLOCK)
        _add(execution, stated or type_of(execution.name), shapes, step, source.device, out)
        if execution.name in sums or len(sums) < MOST_OPERATORS:
            entry = sums.setdefault(execution.name, [0, 0])
            entry[0] += 1
            entry[1] += execution.dur_ns
    return sums


def _add(execution: Execution, kind: str, shapes: str | None, step: int | None, device: str, out: Out) -> None:
    start = out.at(execution.start_ns, CLOCK)
    out.at(execution.start_ns + execution.dur_ns, CLOCK)
    out.add(
        "op", op_id=out.operator(execution.name, kind, device, shapes), step=step, start_ns=start,
        dur_ns=execution.dur_ns, self_ns=execution.dur_ns, track=device,
    )  # fmt: skip
    if collective_kind(kind):
        out.add(
            "collective", step=step, name=execution.name, kind=collective_kind(kind), track=device, start_ns=start,
            dur_ns=execution.dur_ns,
        )  # fmt: skip


def _executions(path: Path, unit: str, out: Out) -> Iterator[Execution]:
    for number, line in enumerate(lines(path, longest=OPERATOR_BYTES), 1):
        name, first, rest = line.partition(";")
        _, second, items = rest.partition(";")
        if not first or not second or not name:
            if line.strip():
                out.odd(path, "line that is not `name;HostCpuOps;...`", f"line {number}")
            continue
        for item, text in enumerate(_ITEM.finditer(items)):
            fields = text[0].split(",", 3)
            start, dur = whole(fields[0]), duration(fields[1], unit) if len(fields) > 1 else None
            if start is None or dur is None or start < 0:
                out.notes.count(path, "execution without a start and a duration")
            else:
                yield Execution(start, dur, name, item)


def _windows(found: list[Execution]) -> list[tuple[int, int]]:
    """(first start, last end) of each step; empty when executions do not fall into steps."""
    counts: dict[str, int] = {}
    for execution in found:
        counts[execution.name] = max(counts.get(execution.name, 0), execution.item + 1)
    if len(set(counts.values())) != 1 or len(counts) < 2:
        return []
    length = next(iter(counts.values()))
    windows = [(1 << 62, 0)] * length
    for execution in found:
        start, end = windows[execution.item]
        windows[execution.item] = min(start, execution.start_ns), max(end, execution.start_ns + execution.dur_ns)
    ordered = all(one[1] <= other[0] for one, other in pairwise(windows))
    return windows if ordered else []


def _add_steps(found: list[Execution], windows: list[tuple[int, int]], out: Out) -> None:
    """A step begins where the one before ended, the first with its first operator."""
    out.steps.source = "cpu_exec"
    forward: dict[int, int] = {}
    backward: dict[int, int] = {}
    for execution in found:
        if execution.name.startswith("Gradients/"):
            end = execution.start_ns + execution.dur_ns
            backward[execution.item] = max(backward.get(execution.item, 0), end)
        elif _is_forward(execution.name):
            forward.setdefault(execution.item, execution.start_ns)
    previous = windows[0][0]
    for number, (_, end) in enumerate(windows):
        fp, bp = forward.get(number), backward.get(number)
        fp = max(fp, previous) if fp is not None else None
        bp = bp if fp is not None and bp is not None and bp >= fp else None
        out.add_step(number, (previous, fp, bp, end), CLOCK, in_window=True)
        previous = end


def _is_forward(name: str) -> bool:
    if not name.startswith("Default/") or "optimizer" in name or "grad_reducer-" in name:
        return False
    return collective_kind(type_of(name)) is None and not type_of(name).startswith(("Assign", "Apply"))


def _launches(
    path: Path | None, found: list[Execution], checks: Checks
) -> Iterator[tuple[str | None, str | None]]:  # fmt: skip
    """(type, shapes) per execution in time order, joined by position; nothing known when the lists do not match."""
    if path is None or not _match(path, found, checks):
        yield from repeat((None, None))
        return
    for fields in _listed(path):
        shapes = "; ".join(part.partition(":")[2] for part in fields[3:] if ":" in part)
        yield fields[0] or None, shapes or None


def _match(path: Path, found: list[Execution], checks: Checks) -> bool:
    """Whether there are as many launches as executions, of the same operators where the launch has a name."""
    count = 0
    for count, fields in enumerate(_listed(path), 1):
        name = found[count - 1].name.rpartition("/")[2] if count <= len(found) else ""
        if count <= len(found) and len(fields) > 1 and fields[1] and fields[1] != name:
            return False
    shown = f"{len(found)} executions"
    return checks.that(count == len(found), path, count, "as many launches as executions", shown)


def _listed(path: Path) -> Iterator[list[str]]:
    return (line.split(";") for line in lines(path, longest=LONG_LINE) if line.strip())
