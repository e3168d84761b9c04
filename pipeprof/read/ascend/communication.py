"""`communication.json` and `communication_matrix.json`: cost of every communication operator per step, and links.

Shares and rates are not read: they follow from times and sizes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read.mindspore_ops import collective_kind
from pipeprof.read.source.content import HINT
from pipeprof.read.source.document import document, mapping, text
from pipeprof.read.source.nested import entries
from pipeprof.read.source.numbers import duration, integer, size
from pipeprof.read.tables.operators import LONGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

    Row = tuple[str, dict[str, Any]]

_STEP = re.compile(r"(?:step)?([0-9]{1,12})")
LINK = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")
MB = 1000  # 20.97152 MB are 20 MiB
TOTAL = "Total Op Info"  # a sum over the others
_TIMES = {"dur_ns": "Elapse", "transit_ns": "Transit", "wait_ns": "Wait", "sync_ns": "Synchronization",
          "idle_ns": "Idle"}  # fmt: skip


def read_operators(path: Path, rows_of: Callable[[str, dict[str, Any]], Iterator[Row]], out: Out) -> None:
    """The rows of each operator of each step: its `costs` (and what it moved by kind of link), or its `links`."""
    operators = 0
    for operators, ((step_name, _kind, full), said) in enumerate(entries(path, 3), 1):  # noqa: B007 - their number counts
        step = out.step_of(step_number(step_name))
        rows = list(rows_of(full, mapping(said)))
        for table, values in rows:
            out.add(table, step=step, **values)
        if not rows and full != TOTAL and rows_of is costs:
            out.notes.count(path, "operator without an elapsed time")
    if not operators and not _is_empty(path):
        raise SourceError(f"no communication operator in `{path}`, expected step -> kind -> operator", HINT)


def step_number(text: str) -> int | None:
    """The number in a key such as `step12` or `12`."""
    match = _STEP.fullmatch(text)
    return int(match[1]) if match else None


def _is_empty(path: Path) -> bool:
    """Whether it is well formed and nothing was communicated: no step, or steps whose kinds have no operators."""
    steps = [said for _keys, said in entries(path, 1)]
    return all(isinstance(step, dict) and all(kind == {} for kind in step.values()) for step in steps)


def costs(full: str, said: dict[str, Any]) -> Iterator[Row]:
    """Rows of one operator of `communication.json` (`name@group`); none for a sum and without an elapsed time."""
    name, group = _parts(full)
    cost = mapping(said.get("Communication Time Info"))
    times = {column: duration(text(cost.get(f"{what} Time(ms)")), "ms") for column, what in _TIMES.items()}
    if name == TOTAL or times["dur_ns"] is None:
        return
    yield "collective_cost", {"name": name, "group_name": group, "kind": collective_kind(name), **times}
    for transport, moved in mapping(said.get("Communication Bandwidth Info")).items():
        yield from _link(name, group, (None, None), transport, mapping(moved))


def links(full: str, said: dict[str, Any]) -> Iterator[Row]:
    """Rows of one operator of `communication_matrix.json`; none for a sum."""
    name, group = _parts(full)
    for link, moved in said.items():
        ends = LINK.fullmatch(link)
        if ends and name != TOTAL:
            transport = text(mapping(moved).get("Transport Type"))
            yield from _link(name, group, (int(ends[1]), int(ends[2])), transport, mapping(moved))


def _parts(full: str) -> tuple[str, str | None]:
    name, _, group = full.partition("@")
    return name[:LONGEST], group[:LONGEST] or None


def _link(
    name: str, group: str | None, ends: tuple[int | None, int | None], transport: str, moved: dict[str, Any]
) -> Iterator[Row]:  # fmt: skip
    """A link that moved nothing is stored as zeros, and left out."""
    length = size(text(moved.get("Transit Size(MB)")), "MB", MB)
    dur = duration(text(moved.get("Transit Time(ms)")), "ms")
    if length and dur:
        yield "rank_link", {
            "name": name, "group_name": group, "src_rank": ends[0], "dst_rank": ends[1],
            "transport": transport[:LONGEST] or None, "bytes": length, "dur_ns": dur,
        }  # fmt: skip


def stated_rank(path: Path) -> int | None:
    """`rank_id` of a profiler_info file."""
    value = integer(text(mapping(document(path)).get("rank_id")))
    return value if value is not None and 0 <= value < 1_000_000 else None
