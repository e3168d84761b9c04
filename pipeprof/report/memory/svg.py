"""The lifetime chart: one rectangle per block, time to the right, address upwards.

The attributes in the namespace `tag` are those of MegEngine's memory_flow.svg, so that what reads that file reads this.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import Any, NamedTuple

from pipeprof.errors import UsageError
from pipeprof.escape import xml as escape
from pipeprof.escape import xml_attribute
from pipeprof.report.words import memory as words
from pipeprof.units import NS_PER_MS, NS_PER_S, format_bytes, format_count, format_ns

Row = dict[str, Any]

WIDTH, HEIGHT, MARGIN = 1200, 640, 60
_TICKS = 6
_LONGEST_BAR = 120  # height of the bar that stands for an amount of memory
_EDGED = 3  # blocks that are lower have no edge, which would hide them
_GAP = 0.01  # of all memory drawn: largest empty range of addresses that is shown as it is
_NAMESPACE = "https://megengine.org.cn"
_COLOURS = ((100_000, "#c6dbef"), (NS_PER_MS, "#9ecae1"), (10 * NS_PER_MS, "#6baed6"), (100 * NS_PER_MS, "#4292c6"),
            (NS_PER_S, "#2171b5"))  # fmt: skip
_LONGEST = "#084594"
_TIMES = (("s", NS_PER_S), ("ms", NS_PER_MS), ("us", 1000), ("ns", 1))
_SIZES = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1))


class _Scale(NamedTuple):
    first_ns: int
    end_ns: int
    addresses: list[tuple[int, float]]  # see address_ranges
    height: float

    def x(self, at: int) -> float:
        return MARGIN + (at - self.first_ns) / max(self.end_ns - self.first_ns, 1) * (WIDTH - 2 * MARGIN)

    def y(self, address: int) -> float:
        return HEIGHT - MARGIN - place_of(address, self.addresses) / self.height * (HEIGHT - 2 * MARGIN)


def chart_of(content: dict[str, Any], rank: int | None = None) -> str:
    """The chart of memory's `content`: of the first repetition of a rank, else of the first rank."""
    rows = [row for row in content["lifetimes"] if rank in (None, row["rank"])]
    first = min(((row["rep"], row["rank"]) for row in rows), default=(0, rank or 0))
    chosen = [row for row in rows if (row["rep"], row["rank"]) == first]
    peak = next((row for row in content["peaks"] if (row["rep"], row["rank"]) == first), None)
    evidence = [row for row in content["evidence"] if (row["rep"], row["rank"]) == first]
    device = f", {peak['device']}" if peak is not None and peak["device"] else ""
    return svg(chosen, peak, f"repetition {first[0]}, rank {first[1]}{device}", words.reconstructed(evidence))


def svg(rows: Sequence[dict[str, Any]], peak: dict[str, Any] | None, title: str, note: str = "") -> str:
    """The chart of one rank's blocks (rows of the query memory/lifetime). Long empty ranges of addresses are shortened.

    Blocks without an address are not drawn, and the chart says how many; when none has one, they are placed by first
    fit. `note` is a sentence below the title. Raises UsageError when there are no blocks.
    """
    drawn, fitted = with_places(rows)
    if not drawn:
        hint = "leave --svg out: planned memory of a static graph is a table"
        raise UsageError(f"no lifetime chart: {title} has no blocks whose lifetimes are known", hint)
    end = max(max(row["released_ns"] or 0, row["produced_ns"]) for row in drawn)
    scale = _scale(drawn, end)
    parts = [_opening(), _heading(title, len(rows), len(drawn), peak, note)]
    parts += [
        _rectangle(row, scale, fitted=fitted)
        for row in sorted(drawn, key=lambda row: (row["produced_ns"], row["address"]))
    ]
    if peak is not None:
        parts.append(_peak(peak, scale))
    parts += [_axes(scale, fitted=fitted), _legend(), "</svg>"]
    return "\n".join(parts) + "\n"


