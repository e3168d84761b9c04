"""Raw files of MindSpore's CPU profiler (folder FRAMEWORK): executions and launches, and the steps they tell.

Starts are ns since the epoch, durations decimal ms. There are no step numbers. In graph mode every operator runs once
per step, and steps do not overlap: the k-th execution of each is step k. In PyNative nothing tells the steps.
"""

from __future__ import annotations

from itertools import chain, islice, pairwise, repeat
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.errors import SourceError
from pipeprof.read.mindspore_ops import LINE, executions, graph_collective, launches, op_type
from pipeprof.read.source.content import HINT, LONG_LINE
from pipeprof.read.tables.rows import MOST as MOST_OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

CLOCK = "epoch"
MOST = 1_000_000  # executions that are put in order


class Execution(NamedTuple):
    """One execution; `item` is its position in its operator's line."""

    start_ns: int
    dur_ns: int
    name: str
    item: int


def read_executions(
    path: Path, launch_list: Path | None, out: Out, *, steps: bool, device: str = "CPU",
    unit: str = "ms",
) -> dict[str, list[int]]:  # fmt: skip
    """Executions of one rank, with types and shapes from the launch list; steps too, where they are wanted and told.

    `unit`: of their durations. Returns (count, total in ns) by name, for the check.
    """
    rest = _executions(path, unit, out)
    recorded = sorted(islice(rest, MOST))
    if not recorded:
        raise SourceError(f"no execution in `{path}`, expected lines `name;HostCpuOps;start,duration,flag ...`", HINT)
    whole_file = len(recorded) < MOST
    windows = _windows(recorded) if whole_file else []
    if not whole_file:
        out.notes.add("steps", f"`{path.name}`: steps are not known: more than {MOST:,} executions are too many")
    elif steps and windows:
        _add_steps(recorded, windows, out)
    elif steps:
        out.notes.add("steps", f"`{path.name}`: operators run several times per step (PyNative): steps cannot be found")
    described = chain(_launches(launch_list if whole_file else None, recorded, out), repeat((None, None)))
    sums: dict[str, list[int]] = {}
    for execution, (stated, shapes) in zip(chain(recorded, rest), described, strict=False):
        step = out.steps.position(execution.item) if steps and windows else out.steps.at(execution.start_ns, CLOCK)
        _add(execution, stated or op_type(execution.name), shapes, step, device, out)
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
    if communication := graph_collective(kind):
        out.add(
            "collective", step=step, name=execution.name, kind=communication, track=device, start_ns=start,
            dur_ns=execution.dur_ns,
        )  # fmt: skip


def _executions(path: Path, unit: str, out: Out) -> Iterator[Execution]:
    def count(number: int, _text: str, expected: str) -> None:
        if expected == LINE:
            out.odd(path, "line that is not `name;HostCpuOps;...`", f"line {number}")
        else:
            out.notes.count(path, "execution without a start and a duration")

    return map(Execution._make, executions(path, unit, count))


def _windows(recorded: list[Execution]) -> list[tuple[int, int]]:
    """(first start, last end) of each step; empty when executions do not fall into steps."""
    counts: dict[str, int] = {}
    for execution in recorded:
        counts[execution.name] = max(counts.get(execution.name, 0), execution.item + 1)
    if len(set(counts.values())) != 1 or len(counts) < 2:
        return []
    length = next(iter(counts.values()))
    windows = [(1 << 62, 0)] * length
    for execution in recorded:
        start, end = windows[execution.item]
        windows[execution.item] = min(start, execution.start_ns), max(end, execution.start_ns + execution.dur_ns)
    ordered = all(one[1] <= other[0] for one, other in pairwise(windows))
    return windows if ordered else []


def _add_steps(recorded: list[Execution], windows: list[tuple[int, int]], out: Out) -> None:
    """A step begins where the one before ended, the first with its first operator."""
    out.steps.source = "cpu_exec"
    forward: dict[int, int] = {}
    backward: dict[int, int] = {}
    for execution in recorded:
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
    return graph_collective(op_type(name)) is None and not op_type(name).startswith(("Assign", "Apply"))


def _launches(
    path: Path | None, recorded: list[Execution], out: Out
) -> Iterator[tuple[str | None, str | None]]:  # fmt: skip
    """(type, shapes) per execution in time order, joined by position; nothing known when the lists do not match."""
    if path is None or not _match(path, recorded, out):
        yield from repeat((None, None))
        return
    for kind, _, shapes in launches(path, LONG_LINE):
        yield kind, shapes


def _match(path: Path, recorded: list[Execution], out: Out) -> bool:
    """Whether there are as many launches as executions, of the same operators where the launch has a name."""
    count = 0
    for count, (_, name, _) in enumerate(launches(path, LONG_LINE), 1):
        if name is not None and count <= len(recorded) and name != recorded[count - 1].name.rpartition("/")[2]:
            return False
    shown = f"{len(recorded)} executions"
    return out.checks.that(count == len(recorded), path, count, "as many launches as executions", shown)
