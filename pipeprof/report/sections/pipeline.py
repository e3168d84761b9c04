"""The data pipeline: its operators as a tree, with queues, times and CPU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipeprof.report.answer.shape import capital
from pipeprof.report.sections.block import Block, Section, rows_at
from pipeprof.units import format_count, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
