"""The charts of a comparison's page: what was measured, what changed most, and the steps of both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeprof.escape import line
from pipeprof.query.measure import CURVE_POINTS
from pipeprof.report.charts.chart import COLOURS, Chart, coloured, filled, sentence, ticks, time_unit
from pipeprof.report.compare import rows as compare_rows
from pipeprof.report.compare.rows import PROVEN
from pipeprof.report.words.comparison import metric_name
from pipeprof.report.words.names import INTERVALS
from pipeprof.units import NS_PER_MS, byte_unit, format_count, format_ns, format_ratio
from pipeprof.verdict.gate.causes import OF_STEPS
from pipeprof.verdict.gate.explain import Level, sum_of_phases

Row = dict[str, Any]

SIDES = {"base": COLOURS[7], "new": COLOURS[0]}
MOST_CHANGES = 20
LABELS = 1.1  # room for the labels of the bars, beside the longest ones, on a narrow page, too
_NOT_MEASURED = "Nothing inside a step was measured on both sides."
KINDS = {
    "phase": ("phase of the step", COLOURS[6]),
    "pipeline": ("pipeline, work per batch", COLOURS[1]),
    "op": ("network, own time per step", COLOURS[0]),
}


def charts_of(content: Mapping[str, Any]) -> list[Chart]:
    """The charts of a comparison, in the order of its page; `content` as `pipeprof compare --format json` has it."""
    return [
        _repetitions(content),
        _changes(content["metrics"]),
        _curves(content.get("curves") or {}),
    ]


def _repetitions(content: Mapping[str, Any]) -> Chart:
    title = "Every repetition"
    metrics = {metric["name"]: metric for metric in content["metrics"]}
    known = content.get("repetitions") or []
    shown = [one for one in known if one["name"] in metrics and (one["base"] or one["new"])]
    if not shown:
        return Chart("chart-repetitions", title, "The values of single repetitions are not known.")
    said = ", ".join(
        f"{metric_name(line(one['name']))}: {metrics[one['name']]['verdict']} "
        f"({len(one['base'])} + {len(one['new'])} repetitions)"
        for one in shown
    )
    caption = (
        "A point is a repetition, in the order in which they were measured. A line is the estimate of a side. The "
        "band is where the new side lies with 95 % confidence. Beyond the dashed lines a change counts."
    )
    panels = [_panel(metrics[one["name"]], one) for one in shown]
    drawn = {"vconcat": panels, "resolve": {"scale": {"color": "shared"}}}
    return Chart("chart-repetitions", title, caption, said, drawn)


def _panel(metric: Row, measured: Row) -> Row:
    """With the interval of the new side as a band, and what counts as a change beyond dashed lines."""
    name, divisor = _unit(metric, measured)
    points = [
        {"at": at + 1, "value": round(value / divisor, 6), "side": side}
        for side in SIDES for at, value in measured[side]
    ]  # fmt: skip
    base, low, high = (metric.get(key) for key in ("base", "ci_low", "ci_high"))
    bounds = [metric.get(name) for name in ("counts_below", "counts_above")]
    return filled(
        "repetitions", points=points, unit=name, sides=coloured(SIDES), ticks=ticks(max(one["at"] for one in points)),
        title=[f"{metric_name(line(metric['name']))}: {metric['verdict']}", compare_rows.change(metric)],
        estimates=[
            {"value": metric[side] / divisor, "side": side} for side in SIDES if isinstance(metric[side], int | float)
        ],
        band=[{"low": base * low / divisor, "high": base * high / divisor}]
        if isinstance(base, int | float) and low is not None and high is not None else [],
        edges=[{"edge": edge / divisor} for edge in bounds if edge is not None and isinstance(base, int | float)],
    )  # fmt: skip


def _unit(metric: Row, measured: Row) -> tuple[str, float]:
    """The unit of a panel's axis, and what it is of the metric's own."""
    unit = metric.get("unit") or ""
    largest = max(value for side in SIDES for _, value in measured[side])
    if unit == "bytes":
        return byte_unit(largest)
    if unit != "ns":
        return line(unit), 1
    return time_unit(largest)


def _changes(metrics: Sequence[Row]) -> Chart:
    title = "What changed most"
    whole = _step_change(metrics)
    found = sorted(filter(None, (_change(one, whole) for one in metrics)), key=lambda row: -abs(row["ms"]))
    changed = [row for row in found if row["ms"]]
    if not changed:
        none = "Everything inside a step took as long on both sides." if found else _NOT_MEASURED
        return Chart("chart-changes", title, none)
    largest = changed[0]
    said = f"the largest difference is {_signed(largest['ms'])}: {largest['name']}"
    more = (
        f" The {MOST_CHANGES} largest of {len(changed)} differences are drawn." if len(changed) > MOST_CHANGES else ""
    )
    caption = (
        f"{sentence(said)}{more} Work of the pipeline runs beside the training, and operators of the network are parts "
        "of a phase: bars do not add up."
        + (" In brackets is the share of the change of the mean step." if whole else "")
    )
    return Chart("chart-changes", title, caption, said, _bars(changed[:MOST_CHANGES]))


def _step_change(metrics: Sequence[Row]) -> float | None:
    """How much longer the phases of a step became together, in ns; None where that is not known or not above noise."""
    if all(one["verdict"] not in PROVEN for one in metrics if one["name"] in OF_STEPS):
        return None
    return sum_of_phases({one["name"]: Level(one.get("base"), one.get("new")) for one in metrics}, "delta")


def _change(metric: Row, whole: float | None) -> Row | None:
    family, _, name = metric["name"].partition("/")
    base, new = metric.get("base"), metric.get("new")
    if family not in KINDS or metric.get("unit") != "ns" or base is None or new is None:
        return None
    shown = INTERVALS.get(name, name) if family == "phase" else line(name.rsplit("/", 1)[-1])
    share = (new - base) / whole if whole and family != "pipeline" else None  # that runs beside the step
    return {"name": shown, "kind": KINDS[family][0], "ms": round((new - base) / NS_PER_MS, 6), "share": share}


def _bars(rows: Sequence[Row]) -> Row:
    numbered = [row | {"key": f"{row['name']} ({at})", "label": _labelled(row)} for at, row in enumerate(rows)]
    kinds = {name: colour for name, colour in KINDS.values() if any(row["kind"] == name for row in rows)}
    ends = _with_room(*(bound(0, *(row["ms"] for row in rows)) for bound in (min, max)))
    return filled("changes", bars=numbered, kinds=coloured(kinds), ends=ends)


def _with_room(low: float, high: float) -> list[float]:
    """Where an axis ends: the labels of all bars stand at the right, and none on the names at the left."""
    return [low, high + LABELS * (high - low)]


def _labelled(row: Row) -> str:
    return _signed(row["ms"]) + ("" if row["share"] is None else f" ({format_ratio(row['share'])})")


def _signed(ms: float) -> str:
    return ("+" if ms > 0 else "-") + format_ns(abs(ms) * NS_PER_MS)


def _curves(curves: Mapping[str, Sequence[float]]) -> Chart:
    title = "Steps of both sides"
    known = [side for side in SIDES if len(curves.get(side) or ()) > 1]
    if not known:
        return Chart(
            "chart-curves", title, "The steps of single repetitions are not known: baselines do not keep them."
        )
    said = ", ".join(f"{side}: {format_count(len(curves[side]), 'point')}" for side in known)
    left_out = "".join(f" Those of {side} are not known." for side in SIDES if side not in known)
    caption = (
        "Training steps of the repetition of each side whose usual step is in the middle: of its lowest rank, without "
        f"warm-up. Of more than {CURVE_POINTS} steps a point is the mean of several, which hides single long ones."
    )
    points = [
        {"share": round((at + 0.5) / len(curves[side]), 4), "ms": round(ns / NS_PER_MS, 6), "side": side}
        for side in known for at, ns in enumerate(curves[side])
    ]  # fmt: skip
    drawn = filled("curves", points=points, sides=coloured(SIDES))
    return Chart("chart-curves", title, caption + left_out, said, drawn)
