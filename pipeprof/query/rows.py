"""One type for the rows of each query, with the columns of its header as attributes: `typed(LoopCall, rows)`.

A type is made when this module is imported. `tools/mypy_rows.py` tells mypy its columns and their types from the same
header, so that `make types` finds a misspelt one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import msgspec

from pipeprof.query import catalog
from pipeprof.query.header import PYTHON_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Row(msgspec.Struct):  # those of the queries are frozen
    """A row of the query called `query`."""

    query: ClassVar[str]


OneRow = TypeVar("OneRow", bound=Row)


def row(name: str, query: str) -> type[Row]:
    """The type of the rows of a query, under this name."""
    found = catalog.find(query)
    kinds: list[Any] = [PYTHON_TYPES[field.type] for field in found.gives]
    columns = [
        (field.name, kind | None if field.nullable else kind) for field, kind in zip(found.gives, kinds, strict=True)
    ]
    namespace = {"query": query, "__doc__": found.title}
    made = msgspec.defstruct(name, columns, bases=(Row,), namespace=namespace, module=__name__, frozen=True)
    return cast("type[Row]", made)


def typed(kind: type[OneRow], rows: Iterable[Mapping[str, Any]]) -> list[OneRow]:
    """The rows of a query, as they are for reports, as those of its type."""
    return [kind(**one) for one in rows]


CommSummary = row("CommSummary", "comm/summary")
FetchCall = row("FetchCall", "diagnose/fetch_call")
HostCall = row("HostCall", "diagnose/host_call")
LoopCall = row("LoopCall", "diagnose/loop_call")
NetworkPhase = row("NetworkPhase", "diagnose/network_phase")
NetworkTop = row("NetworkTop", "diagnose/network_top")
NetworkTypes = row("NetworkTypes", "diagnose/network_types")
OpGrowth = row("OpGrowth", "diagnose/op_growth")
RankImbalance = row("RankImbalance", "diagnose/rank_imbalance")
WarmupShare = row("WarmupShare", "diagnose/warmup_share")
HostAccount = row("HostAccount", "host/account")
HostRoom = row("HostRoom", "host/room")
MemoryGrowth = row("MemoryGrowth", "memory/growth")
LastArrival = row("LastArrival", "rank/last_arrival")
Link = row("Link", "rank/link")
PhaseDiff = row("PhaseDiff", "rank/phase_diff")
RunAccount = row("RunAccount", "run/account")
Course = row("Course", "step/course")
StepLengths = row("StepLengths", "step/lengths")
