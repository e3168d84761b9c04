"""`communication.json` and `communication_matrix.json`: cost of every communication operator per step, and links."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read.ascend.files import HINT, document, mapping, text
from pipeprof.read.ascend.values import collective_kind, duration, size, whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

_STEP = re.compile(r"(?:step)?([0-9]{1,12})")
_LINK = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")
MB = 1000  # 20.97152 MB are 20 MiB
TOTAL = "Total Op Info"  # a sum over the others


def _operators(path: Path, out: Out) -> Iterator[tuple[int | None, str, str | None, dict[str, Any]]]:
    """(step, name, group, what is said of it) of every operator of every step."""
    steps = mapping(document(path))
    found = 0
    for step_name, kinds in steps.items():
        number = _STEP.fullmatch(step_name)
        step = None
        if number:
            step = out.steps.position(int(number[1])) if out.steps.source else out.steps.know(int(number[1]))
        for operators in mapping(kinds).values():
            for full, said in mapping(operators).items():
                name, _, group = full.partition("@")
                found += 1
                if name != TOTAL:
                    yield step, name, group or None, mapping(said)
    if not found:
        raise SourceError(f"no communication operator in `{path}`, expected step -> kind -> operator", HINT)


def read_communication(path: Path, out: Out) -> None:
    """Times in ms to `collective_cost`, moved data per kind of link to `rank_link`. Shares and rates are recomputed."""
    for step, name, group, said in _operators(path, out):
        cost = mapping(said.get("Communication Time Info"))
        values = {
            column: duration(text(cost.get(f"{what} Time(ms)")), "ms")
            for column, what in (("dur_ns", "Elapse"), ("transit_ns", "Transit"), ("wait_ns", "Wait"),
                                 ("sync_ns", "Synchronization"), ("idle_ns", "Idle"))
        }  # fmt: skip
        if values["dur_ns"] is None:
            out.notes.count(path, "operator without an elapsed time")
            continue
        out.add("collective_cost", step=step, name=name, group_name=group, kind=collective_kind(name), **values)
        for transport, moved in mapping(said.get("Communication Bandwidth Info")).items():
            _add_link(step, name, group, (None, None), transport, mapping(moved), out)


def read_matrix(path: Path, out: Out) -> None:
    """Data moved between two ranks per operator, to `rank_link`."""
    for step, name, group, said in _operators(path, out):
        for link, moved in said.items():
            ends = _LINK.fullmatch(link)
            if ends:
                transport = text(mapping(moved).get("Transport Type"))
                _add_link(step, name, group, (int(ends[1]), int(ends[2])), transport, mapping(moved), out)


def _add_link(
    step: int | None, name: str, group: str | None, ends: tuple[int | None, int | None], transport: str,
    moved: dict[str, Any], out: Out,
) -> None:  # fmt: skip
    """A link that moved nothing is stored as zeros, and left out."""
    length = size(text(moved.get("Transit Size(MB)")), "MB", MB)
    dur = duration(text(moved.get("Transit Time(ms)")), "ms")
    if length and dur:
        out.add(
            "rank_link", step=step, name=name, group_name=group, src_rank=ends[0], dst_rank=ends[1],
            transport=transport or None, bytes=length, dur_ns=dur,
        )  # fmt: skip


def stated_rank(path: Path) -> int | None:
    """`rank_id` of a profiler_info file."""
    value = whole(text(mapping(document(path)).get("rank_id")))
    return value if value is not None and 0 <= value < 1_000_000 else None
