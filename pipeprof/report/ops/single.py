"""Operators one by one, or added up by type: profile_analyze's table, from the query op/profile_analyze."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.report.ops.content import Content, Part, names
from pipeprof.report.ops.question import KEYS, PLACED, SINGLE, Order, parse_order
from pipeprof.report.words import busy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from pipeprof.query.engine import Engine
    from pipeprof.report.ops.question import Question

INFOS = "op/operators"
_CHOSEN = ("rep", "rank", "op_id", "place")
_NS = 1e9
_UNBOUNDED = 1e300


def build(engine: Engine, question: Question, *, either_side: bool = False) -> Content:
    """The tables and the summary that a question asks for.

    `either_side`: when nothing on the device is meant, and no side was asked for, the host's side is shown. Raises
    UsageError for an unknown column.
    """
    order = parse_order(question.order_by or "self_ns", SINGLE)
    every = not _is_chosen(question, order)
    if not every:
        engine.register_rows("chosen", _chosen(engine, question, order))
    content = Content("single", aggregated=question.aggregate is not None)
    totals = engine.rows("op/side_total")
    _add_totals(content, totals)
    if question.print_only == "summary":
        _add_busy(content, engine.rows("op/busy"))
    for side in _sides(question):
        content.parts.append(_part(engine, question, order, side, every=every))
    if either_side and not question.print_only and len(content.parts) == 1 and not content.parts[0].count:
        host = _part(engine, question, order, "host", every=every)
        content.parts = [host] if host.count else content.parts
    if question.copy_time:
        _add_copy_time(engine, question, content)
    if question.print_only != "host" and "host" in {row["side"] for row in totals} and not content.total["device_ns"]:
        content.notes.append("no operator has device time: --print-only host shows the host's side")
    return content


def _sides(question: Question) -> list[str]:
    if question.print_only == "summary":
        return []
    if question.print_only:
        return [question.print_only]
    return ["device", "host"] if question.show_host else ["device"]


def _is_chosen(question: Question, order: Order) -> bool:
    """Whether something is asked that only Python can tell."""
    return bool(question.by_name or question.by_type or question.input_dtype or order.column in PLACED)


def _chosen(engine: Engine, question: Question, order: Order, kind: str | None = None) -> pa.Table:
    """Operators that pass the filters on names, types and data types, with their place in the order."""
    is_meant, dtype = question.matcher(), question.input_dtype
    chosen: list[tuple[int, ...]] = []
    values: list[str | None] = []
    for row in engine.each(INFOS):
        if (
            is_meant(row["name"], row["type"])
            and (kind is None or row["type"] == kind)
            and (dtype is None or dtype in listed(row["in_types"]))
        ):
            chosen.append(tuple(row[name] for name in _CHOSEN[:-1]))
            if order.column in PLACED:
                values.append(row[order.column])
    columns: list[list[int | None]] = [[row[index] for row in chosen] for index in range(len(_CHOSEN) - 1)]
    columns.append(_places(values, order.column) if order.column in PLACED else [None] * len(chosen))
    return _table(dict(zip(_CHOSEN, columns, strict=True)))


def _table(columns: dict[str, list[int | None]]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - slow to import; a table without filters does without

    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


@lru_cache(maxsize=4096)
def listed(text: str | None) -> Sequence[Any]:
    """The entries of a list that a source wrote as text."""
    try:
        entries = msgspec.json.decode(text or "[]")
    except msgspec.MsgspecError:
        return [part.strip() for part in (text or "").split(",")]
    return entries if isinstance(entries, list) else []


def _places(values: Sequence[str | None], column: str) -> list[int | None]:
    """Rank of each value; equal values share one. Ids are ordered as numbers, shapes number by number."""
    key = _KEYS.get(column, str)
    keys = [None if value is None else key(value) for value in values]
    ranks = {value: rank for rank, value in enumerate(sorted({value for value in keys if value is not None}))}
    return [None if value is None else ranks[value] for value in keys]


def _id_key(text: str) -> tuple[Any, ...]:
    return (0, int(text), "") if text.isascii() and text.isdecimal() and len(text) < 1000 else (1, 0, text)


def _shape_key(text: str) -> tuple[Any, ...]:
    entries = listed(text)
    if all(isinstance(shape, list) and all(isinstance(size, int) for size in shape) for shape in entries):
        return (0, tuple(tuple(shape) for shape in entries), "")
    return (1, (), text)


_KEYS: dict[str, Callable[[str], Any]] = {"opr_id": _id_key, "in_shapes": _shape_key, "out_shapes": _shape_key}


def _part(engine: Engine, question: Question, order: Order, side: str, *, every: bool) -> Part:
    rows = engine.rows("op/profile_analyze", side=side, every=every, **_params(question, order))
    rows = [{"side": side, **row} for row in rows]
    for row in rows:
        row["cumulative_share"] = (
            row["cumulative_ns"] / row["side_ns"] if _has(row, "cumulative_ns", "side_ns") else None
        )
    counts = {(row["rep"], row["rank"]): row.pop("all_rows") for row in rows}
    return Part(side, names(rows), sum(counts.values()), several=len(counts) > 1)


def _has(row: dict[str, Any], value: str, divisor: str) -> bool:
    return row[value] is not None and bool(row[divisor])


def _params(question: Question, order: Order) -> dict[str, Any]:
    column, ascending = order
    if column == "cumulative_ns":  # the largest running sum is that of the shortest operator
        column, ascending = "self_ns", not ascending
    aliases = {"share": "self_ns", **dict.fromkeys(PLACED, "place")}
    if question.aggregate is not None:  # added up, only the type is still there
        aliases |= {name: "none" for name in PLACED if name != "type"}
    return {
        "top": question.top or 0,
        "key": KEYS[question.top_end_key],
        "bounded": question.min_time is not None or question.max_time is not None,
        "least_ns": _ns(question.min_time, -_UNBOUNDED),
        "most_ns": _ns(question.max_time, _UNBOUNDED),
        "by": "op" if question.aggregate is None else question.aggregate_by or "all",
        "aggregate": question.aggregate or "sum",
        "order_by": aliases.get(column, column),
        "ascending": ascending,
    }


def _ns(seconds: float | None, default: float) -> float:
    return default if seconds is None else max(-_UNBOUNDED, min(_UNBOUNDED, seconds * _NS))


def _add_totals(content: Content, totals: Sequence[dict[str, Any]]) -> None:
    sums: dict[str, float | None] = {"device": None, "host": None}
    for row in totals:
        if row["total_ns"] is not None:
            sums[row["side"]] = (sums[row["side"]] or 0.0) + row["total_ns"]
    content.summary = {"total device time": sums["device"], "total host time": sums["host"]}
    primary = [row for row in totals if row["side"] == "device"] or totals
    content.total = {
        "count": sum(row["count"] for row in primary),
        "self_ns": sums["device"] if sums["device"] is not None else sums["host"],
        "total_ns": sums["device"] if sums["device"] is not None else sums["host"],
        "device_ns": sums["device"],
        "host_ns": sums["host"],
    }


def _add_busy(content: Content, rows: Sequence[dict[str, Any]]) -> None:
    """How busy the devices are, of all ranks; `busy` of the total for programs."""
    devices = busy.telling(rows)
    several = len({(row["rep"], row["rank"]) for row in devices}) > 1
    for row in devices:
        where = f"rep {row['rep']}, rank {row['rank']}: " if several else ""
        content.busy.append(where + busy.sentence(row))
    content.total["busy"] = devices


def _add_copy_time(engine: Engine, question: Question, content: Content) -> None:
    """Two lines for operators of type Copy among those that are chosen: time to the end, and to the kernel."""
    order = Order("self_ns", ascending=False)
    engine.register_rows("chosen", _chosen(engine, question, order, kind="Copy"))
    params = {**_params(question, order), "by": "all", "top": 0, "side": "device", "every": False}
    for key, title in (("total", "copy time"), ("wait", "copy wait time")):
        values = {}
        for how in ("sum", "mean"):
            rows = engine.rows("op/profile_analyze", **{**params, "key": key, "aggregate": how})
            times = [row["self_ns"] for row in rows if row["self_ns"] is not None]
            values[how] = sum(times) / (len(times) if how == "mean" else 1) if times else None
        content.total[f"{title.replace(' ', '_')}_ns"] = values["sum"]
        content.total[f"{title.replace(' ', '_')}_mean_ns"] = values["mean"]
        content.summary[title] = values["sum"]
        content.summary[f"{title}, mean"] = values["mean"]
