"""The charts of a comparison's page: what was measured, what changed most, and the steps of both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.query.measure import CURVE_POINTS
from pipeprof.report.charts import altair, pipelines
from pipeprof.report.charts.chart import COLOURS, WIDTH, Chart, counted, inline, sentence, time_unit
from pipeprof.report.compare import rows as compare_rows
from pipeprof.report.compare.why import PROVEN
from pipeprof.report.words.comparison import metric_name
from pipeprof.report.words.phases import INTERVALS
from pipeprof.units import NS_PER_MS, byte_unit, format_count, format_ns, format_ratio
from pipeprof.verdict.gate.causes import OF_STEPS
from pipeprof.verdict.gate.explain import Level, sum_of_phases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = dict[str, Any]

SIDES = {"base": COLOURS[6], "new": COLOURS[1]}
MOST_CHANGES = 20
_NOT_MEASURED = "Nothing inside a step was measured on both sides."
_WITHOUT_NUMBER = "slice(datum.label, 0, lastindexof(datum.label, ' ('))"  # of its place, which makes it one of a kind
KINDS = {
    "phase": ("phase of the step", COLOURS[2]),
    "pipeline": ("pipeline, work per batch", COLOURS[1]),
    "op": ("network, own time per step", COLOURS[0]),
}


def charts_of(content: Mapping[str, Any]) -> list[Chart]:
    """The charts of a comparison, in the order of its page; `content` as `pipeprof compare --format json` has it."""
    return [
        _repetitions(content),
        _changes(content["metrics"]),
        pipelines.chart(content.get("pipelines") or {}),
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
    alt = altair()

    panels = [_panel(metrics[one["name"]], one) for one in shown]
    drawn = alt.vconcat(*panels).resolve_scale(color="shared")
    return Chart("chart-repetitions", title, caption, said, drawn)


def _panel(metric: Row, measured: Row) -> Any:
    import altair as alt

    name, divisor = _unit(metric, measured)
    points = [
        {"at": at + 1, "value": round(value / divisor, 6), "side": side}
        for side in SIDES for at, value in measured[side]
    ]  # fmt: skip
    scale = alt.Scale(domain=list(SIDES), range=list(SIDES.values()))
    along = alt.X(
        "at:Q",
        title="repetition",
        axis=counted(max(point["at"] for point in points)),
        scale=alt.Scale(nice=False, zero=False, padding=12),
    )
    up = alt.Y("value:Q", title=name, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))
    colour = alt.Color("side:N", title=None, scale=scale)
    layers = _bounds(metric, divisor)
    estimates = [
        {"value": metric[side] / divisor, "side": side} for side in SIDES if isinstance(metric[side], int | float)
    ]
    layers += [
        alt.Chart(inline(estimates)).mark_rule(strokeWidth=2).encode(y="value:Q", color=colour),
        alt.Chart(inline(points)).mark_point(filled=True, size=50, opacity=0.9).encode(x=along, y=up, color=colour),
    ]
    heading = [f"{metric_name(line(metric['name']))}: {metric['verdict']}", compare_rows.change(metric)]
    return alt.layer(*layers).properties(width=WIDTH, height=110, title=heading)


def _bounds(metric: Row, divisor: float) -> list[Any]:
    """The interval of the new side as a band, and what counts as a change beyond dashed lines."""
    import altair as alt

    base, low, high = (metric.get(key) for key in ("base", "ci_low", "ci_high"))
    edges = [edge for edge in (metric.get("counts_below"), metric.get("counts_above")) if edge is not None]
    layers: list[Any] = []
    if not isinstance(base, int | float):
        return layers
    if low is not None and high is not None:
        band = [{"low": base * low / divisor, "high": base * high / divisor}]
        layers.append(
            alt.Chart(inline(band)).mark_rect(color=SIDES["new"], opacity=0.15).encode(y="low:Q", y2="high:Q")
        )
    if edges:
        dashes = [{"edge": edge / divisor} for edge in edges]
        dashed = alt.Chart(inline(dashes)).mark_rule(strokeDash=[4, 4], color="#888")
        layers.append(dashed.encode(y="edge:Q"))
    return layers


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


def _bars(rows: Sequence[Row]) -> Any:
    alt = altair()

    numbered = [row | {"key": f"{row['name']} ({at})", "label": _labelled(row)} for at, row in enumerate(rows)]
    used = [(name, colour) for name, colour in KINDS.values() if any(row["kind"] == name for row in rows)]
    scale = alt.Scale(domain=[name for name, _ in used], range=[colour for _, colour in used])
    ends = _with_room(*(bound(0, *(row["ms"] for row in rows)) for bound in (min, max)))
    base = alt.Chart(inline(numbered), width=WIDTH, height={"step": 20}).encode(
        y=alt.Y("key:N", sort=None, title=None, axis=alt.Axis(labelLimit=150, labelExpr=_WITHOUT_NUMBER)),
        x=alt.X("ms:Q", title="new minus base, ms", scale=alt.Scale(domain=ends, nice=False)),
    )  # fmt: skip
    bars = base.mark_bar().encode(color=alt.Color("kind:N", title=None, scale=scale))
    left = base.transform_filter("datum.ms < 0").mark_text(align="right", dx=-4).encode(text="label:N")
    right = base.transform_filter("datum.ms >= 0").mark_text(align="left", dx=4).encode(text="label:N")
    return alt.layer(bars, left, right)


def _with_room(low: float, high: float) -> list[float]:
    """Where an axis ends: the label of a bar stands beyond it, and not on the names at the left."""
    room = 0.4 * (high - low)
    return [low - 1.7 * room if low else 0.0, high + room if high else 0.0]


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
    alt = altair()

    points = [
        {"share": round((at + 0.5) / len(curves[side]), 4), "ms": round(ns / NS_PER_MS, 6), "side": side}
        for side in known for at, ns in enumerate(curves[side])
    ]  # fmt: skip
    scale = alt.Scale(domain=list(SIDES), range=list(SIDES.values()))
    along = alt.Scale(domain=[0, 1])
    drawn = alt.Chart(inline(points), width=WIDTH, height=160).mark_line(strokeWidth=1.5).encode(
        x=alt.X("share:Q", title="share of the training steps", axis=alt.Axis(format="%"), scale=along),
        y=alt.Y("ms:Q", title="step, ms", scale=alt.Scale(zero=True)),
        color=alt.Color("side:N", title=None, scale=scale),
    )  # fmt: skip
    return Chart("chart-curves", title, caption + left_out, said, drawn)
