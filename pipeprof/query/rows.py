"""One type for the rows of each query, with the columns of its header as attributes: `typed(LoopCall, rows)`.

A type is made when this module is imported. `tools/mypy_rows.py` tells mypy its columns and their types from the same
header, so that `make types` finds a misspelt one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar, cast

import msgspec

from pipeprof.query import catalog
from pipeprof.query.header import PYTHON_TYPES


class Row(msgspec.Struct):  # those of the queries are frozen
    """A row of the query called `query`."""

    query: ClassVar[str]


OneRow = TypeVar("OneRow", bound=Row)


def row(name: str, query: str, **judged: str) -> type[Row]:
    """The type of the rows of a query, under this name. `judged`: columns that a verdict adds, by type; may be None."""
    found = catalog.find(query)
    kinds: list[Any] = [PYTHON_TYPES[field.type] for field in found.gives]
    columns: list[tuple[str, Any]] = [
        (field.name, kind | None if field.nullable else kind) for field, kind in zip(found.gives, kinds, strict=True)
    ]
    columns += [(column, PYTHON_TYPES[kind] | None) for column, kind in judged.items()]
    namespace = {"query": query, "__doc__": found.title}
    made = msgspec.defstruct(name, columns, bases=(Row,), namespace=namespace, module=__name__, frozen=True)
    return cast("type[Row]", made)


def typed(kind: type[OneRow], rows: Iterable[Mapping[str, Any]]) -> list[OneRow]:
    """The rows of a query, as they are for reports, as those of its type."""
    return [kind(**one) for one in rows]


RepCommunication = row("RepCommunication", "compare/rep_communication")
RepCount = row("RepCount", "compare/rep_count")
RepCurve = row("RepCurve", "compare/rep_curve")
RepMemory = row("RepMemory", "compare/rep_memory")
RepOp = row("RepOp", "compare/rep_op")
RepPhase = row("RepPhase", "compare/rep_phase")
RepPipelineOp = row("RepPipelineOp", "compare/rep_pipeline_op")
RepStep = row("RepStep", "compare/rep_step")
CommSummary = row("CommSummary", "comm/summary")
Autotune = row("Autotune", "diagnose/autotune")
FetchCall = row("FetchCall", "diagnose/fetch_call")
HostCall = row("HostCall", "diagnose/host_call")
JudgedStage = row("JudgedStage", "diagnose/load", kind="varchar")
LoopCall = row("LoopCall", "diagnose/loop_call")
Mindinsight = row("Mindinsight", "diagnose/mindinsight")
MindinsightAdvice = row("MindinsightAdvice", "diagnose/mindinsight_advice")
Mindspore = row("Mindspore", "diagnose/mindspore")
NetworkPhase = row("NetworkPhase", "diagnose/network_phase")
NetworkTop = row("NetworkTop", "diagnose/network_top")
NetworkTypes = row("NetworkTypes", "diagnose/network_types")
OpGrowth = row("OpGrowth", "diagnose/op_growth")
RankImbalance = row("RankImbalance", "diagnose/rank_imbalance")
JudgedSink = row("JudgedSink", "diagnose/sink", stage="varchar")
StorageUse = row("StorageUse", "diagnose/storage")
WarmupShare = row("WarmupShare", "diagnose/warmup_share")
HostAccount = row("HostAccount", "host/account")
HostRoom = row("HostRoom", "host/room")
MemoryGrowth = row("MemoryGrowth", "memory/growth")
LastArrival = row("LastArrival", "rank/last_arrival")
Link = row("Link", "rank/link")
PhaseDiff = row("PhaseDiff", "rank/phase_diff")
RunAccount = row("RunAccount", "run/account")
Course = row("Course", "step/course")
DataWait = row("DataWait", "step/data_wait")
StepLengths = row("StepLengths", "step/lengths")
StepPart = row("StepPart", "step/parts")
PhaseSummary = row("PhaseSummary", "step/phase_summary")
TimelineEvent = row("TimelineEvent", "timeline/event")
QueueDepth = row("QueueDepth", "timeline/queue_depth")
ShownStep = row("ShownStep", "timeline/shown_step")
