"""Every training step as a stack of its phases; a brush below chooses the steps above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.charts.chart import WIDTH, Chart, spec_of
from pipeprof.report.sections.block import PHASES
from pipeprof.units import NS_PER_MS, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]

COLOURS = {
    "data_wait": "#d95f02",
    "compute": "#1b9e77",
    "forward_backward": "#1b9e77",
    "tail": "#7570b3",
    "whole": "#1b9e77",
}
LONGEST = "#e7298a"


def chart(rows: Sequence[Row]) -> Chart | None:
    """The step trace of one rank from rows of step/curve; None with fewer than two points."""
    if len(rows) < 2:
        return None
    steps, slowest = sum(row["steps"] for row in rows), max(rows, key=lambda row: row["max_ns"])
    said = (
        f"{format_count(steps, 'step')}, the longest of {format_ns(slowest['max_ns'])} at step {slowest['first_step']}"
    )
    thinned = max(row["steps"] for row in rows)
    caption = f"{said}. Drag over the lower chart to see some of the steps; a double click shows all."
    if thinned > 1:
        caption += f" A bar is the mean of up to {thinned} steps in a row, the tick above it the longest of them."
    return Chart("chart-steps", "Every step", caption, said, spec_of(_drawn(rows), said))


def phases_of(row: Row) -> dict[str, float]:
    """The mean phases of a point, in ns; they add up to the mean step."""
    if row["data_wait_ns"] is None:
        return {"whole": row["dur_ns"]}
    if row["forward_backward_ns"] is None:
        return {"data_wait": row["data_wait_ns"], "compute": row["dur_ns"] - row["data_wait_ns"]}
    return {"data_wait": row["data_wait_ns"], "forward_backward": row["forward_backward_ns"], "tail": row["tail_ns"]}


def _drawn(rows: Sequence[Row]) -> Any:
    import altair as alt

    bars = [
        {
            "first": row["first_step"],
            "last": row["last_step"] + 1,
            "phase": PHASES[phase],
            "order": order,
            "ms": length / NS_PER_MS,
        }
        for row in rows
        for order, (phase, length) in enumerate(_known(phases_of(row)).items())
    ]
    longest = [
        {"first": row["first_step"], "last": row["last_step"] + 1, "ms": row["max_ns"] / NS_PER_MS} for row in rows
    ]
    names = list(dict.fromkeys(bar["phase"] for bar in bars))
    codes = {text: code for code, text in PHASES.items()}
    colours = alt.Scale(domain=names, range=[COLOURS[codes[name]] for name in names])
    brush = alt.selection_interval(encodings=["x"], name="chosen")
    across = alt.X("first:Q", title="step", scale=alt.Scale(domain=brush, nice=False))
    stacked = alt.Chart(alt.Data(values=bars), width=WIDTH, height=220).mark_bar(clip=True, binSpacing=0).encode(
        x=across, x2="last:Q", y=alt.Y("ms:Q", title="ms", stack="zero"),
        color=alt.Color("phase:N", scale=colours, title=None), order="order:Q",
    )  # fmt: skip
    ticks = alt.Chart(alt.Data(values=longest)).mark_rule(clip=True, color=LONGEST, strokeWidth=1.5).encode(
        x=across, x2="last:Q", y="ms:Q"
    )  # fmt: skip
    below = alt.Chart(alt.Data(values=longest), width=WIDTH, height=50).mark_area(color=COLOURS["compute"]).encode(
        x=alt.X("first:Q", title="all steps", scale=alt.Scale(nice=False)),
        y=alt.Y("ms:Q", title="longest, ms", axis=alt.Axis(tickCount=2)),
    ).add_params(brush)  # fmt: skip
    return alt.vconcat(alt.layer(stacked, ticks).properties(width=WIDTH, height=220), below)


def _known(phases: dict[str, float | None]) -> dict[str, float]:
    return {phase: length for phase, length in phases.items() if length is not None}
