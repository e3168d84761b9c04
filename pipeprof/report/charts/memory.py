"""Memory of tensors and blocks: how much was alive, which operators held it at the peak, and the life of each block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import Chart, cut, filled, sentence
from pipeprof.report.memory.svg import address_ranges, place_of, with_places
from pipeprof.report.words.memory import maker
from pipeprof.units import NS_PER_S, byte_unit, format_bytes, format_count, format_ns, format_ratio

Row = dict[str, Any]

POINTS, OPERATORS, BLOCKS = 400, 10, 400
ALIVE, NOT_ALIVE = "alive at the peak", "not alive then"
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
) -> Row:
    last = max(*(row["high_ns"] for row in curve), *(row["released_ns"] or row["produced_ns"] for row in blocks))
    first = min(*(row["high_ns"] for row in curve), *(row["produced_ns"] for row in blocks))
    unit, size = byte_unit(peak["peak_bytes"])
    levels = (level for row in curve for level in dict.fromkeys(_levels(row)))
    return filled(
        "memory", unit=unit, time=[_s(first), max(_s(last), _s(first) + 1e-6)], since=f"seconds since {origin}",
        peak=[{"t": _s(peak["t_ns"])}],
        levels=[{"t": _s(ns), "size": round(level / size, 4)} for ns, level in levels],
        holders=[
            {"name": cut(line(maker(row, pool=pool)), 60, end=True), "size": round(row["bytes"] / size, 4),
             "label": f"{format_bytes(row['bytes'])} in {format_count(row['blocks'], 'block')}"}
            for row in alive
        ],
        blocks=_blocks(blocks, peak, last, size, pool=pool),
    )  # fmt: skip


def _levels(row: Row) -> tuple[tuple[int, int], tuple[int, int]]:
    """When it was how much, in a part of the time: the most, and what stays until the next part."""
    return (row["high_ns"], row["high_bytes"]), (row["last_ns"], row["last_bytes"])


def _blocks(rows: Sequence[Row], peak: Row, last: int, size: int, *, pool: bool) -> list[Row]:
    ranges = address_ranges(rows)
    marks = []
    for row in rows:
        end = last if row["released_ns"] is None else row["released_ns"]
        low = place_of(row["address"], ranges) / size
        high = low + row["bytes"] / size
        held = row["produced_ns"] <= peak["t_ns"] < (end if row["released_ns"] is not None else end + 1)
        lived = "still held" if row["released_ns"] is None else format_ns(end - row["produced_ns"])
        marks.append({
            "from": _s(row["produced_ns"]), "to": _s(end), "low": round(low, 5), "high": round(high, 5),
            "kind": ALIVE if held else NOT_ALIVE,
            "told": f"{line(maker(row, pool=pool))}: {format_bytes(row['bytes'])}, {lived}",
        })  # fmt: skip
    return marks


def _s(ns: float) -> float:
    return round(ns / NS_PER_S, 6)
