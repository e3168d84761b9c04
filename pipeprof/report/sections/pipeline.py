"""The data pipeline: its operators as a tree, with queues, times and CPU; the queues of sink mode."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pipeprof.report.answer.shape import capital
from pipeprof.report.sections.block import Block, Section, filled, rows_at
from pipeprof.report.words.names import SINK_STAGES
from pipeprof.units import format_count, format_ns, format_ratio

Op = dict[str, Any]

ALIVE = re.compile("iterator ([0-9]+) was still alive")


def pipeline_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """Each pipeline of the rank in focus that the training or the evaluation fetches from."""
    section = Section("Data pipeline")
    for row in sorted(rows_at(content["pipeline"]["pipelines"], focus), key=lambda row: row["role"] != "train"):
        if row["role"] == "hidden":
            continue
        what = f"{row['role']} pipeline at {row['site'] or 'an unknown place'}"
        facts = [
            format_count(row["iterators"], "iterator"),
            f"batch size {row['batch_size']}" if row["batch_size"] else None,
            "batches not recorded"
            if row["batches"] is None
            else f"{format_count(row['batches'], 'batch')}, waited {format_ns(row['wait_ns'])} for data",
            f"first batch after {format_ns(row['first_batch_ns'])}" if row["first_batch_ns"] is not None else None,
        ]
        said = [f"{capital(what)}: {', '.join(fact for fact in facts if fact)}.", *_queues(row["queues"])]
        if row["ops"]:
            section.blocks.append(_tree(row["ops"], said))
        else:
            section.notes += said
    call = content["diagnosis"]["fetch_call"]
    if section.blocks:
        section.notes.append(
            "fill: mean of depth / capacity; empty, full: share of the samples; per row: one worker; per batch: all "
            "workers together; cores: mean CPU"
        )
    if call is not None:
        section.blocks.append(_calls(call))
    return section


def _calls(call: dict[str, Any]) -> Block:
    """What a trace has within the waits for its data loader, callers in front of what they call."""
    rows = [[row["name"], str(row["threads"]), format_ratio(row["share"])] for row in call["calls"]]
    caption = [f"Calls of the loader within the waits; they cover {format_ratio(call['covered'])} of these."]
    return Block(("call", "threads", "of the loading"), rows, frozenset({1, 2}), caption=caption)


def _queues(state: str | None) -> list[str]:
    """Why the queues were not sampled, as a sentence; `state`: what the probe says, `not_recorded: why`."""
    if not state or state == "recorded":
        return []
    why = state.partition(": ")[2] or state
    number = ALIVE.fullmatch(why)
    if number:
        why = f"MindSpore samples one pipeline at a time, and iterator {number[1]} was still alive"
    return [f"Its queues were not sampled: {why}."]


def _tree(ops: Sequence[Op], caption: Sequence[str]) -> Block:
    """The operators, the one nearest the training loop first, each indented below its consumer."""
    rows = [_cells(op, depth, shown=shown) for op, depth, shown in below_consumers(ops)]
    head = ("operator", "does", "workers", "queue", "fill", "empty", "full", "per row", "per batch", "cores")
    return Block(head, rows, frozenset(range(2, 10)), caption=caption)


def below_consumers(ops: Sequence[Op]) -> Iterator[tuple[Op, int, bool]]:
    """Each operator behind its consumer, with its depth; the producers of one by number.

    An operator with several consumers comes again, with True, below each further one, its own producers only below
    the first. Operators that are each other's producers come as well, the lowest number first.
    """
    by_id = {op["op_id"]: op for op in sorted(ops, key=lambda op: op["op_id"])}
    producers: dict[int, list[int]] = {}
    for op in by_id.values():
        for consumer in op["consumers"]:
            producers.setdefault(consumer, []).append(op["op_id"])
    roots = [number for number, op in by_id.items() if not any(consumer in by_id for consumer in op["consumers"])]
    seen: set[int] = set()
    for root in [*roots, *by_id]:
        waiting = [] if root in seen else [(root, 0)]
        while waiting:
            number, depth = waiting.pop()
            shown = number in seen
            yield by_id[number], depth, shown
            seen.add(number)
            if not shown:
                waiting += [(producer, depth + 1) for producer in reversed(producers.get(number, ()))]


def _cells(op: Op, depth: int, *, shown: bool) -> list[str]:
    """A row of the table; of an operator that was shown before only where it stands."""
    label = "  " * depth + f"{op['op_type']} {op['op_id']}"
    if shown:
        return [f"{label}, see above", "", *["-"] * 8]
    queue, service, cpu = op["queue"], op["service"], op["cpu"]
    return [
        label,
        op["name"] or "",
        "-"
        if op["workers"] is None or op["inlined"]
        else str(op["workers"]) + (" proc" if op["uses_processes"] else ""),
        "-" if op["capacity"] is None else str(op["capacity"]),
        format_ratio(queue["mean_ratio"]) if queue else "-",
        format_ratio(queue["empty_share"]) if queue else "-",
        format_ratio(queue["full_share"]) if queue else "-",
        format_ns(service["mean_ns"]) if service else "-",
        format_ns(service["work_per_batch_ns"]) if service else "-",
        f"{cpu['mean_cores']:.2f}" if cpu and cpu["mean_cores"] is not None and not op["inlined"] else "-",
    ]


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
