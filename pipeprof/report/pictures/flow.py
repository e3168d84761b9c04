"""The data pipeline as a flow: its stages from the source to the training, how busy each is, and which one limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pipeprof.escape import line
from pipeprof.report.answer import verdict_in
from pipeprof.report.answer.data import LIBRARIES
from pipeprof.report.answer.shape import KINDS, judged_pipeline, stage_names
from pipeprof.report.charts.chart import middle_cut
from pipeprof.report.sections.block import focus_of, rows_at
from pipeprof.report.sections.pipeline import below_consumers
from pipeprof.verdict.capacity import CONSUMER
from pipeprof.verdict.data_cause import CODES as DATA
from pipeprof.verdict.data_cause import SHARED
from pipeprof.verdict.ranking import DRIFT, FAILED, HANG, PART

Row = dict[str, Any]

MOST_STAGES = 8  # with the training
MOST_LETTERS = 34  # of a name
LIMITS = "limits"
MOST_CPU = "most CPU"  # of no stage the rate limits where cores are short
_OF_MINDSPORE = frozenset({"EpochCtrlOp"})  # counts epochs: not in the user's script, without work or a queue


class Stage(NamedTuple):
    """An operator of the pipeline, or the training, which is the last; `busy` is 0..1, None where it was not timed.

    `fill` (0..1) is of the queue behind it. `feeds` names the reader of that queue where it is not the next stage.
    `rate`: batches per second that it could make; `pace`: that the training takes.
    """

    name: str
    kind: str
    place: str
    workers: int | None
    busy: float | None
    work_ns: float | None
    fill: float | None
    capacity: int | None
    limits: str
    feeds: str = ""
    op_id: int = CONSUMER
    rate: float | None = None
    pace: float | None = None

    @property
    def short(self) -> str:
        """The name, cut in its middle where it is long."""
        return middle_cut(self.name, MOST_LETTERS)


def stages_of(content: dict[str, Any]) -> list[Stage]:
    """The stages of the pipeline that is shown, source first; none where none was recorded."""
    found = pipeline_of(content)
    if found is None:
        return []
    ops, at = found["ops"], _key(found)
    loads = {row["op_id"]: row for row in content["pipeline"]["load"] if _key(row) == at}
    shared = verdict_in(content).lead.code in DATA and content["diagnosis"]["rule"] == SHARED
    limits, how = _limiting(content), MOST_CPU if shared else LIMITS
    own = {op["op_id"] for op in ops if op["op_type"] not in _OF_MINDSPORE}
    names = {op_id: name for op_id, name in stage_names(ops).items() if op_id in own}
    order = [op for op, _, before in below_consumers(ops) if not before and op["op_id"] in names][::-1]
    following = [*(op["op_id"] for op in order[1:]), CONSUMER]
    stages = [
        _stage(op, loads.get(op["op_id"], {}), names, how if op["op_id"] == limits else "", reader)
        for op, reader in zip(order, following, strict=True)
    ]
    loop = loads.get(CONSUMER, {})
    training = Stage(
        "training", "", line(content["diagnosis"].get("loop_site") or found["site"] or ""), None, loop.get("busy"),
        loop.get("work_ns"), None, None, how if limits == CONSUMER else "", rate=loop.get("rate"),
        pace=loop.get("loop_rate"),
    )  # fmt: skip
    return [*stages, training]


def pipeline_of(content: Row) -> Row | None:
    """The pipeline that the diagnosis is about; where it is about none, the training's first of the rank in focus."""
    recorded = [row for row in content["pipeline"]["pipelines"] if row["ops"]]
    own = [row for row in rows_at(recorded, focus_of(content)) if row["role"] != "hidden"]
    trained = [row for row in own if row["role"] == "train"]
    judged = judged_pipeline(content)
    return judged if judged in recorded else next(iter(trained or own), None)


def _key(row: Row) -> tuple[int, int, str]:
    return row["rep"], row["rank"], row["pipeline_key"]


def _limiting(content: dict[str, Any]) -> int | None:
    """The operator, or the training, that is marked: what the verdict says first, and nothing else."""
    diagnosis, lead = content["diagnosis"], verdict_in(content).lead
    if lead.code in DATA:
        limiting: int | None = diagnosis["op_id"]
        return limiting
    in_steps = lead.code not in (PART, DRIFT, FAILED, HANG)
    return CONSUMER if in_steps and diagnosis["verdict"] == "consumer_bound" else None


def _stage(op: Row, load: Row, names: dict[int, str], limits: str, following: int) -> Stage:
    queue = op["queue"] or {}
    readers = op["consumers"] or [CONSUMER]
    elsewhere = [names[reader] for reader in readers if reader != following and reader in names]
    code = load.get("code") or ""
    place = line((load.get("site") if LIBRARIES.search(code) else None) or code or load.get("site") or "")
    return Stage(
        names[op["op_id"]], KINDS.get(op["op_type"], line(op["op_type"])), place,
        None if op["inlined"] else op["workers"], load.get("busy"), load.get("work_ns"),
        queue.get("mean_ratio"), op["capacity"], limits, ", ".join(elsewhere),
        op["op_id"], load.get("rate"), load.get("loop_rate"),
    )  # fmt: skip


def busiest(stages: Sequence[Stage], most: int = MOST_STAGES) -> list[Stage]:
    """At most so many of them in their order: the one that limits, the training, and the busiest others."""
    last = len(stages) - 1
    ranked = sorted(
        range(len(stages)), key=lambda at: (not stages[at].limits, at != last, -(stages[at].busy or 0.0), at)
    )
    return [stages[at] for at in sorted(ranked[:most])]
