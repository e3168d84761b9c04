"""A panel for each stage of the data pipeline: its place, its work, its queue over time and how full, the advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report.pictures import anchor, name_of
from pipeprof.units import format_count, format_ns, format_ratio

if TYPE_CHECKING:
    from pipeprof.report.pictures.flow import Stage

Row = dict[str, Any]

BINS = 10
WIDTH, HEIGHT = 1000, 100  # of a drawing's own axes; it is stretched


def panels(
    stages: Sequence[Stage], curve: Sequence[Row], histogram: Sequence[Row], advice: Mapping[str, str], origin: str
) -> list[str]:
    """The lines of all; `curve` and `histogram` are rows of the queries of that name, of this one pipeline.

    `advice`: sentences on the stage that limits, by what they are. `origin`: what times count from.
    """
    lines = []
    for stage in stages:
        facts = {**_facts(stage), **(advice if stage.limits else {})}
        lines += [
            f'<article class="panel{" limit" if stage.limits else ""}" id="{anchor(stage)}" tabindex="-1">',
            f"<h3>{name_of(stage)}</h3>", '<dl class="answer">',
            *(f"<dt>{escape(name)}</dt><dd>{words(said)}</dd>" for name, said in facts.items() if said), "</dl>",
            *_depth([row for row in curve if row["op_id"] == stage.op_id], origin),
            *_classes([row for row in histogram if row["op_id"] == stage.op_id]), "</article>",
        ]  # fmt: skip
    return ['<div class="panels">', *lines, "</div>"] if lines else []


def _facts(stage: Stage) -> dict[str, str]:
    workers = format_count(stage.workers, "worker") if stage.workers else ""
    busy = "not timed" if stage.busy is None else f"busy {format_ratio(stage.busy)}"
    work = "" if stage.work_ns is None else f"{format_ns(stage.work_ns)} for a batch"
    could = "" if stage.rate is None else f"up to {stage.rate:,.1f} batches a second"
    takes = "" if stage.pace is None or not could else f"; the training takes {stage.pace:,.1f}"
    fill = "" if stage.fill is None else f"{format_ratio(stage.fill)} full on average"
    size = "" if stage.capacity is None else f"of capacity {stage.capacity}"
    return {
        "Where": stage.place, "Work": ", ".join(filter(None, (stage.kind, workers, busy, work))),
        "Rate": could + takes, "Queue": ", ".join(filter(None, (size, fill))),
        "Feeds": stage.feeds,
    }  # fmt: skip


def _depth(rows: Sequence[Row], origin: str) -> list[str]:
    """The mean depth as a line, within the band from the least to the most."""
    known = [row for row in rows if row["mean_depth"] is not None]
    if not known:
        return []
    begin, end = known[0]["t_ns"], known[-1]["t_ns"]
    most = max(row["capacity"] or row["high_depth"] for row in known) or 1
    if begin == end:
        known = [known[0], known[0] | {"t_ns": end + 1}]
    places = [WIDTH * (row["t_ns"] - begin) / (known[-1]["t_ns"] - begin) for row in known]

    def line(column: str) -> list[str]:
        return [f"{x:.0f},{_height(row[column] / most):.1f}" for x, row in zip(places, known, strict=True)]

    band = " ".join([*line("high_depth"), *reversed(line("low_depth"))])
    title = f"Entries in its queue over time, 0 to {most}"
    about = f"{title}: least {min(row['low_depth'] for row in known)}, most {max(row['high_depth'] for row in known)}"
    ends = f"<span>{format_ns(begin)}</span><span>{format_ns(end)} since {escape(origin)}</span>"
    drawn = f'<polygon class="reach" points="{band}"/><polyline class="depth" points="{" ".join(line("mean_depth"))}"/>'
    return _figure(title, about, drawn, ends)


def _height(share: float) -> float:
    """From the top; a line at either end is seen whole."""
    return HEIGHT * (0.97 - 0.94 * share)


def _classes(rows: Sequence[Row]) -> list[str]:
    """The share of the samples in each tenth of the queue."""
    if not rows:
        return []
    wide = WIDTH / BINS
    drawn = "".join(
        f'<rect class="entries" x="{wide * row["bin"] + 4:.0f}" width="{wide - 8:.0f}" '
        f'y="{HEIGHT * (1 - row["share"]):.1f}" height="{HEIGHT * row["share"]:.1f}"/>'
        for row in rows
    )
    often = max(rows, key=lambda row: (row["share"], -row["bin"]))
    low, share = 100 // BINS * often["bin"], format_ratio(often["share"])
    title = "How often it was how full"
    about = f"{title}: {low} to {low + 100 // BINS} % full in {share} of the samples"
    return _figure(title, about, drawn, "<span>empty</span><span>full</span>")


def _figure(title: str, about: str, drawn: str, ends: str) -> list[str]:
    look = f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" width="100%" height="64"'
    return [
        "<figure>", f"<figcaption>{escape(title)}</figcaption>",
        f'<svg class="plot" {look} role="img" aria-label="{escape(about)}">{drawn}</svg>',
        f'<p class="ends">{ends}</p>', "</figure>",
    ]  # fmt: skip
