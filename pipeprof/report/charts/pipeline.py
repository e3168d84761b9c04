"""The data pipeline as boxes along its edges, from the source down to the training; a click shows a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pipeprof.escape import line
from pipeprof.report.answer.shape import stage_names
from pipeprof.report.charts.chart import Chart, alone, cut, filled, middle_cut, sentence
from pipeprof.report.charts.overtime import seconds
from pipeprof.units import format_count, format_ns, format_ratio

Row = dict[str, Any]

BINS, POINTS = 10, 200
DOT = 30  # square px of a sample alone
ROW_HEIGHT = 80  # px of a box and the edge below it
ENDS = 0.2  # of it: the edge
_PLACES = "The source is at the top, the training reads at the bottom."
_FILL = "A box's colour is the fill of its output queue in the steady state."
_WORK = "The bar in a box is how long it works for a batch, beside the slowest operator."


def chart(
    pipelines: Sequence[Row],
    curve: Sequence[Row],
    histogram: Sequence[Row],
    places: Sequence[Row] = (),
    origin: str = "the launch",
) -> Chart:
    """The training's first pipeline, of a report's `pipelines` of one rank.

    The other rows are of queue/curve, queue/histogram and queue/place, of the same rank.
    """
    title = "Data pipeline"
    recorded = [row for row in pipelines if row["ops"]]
    if not recorded:
        return Chart("chart-pipeline", title, "No data pipeline was recorded.")
    shown = next((row for row in recorded if row["role"] == "train"), recorded[0])
    code = {row["op_id"]: row["code"] or row["site"] for row in places if row["pipeline_key"] == shown["pipeline_key"]}
    boxes = boxes_of(shown["ops"], code)
    slow = [box for box in boxes if box["work"]]
    said = f"{format_count(len(boxes), 'operator')} from source to training"
    if slow:
        slowest = max(slow, key=lambda box: (box["work"], -box["op"]))
        said += f"; {slowest['name']} takes the most time for a batch: {format_ns(slowest['work'])} of a worker"
    notes = [_PLACES, *([_FILL] if any(box["fill"] is not None for box in boxes) else []), *([_WORK] if slow else [])]
    if len(recorded) > 1:
        notes.append(f"One of {len(recorded)} pipelines is drawn.")
    depths = [row for row in curve if row["pipeline_key"] == shown["pipeline_key"]]
    if depths:
        notes.append("A click on a box, or the menu, shows its queue below, from the start on, in which it fills.")
    else:
        notes.append("The depth of its queues over time was not recorded.")
    classes = [row for row in histogram if row["pipeline_key"] == shown["pipeline_key"]]
    drawn = _drawn(boxes, shown["ops"], depths, classes, origin)
    return Chart("chart-pipeline", title, " ".join([sentence(said), *notes]), said, drawn)


def boxes_of(ops: Sequence[Row], code: Mapping[int, str | None]) -> list[Row]:
    """Where each operator stands (`row` from the top, `left` and `right` from 0 to 1) and what is written in it.

    It reaches from `top` to `bottom`, in rows.

    `code`: `file:line` by operator.
    """
    by_id, names = {op["op_id"]: op for op in ops}, stage_names(ops)
    level: dict[int, int] = {}
    for op_id in _consumers_first(by_id):
        level[op_id] = max((level[other] + 1 for other in by_id[op_id]["consumers"] if other in level), default=0)
    deepest = max(level.values())
    beside = {depth: [op_id for op_id in sorted(level) if level[op_id] == depth] for depth in range(deepest + 1)}
    return [
        {
            "op": op_id, "row": deepest - depth, "top": deepest - depth, "bottom": round(deepest - depth + 1 - ENDS, 4),
            "left": round((at + 0.02) / len(own), 4), "right": round((at + 0.98) / len(own), 4),
            **_written(by_id[op_id], names[op_id], code.get(op_id), len(own)),
        }
        for depth, own in beside.items()
        for at, op_id in enumerate(own)
    ]  # fmt: skip


def _consumers_first(by_id: Mapping[int, Row]) -> list[int]:
    """Each operator behind those that it feeds, whatever their numbers; by number where they feed each other."""
    graph = {op_id: [other for other in op["consumers"] if other in by_id] for op_id, op in by_id.items()}
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError:
        return sorted(by_id)


def _written(op: Row, name: str, place: str | None, columns: int) -> Row:
    most = 40 // columns  # which a box has room for at 400 px
    queue, service = op["queue"] or {}, op["service"] or {}
    fill, work = queue.get("mean_ratio"), service.get("work_per_batch_ns")
    workers = f", {format_count(op['workers'], 'worker')}" if op["workers"] else ""
    facts = [
        f"queue {format_ratio(fill)} full" if fill is not None else "",
        f"{format_ns(work)} a batch" if work else "",
    ]
    said = ", ".join(fact for fact in facts if fact) or ("no queue" if op["inlined"] else "not measured")
    kind = f"{line(op['op_type'])} {op['op_id']}{workers}"
    return {
        "name": name,
        "text": [middle_cut(name, most), cut(kind, most), cut(said, most),
                 cut(line(place or ""), most, end=True) or " "],
        "fill": fill, "work": work,
    }  # fmt: skip


def _drawn(
    boxes: Sequence[Row], ops: Sequence[Row], curve: Sequence[Row], histogram: Sequence[Row], origin: str
) -> Row:
    slowest = max((box["work"] or 0 for box in boxes), default=0)
    names = {box["op"]: box["name"] for box in boxes}
    work = [
        box | {"under": box["bottom"] - 0.07,
               "reach": round(box["left"] + (box["right"] - box["left"]) * box["work"] / slowest, 4)}
        for box in boxes if box["work"]
    ]  # fmt: skip
    queues = list(dict.fromkeys(names[row["op_id"]] for row in curve if row["op_id"] in names))
    depths = _depths(curve, names)
    return graph(
        boxes, edges_of(boxes, ops), max(box["row"] for box in boxes) + 1,
        work=work, since=f"seconds since {origin}", depths=depths,
        single=any(point.get("dot") for point in depths), classes=_classes(histogram, names),
        queued=bool(queues), chosen=[_choice(queues)] if queues else [],
    )  # fmt: skip


def graph(boxes: Sequence[Row], edges: Sequence[Row], rows: float, **below: Any) -> Row:
    """Boxes that are placed in so many rows, and the edges between them; with `below` of `specs/pipeline.json`."""
    known, unknown = ([box for box in boxes if (box["fill"] is not None) is is_known] for is_known in (True, False))
    chosen = below.pop("chosen", [])
    without = {"limit": 0, "work": [], "since": "", "depths": [], "single": False, "classes": [], "queued": False}
    return filled(
        "pipeline", boxes=boxes, edges=edges, rows=rows, height=ROW_HEIGHT * rows,
        known=known, unknown=unknown, chosen=chosen if known else [], chosen_unknown=[] if known else chosen,
        **{**without, **below},
    )  # fmt: skip


def _choice(queues: Sequence[str]) -> Row:
    """What a click on a box, or the menu, chooses."""
    return {
        "name": "queue", "select": {"type": "point", "fields": ["name"], "on": "click"}, "value": [{"name": queues[0]}],
        "bind": {"name": {"input": "select", "options": queues, "name": "queue "}},
    }  # fmt: skip


def _depths(curve: Sequence[Row], names: dict[int, str]) -> list[Row]:
    points = [
        {"t": seconds(row["t_ns"]), "low": row["low_depth"], "high": row["high_depth"],
         "depth": round(row["mean_depth"], 3), "name": names[row["op_id"]], "capacity": row["capacity"]}
        for row in curve if row["op_id"] in names and row["mean_depth"] is not None
    ]  # fmt: skip
    single = alone(points, "name")
    return [point | {"dot": DOT if point in single else 0} for point in points] if single else points


def _classes(histogram: Sequence[Row], names: dict[int, str]) -> list[Row]:
    return [
        {"low": row["bin"] / BINS, "high": (row["bin"] + 1) / BINS, "none": 0, "share": round(row["share"], 4),
         "name": names[row["op_id"]]}
        for row in histogram if row["op_id"] in names
    ]  # fmt: skip


def edges_of(boxes: Sequence[Row], ops: Sequence[Row]) -> list[Row]:
    """From the middle of each box's lower side to those of its `consumers`."""
    by_op = {box["op"]: box for box in boxes}
    return [
        {"x": _middle(by_op[op["op_id"]]), "y": by_op[op["op_id"]]["bottom"], "x2": _middle(by_op[other]),
         "y2": by_op[other]["top"]}
        for op in ops for other in op["consumers"] if other in by_op
    ]  # fmt: skip


def _middle(box: Row) -> float:
    return float(round((box["left"] + box["right"]) / 2, 4))
