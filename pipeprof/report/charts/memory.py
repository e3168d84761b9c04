"""Memory over time, one line for each device and process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import WIDTH, Chart, spec_of
from pipeprof.units import NS_PER_S, format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]

POINTS = 400
MOST = 8  # lines


def chart(rows: Sequence[Row]) -> Chart | None:
    """The levels of one rank from rows of memory/curve, without the whole machine's; None with fewer than two."""
    levels: dict[str, list[Row]] = {}
    for row in rows:
        if row["device"] != "host" and row["high_bytes"] is not None:
            levels.setdefault(_name(row), []).append(row)
    peaks = sorted(levels, key=lambda name: (-max(row["high_bytes"] for row in levels[name]), name))
    shown = {name: levels[name] for name in peaks[:MOST]}
    if max(map(len, shown.values()), default=0) < 2:
        return None
    said = f"the highest level is {format_bytes(max(row['high_bytes'] for row in shown[peaks[0]]))} ({peaks[0]})"
    caption = f"{said[0].upper()}{said[1:]}. Of neighbouring samples the highest is drawn."
    if len(levels) > MOST:
        caption += f" The {MOST} highest of {len(levels)} are drawn."
    return Chart("chart-memory", "Memory over time", caption, said, spec_of(_drawn(shown), said))


def _name(row: Row) -> str:
    process = f" {row['pid']}" if row["pid"] else ""
    return line(f"{row['device']} {row['name']}".strip() + process)


def _drawn(levels: dict[str, list[Row]]) -> Any:
    import altair as alt

    points = [
        {"s": row["high_ns"] / NS_PER_S, "mib": row["high_bytes"] / (1 << 20), "of": name}
        for name, rows in levels.items()
        for row in rows
    ]
    return alt.Chart(alt.Data(values=points), width=WIDTH, height=200).mark_line().encode(
        x=alt.X("s:Q", title="time, s"), y=alt.Y("mib:Q", title="MiB"), color=alt.Color("of:N", title=None)
    )  # fmt: skip
