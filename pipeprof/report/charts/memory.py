"""Memory of tensors and blocks: how much was alive, which operators held it at the peak, and the life of each block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import COLOURS, WIDTH, Chart, cut, inline, sentence
from pipeprof.report.memory.first_fit import with_places
from pipeprof.report.memory.svg import address_ranges, place_of
from pipeprof.report.words.memory import maker
from pipeprof.units import NS_PER_S, byte_unit, format_bytes, format_count, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]

POINTS, OPERATORS, BLOCKS = 400, 10, 400
HEIGHT, HEIGHT_OF_BLOCKS = 110, 260
AT_PEAK = ("alive at the peak", "#d7191c"), ("not alive then", "#9ecae1")
_HOW = "The red line is the peak. A rectangle is a block: as wide as it lived, {up}. Point at one to see what made it."


def chart(
    curve: Sequence[Row],
    peaks: Sequence[Row],
    alive: Sequence[Row],
    blocks: Sequence[Row],
    origin: str = "the launch",
    note: str = "",
) -> Chart:
    """From rows of memory/live_curve, memory/peak, memory/alive_at_peak and memory/lifetime of one rank.

    `note` says how lifetimes were reconstructed, empty for recorded ones.
    """
    title = "Memory of tensors and blocks"
    if not curve or not peaks:
        return Chart("chart-memory", title, "No lifetime of a tensor or block was recorded.")
    peak = peaks[0]
    said = (
        f"{format_bytes(peak['peak_bytes'])} in {format_count(peak['peak_blocks'], 'block')} at most, "
        f"{format_ns(peak['t_ns'])} after {origin}"
    )
    said += f", on {line(peak['device'])}" if peak["devices"] > 1 and peak["device"] else ""
    if alive:
        most = alive[0]
        said += f"; {line(maker(most, pool=bool(note)))} holds most of it: {format_bytes(most['bytes'])}"
        said += f" ({format_ratio(most['share'])})" if most["share"] is not None else ""
    drawn, fitted = with_places(blocks)
    where = "placed by first fit" if fitted else "where it lay (long gaps are shortened)"
    how = _HOW.format(up=f"as high as it is large, {where}")
    if peak["blocks"] > len(blocks):
        how += f" The {len(blocks):,} largest of {peak['blocks']:,} blocks are drawn; the curve has all of them."
    if len(blocks) > len(drawn):
        how += f" Not drawn, without an address: {len(blocks) - len(drawn):,}."
    how += f" {note}" if note else ""
    return Chart(
        "chart-memory",
        title,
        f"{sentence(said)}\n{how}",
        said,
        _drawn(curve, peak, alive, drawn, origin, pool=bool(note)),
    )


def _drawn(
    curve: Sequence[Row], peak: Row, alive: Sequence[Row], blocks: Sequence[Row], origin: str, *, pool: bool
) -> Any:
    import altair as alt

    last = max(*(row["high_ns"] for row in curve), *(row["released_ns"] or row["produced_ns"] for row in blocks))
    first = min(*(row["high_ns"] for row in curve), *(row["produced_ns"] for row in blocks))
    time = alt.Scale(domain=[_s(first), max(_s(last), _s(first) + 1e-6)], nice=False, zero=False)
    unit = byte_unit(peak["peak_bytes"])
    parts = [_curve(curve, peak, time, unit)]
    if alive:
        parts.append(_holders(alive, unit, pool=pool))
    parts.append(_blocks(blocks, peak, last, time, unit, origin, pool=pool))
    return alt.vconcat(*parts).resolve_scale(color="independent", x="independent")


def _curve(rows: Sequence[Row], peak: Row, time: Any, unit: tuple[str, int]) -> Any:
    import altair as alt

    levels = (level for row in rows for level in dict.fromkeys(_levels(row)))
    points = [{"t": _s(ns), "size": round(size / unit[1], 4)} for ns, size in levels]
    area = alt.Chart(inline(points)).mark_area(color=COLOURS[6], opacity=0.6, interpolate="step-after").encode(
        x=alt.X("t:Q", title=None, scale=time), y=alt.Y("size:Q", title=unit[0], axis=alt.Axis(tickCount=4))
    )  # fmt: skip
    return alt.layer(area, _rule(peak)).properties(width=WIDTH, height=HEIGHT, title="Alive over time")


def _levels(row: Row) -> tuple[tuple[int, int], tuple[int, int]]:
    """When it was how much, in a part of the time: the most, and what stays until the next part."""
    return (row["high_ns"], row["high_bytes"]), (row["last_ns"], row["last_bytes"])


def _rule(peak: Row) -> Any:
    import altair as alt

    return alt.Chart(inline([{"t": _s(peak["t_ns"])}])).mark_rule(color=AT_PEAK[0][1], strokeWidth=1.5).encode(x="t:Q")


def _holders(alive: Sequence[Row], unit: tuple[str, int], *, pool: bool) -> Any:
    import altair as alt

    bars = [
        {"name": cut(line(maker(row, pool=pool)), 60, end=True), "size": round(row["bytes"] / unit[1], 4),
         "label": f"{format_bytes(row['bytes'])} in {format_count(row['blocks'], 'block')}"}
        for row in alive
    ]  # fmt: skip
    size = {"width": WIDTH, "height": {"step": 18}, "title": "What held it at the peak"}
    base = alt.Chart(inline(bars)).encode(
        y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labels=False, ticks=False)),
        x=alt.X("size:Q", title=unit[0], scale=alt.Scale(nice=False)),
    )  # fmt: skip
    words = base.mark_text(align="left", dx=4, color="currentColor", limit={"expr": "width"})
    labels = words.encode(x=alt.value(0), text="told:N").transform_calculate(told="datum.name + ': ' + datum.label")
    return alt.layer(base.mark_bar(color=AT_PEAK[0][1], opacity=0.35), labels).properties(**size)


def _blocks(
    rows: Sequence[Row], peak: Row, last: int, time: Any, unit: tuple[str, int], origin: str, *, pool: bool
) -> Any:
    import altair as alt

    ranges = address_ranges(rows)
    marks = []
    for row in rows:
        end = last if row["released_ns"] is None else row["released_ns"]
        low = place_of(row["address"], ranges) / unit[1]
        high = low + row["bytes"] / unit[1]
        held = row["produced_ns"] <= peak["t_ns"] < (end if row["released_ns"] is not None else end + 1)
        lived = "still held" if row["released_ns"] is None else format_ns(end - row["produced_ns"])
        marks.append({
            "from": _s(row["produced_ns"]), "to": _s(end), "low": round(low, 5), "high": round(high, 5),
            "kind": AT_PEAK[0 if held else 1][0],
            "told": f"{line(maker(row, pool=pool))}: {format_bytes(row['bytes'])}, {lived}",
        })  # fmt: skip
    scale = alt.Scale(domain=[name for name, _ in AT_PEAK], range=[colour for _, colour in AT_PEAK])
    up = alt.Y("low:Q", title=unit[0], axis=alt.Axis(tickCount=5))
    drawn = alt.Chart(inline(marks)).mark_rect(stroke="#fff", strokeWidth=0.3, opacity=0.85, clip=True).encode(
        x=alt.X("from:Q", title=f"seconds since {origin}", scale=time), x2="to:Q", y=up, y2="high:Q",
        color=alt.Color("kind:N", title=None, scale=scale), tooltip="told:N",
    )  # fmt: skip
    size = {"width": WIDTH, "height": HEIGHT_OF_BLOCKS, "title": "Life of each block"}
    return alt.layer(drawn, _rule(peak)).properties(**size)


def _s(ns: float) -> float:
    return round(ns / NS_PER_S, 6)
