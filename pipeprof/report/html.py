"""The report as one HTML page: what the terminal shows, with charts where their extra is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report.answer import answer_of
from pipeprof.report.answer.command import pasted
from pipeprof.report.answer.screen import labelled
from pipeprof.report.answer.shape import capital
from pipeprof.report.answer.since import since
from pipeprof.report.charts import INSTALL, can_draw, charts_of
from pipeprof.report.charts.script import bundle, figure
from pipeprof.report.kept import stored
from pipeprof.report.page import CHARTS, page
from pipeprof.report.section_html import STYLE, section_lines
from pipeprof.report.sections import sections
from pipeprof.report.sections.block import focus_of, rows_at
from pipeprof.report.sections.run import shown_of
from pipeprof.report.words.phases import INTERVALS, TRACE
from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.record.run import Run
    from pipeprof.report.charts.chart import Chart

    Row = dict[str, Any]

WIDTH, HEIGHT = 900, 26  # of the bar of the mean step
_COLOURS = {
    "data_wait": "#d95f02", "launch": "#999999", "compute": "#1b9e77", "forward_backward": "#1b9e77",
    "forward": "#1b9e77", "backward": "#66a61e", "gradients": "#e6ab02", "optimizer": "#7570b3", "after": "#e7298a",
    "tail": "#7570b3",
}  # fmt: skip
_STYLE = (
    CHARTS
    + STYLE
    + """
.answer td { overflow-wrap: anywhere; } .answer pre { white-space: pre-wrap; }
"""
    + "".join(f"span.{phase} {{ color: {colour}; }}\n" for phase, colour in _COLOURS.items())
)
_ROW = '<tr><th scope="row">'


def text(content: dict[str, Any], charts: Sequence[Chart] = (), note: str = "") -> str:
    """The page; every name and sentence in it is escaped. `note`, a sentence, stands where charts would."""
    body = _first(content)
    if charts:
        body.append("<h2>Charts</h2>")
        body += [f"<p>{words(capital(said))}.</p>" for said in shown_of(content, focus_of(content))]
        body += [line for chart in charts for line in figure(chart)]
    elif note:
        body.append(f"<p>{words(note)}</p>")
    for section in sections(content):
        body += section_lines(section)
        if section.title == "Steps":
            body += _mean_step(content)
    return page(f"pipeprof report {content['run']['path']}", body, _STYLE, bundle() if charts else "")


def of_run(run: Run, content: dict[str, Any]) -> str:
    """The page with the charts of a run; without their extra it says how to install them."""
    if not can_draw():
        return text(content, note=f"The charts are left out: install them with `{INSTALL}`.")
    charts = charts_of(run, content, stored(run))
    return text(content, charts, "" if charts else "Nothing was measured that a chart could show.")


def _first(content: dict[str, Any]) -> list[str]:
    """The first screen's answer."""
    answer = answer_of(content)
    lines = [f'<p class="headline"><strong>{words(answer.sentence)}</strong></p>']
    texts = dict(labelled(answer))
    began = {"Since": since(content)}
    rows = {name: texts.pop(name) for name in ("Cause", "Where") if name in texts} | began | texts
    body = [f"{_ROW}{escape(label)}</th><td>{words(said)}</td></tr>" for label, said in rows.items() if said]
    if answer.extra:
        body.append(
            f"{_ROW}{answer.extra_title}</th><td><pre>{chr(10).join(map(escape, answer.extra))}</pre></td></tr>"
        )
    if answer.next_command:
        shown = "<br>".join(f"<code>{escape(line)}</code>" for line in pasted(answer.next_command))
        purpose = f"{words(capital(answer.next_purpose))}:<br>"
        body.append(f"{_ROW}Next</th><td>{purpose}{shown}</td></tr>")
    return [*lines, '<table class="answer">', "<tbody>", *body, "</tbody>", "</table>"]


def _mean_step(content: dict[str, Any]) -> list[str]:
    focus = focus_of(content)
    phases = [row for row in rows_at(content["steps"]["phases"], focus) if row["phase"] in _COLOURS]
    if any(row["phase"] == "compute" for row in phases):  # its parts are those of other steps
        phases = [row for row in phases if row["phase"] in ("data_wait", "compute")]
    parts = rows_at(content["steps"]["trace"], focus)
    if any(not row["measured"] for row in parts):
        phases = parts
    return _bar(phases)


def _bar(rows: Sequence[Row]) -> list[str]:
    """The mean step as a bar; the parts add up to the step."""
    names = {**INTERVALS, **TRACE} if any("measured" in row for row in rows) else INTERVALS
    ordered = sorted(rows, key=lambda row: list(_COLOURS).index(row["phase"]))
    total = sum(row["mean_ns"] for row in ordered)
    if len(ordered) < 2 or not total:
        return []
    at, parts, said = 0.0, [], []
    for row in ordered:
        wide = row["mean_ns"] / total * WIDTH
        name = f"{names[row['phase']]} {format_ns(row['mean_ns'])} ({format_ratio(row['mean_ns'] / total)})"
        parts.append(
            f'<rect x="{at:.1f}" y="0" width="{wide:.1f}" height="{HEIGHT}" fill="{_COLOURS[row["phase"]]}">'
            f"<title>{escape(name)}</title></rect>"
        )
        said.append(f'<span class="{row["phase"]}">&#9632;</span> {escape(name)}')
        at += wide
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    opening = f'<svg {size} role="img" aria-label="a training step">'
    caption = f"mean training step: {', '.join(said)}"
    return ["<figure>", opening, *parts, "</svg>", f"<figcaption>{caption}</figcaption>", "</figure>"]