def _scale(rows: Sequence[dict[str, Any]], end: int) -> _Scale:
    ranges = address_ranges(rows)
    height = max(place_of(row["address"], ranges) + row["bytes"] for row in rows)
    return _Scale(min(row["produced_ns"] for row in rows), end, ranges, max(height, 1.0))


def address_ranges(rows: Sequence[dict[str, Any]]) -> list[tuple[int, float]]:
    """Where ranges of addresses begin, and how far up they are drawn, sorted: long empty ones are shortened."""
    spans = sorted((row["address"], row["address"] + row["bytes"]) for row in rows)
    ranges = [list(spans[0])]
    for begin, stop in spans[1:]:
        if begin > ranges[-1][1]:
            ranges.append([begin, stop])
        else:
            ranges[-1][1] = max(ranges[-1][1], stop)
    most = sum(stop - begin for begin, stop in ranges) * _GAP
    places, at, before = [], 0.0, ranges[0][0]
    for begin, stop in ranges:
        at += min(begin - before, most)
        places.append((begin, at))
        at, before = at + stop - begin, stop
    return places


def place_of(address: int, ranges: Sequence[tuple[int, float]]) -> float:
    """How far up an address is drawn."""
    begin, drawn = ranges[bisect_right(ranges, address, key=lambda pair: pair[0]) - 1]
    return drawn + address - begin


def _opening() -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:tag="{_NAMESPACE}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">\n'
        '<rect width="100%" height="100%" fill="#ffffff"/>'
    )


def _heading(title: str, rows: int, drawn: int, peak: dict[str, Any] | None, note: str) -> str:
    left_out = f"; not drawn, without an address: {rows - drawn:,}" if rows > drawn else ""
    of_all = peak is not None and peak["blocks"] > rows
    shown = f"the {rows:,} largest of {peak['blocks']:,} blocks" if peak and of_all else format_count(drawn, "block")
    below = f'<text x="{MARGIN}" y="45" font-size="11" fill="#444444">{escape(note)}</text>' if note else ""
    return f'<text x="{MARGIN}" y="26" font-size="16">{escape(title)}: {shown}{left_out}</text>{below}'


def _rectangle(row: dict[str, Any], scale: _Scale, *, fitted: bool) -> str:
    produced, released = row["produced_ns"], row["released_ns"]
    stop = scale.end_ns if released is None else released
    top, bottom = scale.y(row["address"] + row["bytes"] - 1), scale.y(row["address"])
    tags = {
        "type": "tensor", "name": row["name"] or "", "address": None if fitted else hex(row["address"]),
        "size": _sum(row["bytes"], _SIZES),
        "produced": _sum(produced, _TIMES), "erased": None if released is None else _sum(released, _TIMES),
        "duration": None if released is None else _sum(released - produced, _TIMES),
        "group": None if row["op_id"] is None else str(row["op_id"]),
    }  # fmt: skip
    attributes = " ".join(f"tag:{key}={xml_attribute(value)}" for key, value in tags.items() if value is not None)
    edge = ' stroke="#ffffff" stroke-width="0.5"' if bottom - top > _EDGED else ""
    lived = "still held" if released is None else format_ns(released - produced)
    name = words.maker(row, pool=bool(row.get("evidence")))
    return (
        f'<rect x="{scale.x(produced):.2f}" y="{top:.2f}" width="{max(scale.x(stop) - scale.x(produced), 0.5):.2f}" '
        f'height="{max(bottom - top, 0.5):.2f}" fill="{_colour(row)}"{edge} {attributes}>'
        f"<title>{escape(name)}: {format_bytes(row['bytes'])}, {lived}</title></rect>"
    )


def _colour(row: dict[str, Any]) -> str:
    if row["released_ns"] is None:
        return _LONGEST
    return next((colour for limit, colour in _COLOURS if row["released_ns"] - row["produced_ns"] <= limit), _LONGEST)


