"""The data pipelines of both sides of a comparison beside each other; what changed has an edge in colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import Chart, sentence
from pipeprof.report.charts.pipeline import ENDS, boxes_of, edges_of, graph
from pipeprof.units import format_count, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = dict[str, Any]

SIDES = ("base", "new")
_ALONE = "only on this side"
MOST_WORK, MOST_FILL = 1.1, 0.1  # a tenth more or less work, or fill by a tenth of the queue, is marked
_GAP = 0.04  # between the sides, of the width
_HALF = (1 - _GAP) / 2


def chart(pipelines: Mapping[str, Sequence[Row]]) -> Chart:
    """From `pipelines` of a comparison: the stages of each side."""
    title = "Data pipelines of both sides"
    stages = {side: _first(pipelines.get(side) or ()) for side in SIDES}
    lacks = [f"of the {side} side" for side in SIDES if not stages[side]]
    if lacks:
        lack = f"The data pipeline {' and '.join(lacks)} is not known."
        return Chart("chart-pipelines", title, f"{lack} A baseline does not keep it.")
    changed = changes(stages)
    names = list(dict.fromkeys(name for side in SIDES for name in changed[side]))
    how = {name: changed["new"].get(name) or "only in the base" for name in names}
    how |= {name: "only in the new run" for name, what in changed["new"].items() if what == _ALONE}
    listed = "; ".join(f"{line(name)}: {what}" for name, what in how.items())
    said = f"{format_count(len(names), 'operator')} changed: {listed}" if names else "no operator changed"
    caption = (
        f"{sentence(said)}\nThe base is on the left, the source at the top. A box's colour is the fill of its output "
        "queue. What changed has a red edge and a last line that says how: other workers, a tenth more or less work a "
        "batch, a fill that moved by a tenth of the queue. Whether a time changed beyond noise is in the tables."
    )
    return Chart("chart-pipelines", title, caption, said, _drawn(stages, changed))


def _first(stages: Sequence[Row]) -> list[Row]:
    """Of several pipelines that with the most work."""
    spent: dict[str, float] = {}
    for row in stages:
        spent[row["pipeline"]] = spent.get(row["pipeline"], 0.0) + (row["work_ns"] or 0.0)
    most = max(spent, key=lambda key: (spent[key], key), default=None)
    return [row for row in stages if row["pipeline"] == most]


def changes(stages: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, str]]:
    """By side: the name of each operator that changed, and how; one that the other side has not is `only here`."""
    named = {side: {row["name"]: row for row in rows} for side, rows in stages.items()}
    changed: dict[str, dict[str, str]] = {side: {} for side in SIDES}
    for side, other in (SIDES, SIDES[::-1]):
        for name in named[side]:
            if name not in named[other]:
                changed[side][name] = _ALONE
    for name, base in named["base"].items():
        if name in named["new"] and (said := _change(base, named["new"][name])):
            changed["new"][name] = said
    return changed


def _change(base: Row, new: Row) -> str:
    parts = []
    if base["workers"] != new["workers"]:
        parts.append(f"workers {_or(base['workers'])} -> {_or(new['workers'])}")
    if base["work_ns"] and new["work_ns"]:
        ratio = new["work_ns"] / base["work_ns"]
        if not 1 / MOST_WORK < ratio < MOST_WORK:
            parts.append(f"{format_ns(base['work_ns'])} -> {format_ns(new['work_ns'])}")
    fills = base["fill_ratio"], new["fill_ratio"]
    if None not in fills and abs(fills[1] - fills[0]) >= MOST_FILL:
        parts.append(f"{format_ratio(fills[0])} -> {format_ratio(fills[1])} full")
    return ", ".join(parts)


def _or(value: object) -> object:
    return "?" if value is None else value


def _drawn(stages: Mapping[str, Sequence[Row]], changed: Mapping[str, Mapping[str, str]]) -> Row:
    """The base in the left half, the new side in the right one."""
    boxes: list[Row] = []
    edges: list[Row] = []
    for at, side in enumerate(SIDES):
        ops = [_op(row) for row in stages[side]]
        names = {row["op_id"]: row["name"] for row in stages[side]}
        own = boxes_of(ops, {row["op_id"]: row["place"] for row in stages[side]})
        for box in own:
            box |= {end: round(at * (_HALF + _GAP) + box[end] * _HALF, 4) for end in ("left", "right")}
            change = changed[side].get(names[box["op"]], "")
            box |= {"change": change, "text": [*box["text"][:3], change] if change else box["text"]}
        boxes += own
        edges += edges_of(own, ops)
    rows = max(box["bottom"] for box in boxes) + ENDS
    return graph(boxes, edges, rows, limit={"expr": "(datum.right - datum.left) * width - 12"})


def _op(row: Row) -> Row:
    """A stage as an operator of a report's pipeline."""
    return {
        "op_id": row["op_id"], "op_type": row["op_type"], "name": row["label"], "workers": row["workers"],
        "consumers": [] if row["consumer_id"] is None else [row["consumer_id"]], "inlined": False,
        "queue": {"mean_ratio": row["fill_ratio"]}, "service": {"work_per_batch_ns": row["work_ns"]},
    }  # fmt: skip
