"""Raw files of MindSpore's CPU profiler (folder FRAMEWORK): executions and launches, and the steps they tell.

Starts are ns since the epoch, durations decimal ms. There are no step numbers. In graph mode every operator runs once
per step, and steps do not overlap: the k-th execution of each is step k. In PyNative nothing tells the steps.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.errors import SourceError
from pipeprof.read.ascend.files import BROKEN, HINT, cannot_read, open_bytes
from pipeprof.read.ascend.graph_ops import type_of
from pipeprof.read.ascend.values import collective_kind, duration, whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeprof.read.ascend.checks import Checks
    from pipeprof.read.ascend.out import Out

CLOCK = "epoch"


class Execution(NamedTuple):
    """One execution; `item` is its position in its operator's line."""

    start_ns: int
    dur_ns: int
    name: str
    item: int


def read_executions(path: Path, launches: Path | None, out: Out, checks: Checks, *, steps: bool) -> None:
    """Executions of one rank, with types and shapes from the launch list; steps too, where they are wanted and told."""
    found = sorted(_executions(path, out))
    if not found:
        raise SourceError(f"no execution in `{path}`, expected lines `name;HostCpuOps;start,duration,flag ...`", HINT)
    told = _windows(found)
    if steps and told:
        _add_steps(found, told, out)
    elif steps:
        out.notes.add("steps", f"`{path.name}`: operators run several times per step (PyNative): no steps can be told")
    described = _launches(launches, found, checks) if launches else None
    for index, execution in enumerate(found):
        kind, shapes = described[index] if described else (None, None)
        kind = kind or type_of(execution.name)
        start = out.at(execution.start_ns, CLOCK)
        out.at(execution.start_ns + execution.dur_ns, CLOCK)
        out.add(
            "op", op_id=out.op_id(execution.name, kind, "CPU", shapes), step=execution.item if steps and told else None,
            start_ns=start, dur_ns=execution.dur_ns, self_ns=execution.dur_ns, track="CPU",
        )  # fmt: skip
        if collective_kind(kind):
            out.add(
                "collective", step=execution.item if steps and told else None, name=execution.name,
                kind=collective_kind(kind), track="CPU", start_ns=start, dur_ns=execution.dur_ns,
            )  # fmt: skip


def _executions(path: Path, out: Out) -> Iterator[Execution]:
    for number, line in enumerate(_lines(path), 1):
        name, first, rest = line.partition(";")
        _, second, items = rest.partition(";")
        if not first or not second or not name:
            if line.strip():
                out.notes.count(path, f"line that is not `name;HostCpuOps;...` (such as line {number})")
            continue
        for item, text in enumerate(items.split()):
            fields = text.split(",")
            start, dur = whole(fields[0]), duration(fields[1], "ms") if len(fields) > 1 else None
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
        position = out.steps.add(number, previous, end, CLOCK)
        start = out.at(previous, CLOCK)
        out.add(
            "step", step=position, kind_step=position, kind="warmup" if position == 0 else "train", start_ns=start,
            fp_ns=None if fp is None else out.at(fp, CLOCK), bp_ns=None if bp is None else out.at(bp, CLOCK),
            end_ns=out.at(end, CLOCK), data_wait_ns=None if fp is None else fp - previous,
            fp_source=None if fp is None else "op", in_window=True,
        )  # fmt: skip
        previous = end


def _is_forward(name: str) -> bool:
    if not name.startswith("Default/") or "optimizer" in name or "grad_reducer-" in name:
        return False
    return collective_kind(type_of(name)) is None and not type_of(name).startswith(("Assign", "Apply"))


def _launches(path: Path, found: list[Execution], checks: Checks) -> list[tuple[str | None, str | None]] | None:
    """(type, shapes) per execution in time order, joined by position; None when the lists do not match."""
    listed = [line.split(";") for line in _lines(path) if line.strip()]
    if not checks.that(
        len(listed) == len(found), path, len(listed), "as many launches as executions", f"{len(found)} executions"
    ):
        return None
    described: list[tuple[str | None, str | None]] = []
    for execution, fields in zip(found, listed, strict=True):
        if len(fields) > 1 and fields[1] and fields[1] != execution.name.rpartition("/")[2]:
            return None
        shapes = "; ".join(part.partition(":")[2] for part in fields[3:] if ":" in part)
        described.append((fields[0] or None, shapes or None))
    return described


def _lines(path: Path) -> Iterator[str]:
    try:
        with open_bytes(path) as file:
            for line in file:
                yield line.decode("utf-8", "replace").rstrip("\r\n")
    except BROKEN as error:
        raise cannot_read(path, error) from error