def _peak(peak: dict[str, Any], scale: _Scale) -> str:
    at = scale.x(min(max(peak["t_ns"], scale.first_ns), scale.end_ns))
    side = 1 if at < WIDTH / 2 else -1
    return (
        f'<line x1="{at:.2f}" x2="{at:.2f}" y1="{MARGIN - 10}" y2="{HEIGHT - MARGIN}" stroke="#d62728"/>'
        f'<text x="{at + 4 * side:.2f}" y="{MARGIN - 2}" fill="#d62728" text-anchor="{"start" if side > 0 else "end"}">'
        f"peak {format_bytes(peak['peak_bytes'])}</text>"
    )


def _axes(scale: _Scale, *, fitted: bool) -> str:
    """Times below, and how much memory a height is on the left: addresses have no scale, their gaps are shortened."""
    bottom, parts = HEIGHT - MARGIN, []
    for tick in range(_TICKS + 1):
        at = scale.first_ns + (scale.end_ns - scale.first_ns) * tick // _TICKS
        x, anchor = scale.x(at), "start" if not tick else "end" if tick == _TICKS else "middle"
        parts.append(f'<line x1="{x:.2f}" x2="{x:.2f}" y1="{bottom}" y2="{bottom + 6}" stroke="#888888"/>')
        parts.append(f'<text x="{x:.2f}" y="{bottom + 20}" text-anchor="{anchor}">{format_ns(at)}</text>')
    per_byte = (HEIGHT - 2 * MARGIN) / scale.height
    size = 1 << max(int(_LONGEST_BAR / per_byte), 1).bit_length() - 1
    up = "placed by first fit" if fitted else "address (gaps shortened)"
    x, top = MARGIN - 14, bottom - size * per_byte
    parts.append(f'<path d="M{x - 4} {bottom}H{x}V{top:.2f}H{x - 4}" fill="none" stroke="#444444"/>')
    parts.append(f'<text transform="translate({x - 6} {bottom})rotate(-90)">{format_bytes(size)}</text>')
    parts.append(f'<text transform="translate({x - 6} {MARGIN + 130})rotate(-90)">{up}</text>')
    return "\n".join(parts)


def _legend() -> str:
    parts = [f'<text x="{MARGIN}" y="{HEIGHT - 14}">lived up to</text>']
    named = [*((colour, format_ns(limit)) for limit, colour in _COLOURS), (_LONGEST, "longer, or still held")]
    for index, (colour, name) in enumerate(named):
        x = MARGIN + 80 + index * 90
        parts.append(f'<rect x="{x}" y="{HEIGHT - 24}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16}" y="{HEIGHT - 14}">{escape(name)}</text>')
    return "\n".join(parts)


def _sum(value: int, units: Sequence[tuple[str, int]]) -> str:
    """`3MB 12KB 5B `, as MegEngine writes it."""
    parts = []
    for name, size in units:
        count, value = divmod(value, size)
        if count:
            parts.append(f"{count}{name} ")
    return "".join(parts) or f"0{units[-1][0]} "


def with_places(rows: Sequence[Row]) -> tuple[list[Row], bool]:
    """The blocks that can be drawn, and whether their addresses are places by first fit: when no block has one."""
    addressed = [row for row in rows if row["address"] is not None]
    return (addressed, False) if addressed else (first_fit(rows), True)


def first_fit(rows: Sequence[Row]) -> list[Row]:
    """The rows in the order in which they were made, each with the lowest `address` that is free then."""
    taken: list[tuple[int, int, int | None]] = []  # address, end, released; sorted
    placed = []
    for row in sorted(rows, key=lambda row: (row["produced_ns"], -row["bytes"])):
        taken = [block for block in taken if block[2] is None or block[2] > row["produced_ns"]]
        address = 0
        for begin, end, _ in taken:
            if begin - address >= row["bytes"]:
                break
            address = max(address, end)
        insort(taken, (address, address + row["bytes"], row["released_ns"]), key=lambda block: block[0])
        placed.append(row | {"address": address})
    return placed
