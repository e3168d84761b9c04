"""Data sink mode: the queue on the host and the queue on the device, and what is said of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.answer.shape import capital
from pipeprof.report.sections.block import Block, Section, filled, rows_at
from pipeprof.report.words.names import SINK_STAGES
from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

SIGNS = {
    "data_processing": "the host queue runs empty",
    "data_transmission": "the host queue is filled, the device's is not",
}
QUEUES = {"host_queue": "host queue", "data_queue": "data queue"}
MINDINSIGHT = {
    "data_processing": "the data processing is slow",
    "minddata_device_queue_rate": "the data processing is slow",
    "data_transmission": "the transmission to the device is slow",
    "device_queue_warning": "the input is in time",
}


def queues_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """Of the rank in focus, or of the first that has queues."""
    section = Section("Queues between host and device")
    rows = content["pipeline"]["sink"]
    rows = rows_at(rows, focus) or rows[:1]
    if not rows:
        return section
    listed = [line for row in rows for line in _lines(row)]
    section.blocks.append(Block(("queue", "batches", "empty", "found empty", "wait"), listed, frozenset((1, 2, 3, 4))))
    _over_time(section, content["pipeline"]["sink_depth"], rows[0])
    section.notes += _said(content, rows)
    section.notes.append("batches after the first quarter; a queue that is found empty makes its reader wait")
    return section


def _lines(row: dict[str, Any]) -> list[list[str]]:
    wait = f"{format_ratio(row['host_wait_share'])} of its time" if row["host_wait_share"] is not None else "-"
    empty = [_count(row["host_empty"]), format_ratio(row["host_empty_share"])]
    lines = [["host queue, before the device", str(row["batches"]), *empty, wait]]
    if row["device_empty_share"] is not None or row["device_wait_ns"] is not None:
        wait = format_ns(row["device_wait_ns"])
        empty = [_count(row["device_empty"]), format_ratio(row["device_empty_share"])]
        lines.append(["data queue, on the device", str(row["device_batches"]), *empty, f"{wait} per batch"])
    return lines


def _count(number: int | None) -> str:
    return "-" if number is None else str(number)


def _over_time(section: Section, depths: Sequence[dict[str, Any]], row: dict[str, Any]) -> None:
    """Mean depth of either queue in equal parts of the batches; of the rank that `row` is about."""
    here = rows_at(depths, (row["rep"], row["rank"]))
    parts = {side: [one for one in here if one["side"] == side] for side in QUEUES}
    sides = {side: of_side for side, of_side in parts.items() if len(of_side) > 1}
    if not sides:
        return
    longest = max(sides.values(), key=len)
    listed = [
        [f"{one['first_batch']} to {one['last_batch']}" if one["batches"] > 1 else str(one["first_batch"]),
         *(f"{of_side[at]['mean_depth']:.1f}" if at < len(of_side) else "-" for of_side in sides.values())]
        for at, one in enumerate(longest)
    ]  # fmt: skip
    section.blocks.append(filled(("depth over time, batches", *(QUEUES[side] for side in sides)), listed))


def _said(content: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Our verdict on the queues, then MindInsight's."""
    stage = rows[0]["stage"]
    ours = f"{SINK_STAGES[stage]} is slow: {SIGNS[stage]}" if stage else "no queue runs empty"
    if stage and content["diagnosis"]["verdict"] == "consumer_bound":
        ours += ", but the training does not wait for it"
    said = [capital(ours)]
    theirs = content["diagnosis"]["compatible"].get("mindinsight") or {}
    queues = theirs.get("queues")
    if queues is not None:
        empty = format_ratio(theirs["empty_share"])
        said.append(f"MindInsight: {MINDINSIGHT.get(queues, queues)} (host queue empty in {empty} of all batches)")
    return said
