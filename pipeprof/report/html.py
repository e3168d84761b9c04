"""The report as one HTML page: the first screen's answer beside its picture, then a part for each section and chart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report.answer import answer_of, verdict_in
from pipeprof.report.answer.command import pasted
from pipeprof.report.answer.screen import labelled
from pipeprof.report.answer.shape import capital
from pipeprof.report.answer.since import since
from pipeprof.report.charts import INSTALL, can_draw, charts_of
from pipeprof.report.charts.script import figure
from pipeprof.report.code_html import to_copy
from pipeprof.report.kept import stored
from pipeprof.report.page import chip, page
from pipeprof.report.pictures import picture_of
from pipeprof.report.section_html import section_lines
from pipeprof.report.sections.of_run import sections
from pipeprof.report.words.verdict import phrase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.record.run import Run
    from pipeprof.report.charts.chart import Chart
    from pipeprof.report.sections import Section

    Row = dict[str, Any]

_SLASH = re.compile("(?<!<)/")  # not of a closing tag
# The parts of the page, in their order, and the charts of each.
PARTS: dict[str, tuple[str, ...]] = {
    "pipeline": ("chart-pipeline",), "queues": (), "storage": (),
    "steps": ("chart-time", "chart-step", "chart-slowest"), "profiler-steps": (),
    "operators": ("chart-operators", "chart-flame"), "communication": (), "whole-run": ("chart-run",),
    "resources": ("chart-memory",), "cpu": (), "ranks": ("chart-ranks",), "causes": (), "stragglers": (),
    "diagnosis": (), "run": (), "not-measured": (),
}  # fmt: skip


def text(content: dict[str, Any], charts: Sequence[Chart] = (), note: str = "") -> str:
    """The page; every name and sentence in it is escaped. `note`, a sentence, stands where charts would."""
    drawn = {chart.name: chart for chart in charts if chart.drawn is not None or chart.table}
    lacking = [chart for chart in charts if chart.name not in drawn]
    parts = _parts({section.name: section for section in sections(content)}, drawn, lacking, note)
    contents = [f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title, _ in parts]
    picture = picture_of(content, linked="chart-pipeline" in drawn)
    body = [
        '<section class="first" aria-label="answer">', *_first(content), *picture,
        "</section>",
        *(['<nav class="contents" aria-label="contents"><ul>', *contents, "</ul></nav>"] if parts else []),
    ]  # fmt: skip
    for name, _, lines in parts:
        body += [f'<section id="{name}">', *lines, "</section>"]
    live = any(chart.drawn is not None for chart in charts)
    return page(f"pipeprof report {content['run']['path']}", body, drawn=live)


def of_run(run: Run, content: dict[str, Any]) -> str:
    """The page with the charts of a run; without their extra it says how to install them."""
    if not can_draw():
        return text(content, note=f"The charts are left out: install them with `{INSTALL}`.")
    charts = charts_of(run, content, stored(run))
    nothing = all(chart.drawn is None for chart in charts)
    return text(content, charts, "Nothing was measured that a chart could show." if nothing else "")


def _parts(
    said: Mapping[str, Section], drawn: Mapping[str, Chart], lacking: Sequence[Chart], note: str
) -> list[tuple[str, str, list[str]]]:
    """Name, title and lines of each part that has something to show; at the end a line for each chart that is not."""
    parts = []
    for name, own in PARTS.items():
        charts = [drawn[chart] for chart in own if chart in drawn]
        title = said[name].title if name in said else charts[0].title if charts else ""
        lines = section_lines(said[name]) if name in said else [f"<h2>{escape(title)}</h2>"]
        if title:
            drawings = [line for chart in charts for line in figure(chart, below=title)]
            parts.append((name, title, [*lines[:1], *drawings, *lines[1:]]))
    notes = [words(note)] if note else []
    notes += [f"{escape(chart.title)}: {words(chart.caption)}" for chart in lacking]
    if notes:
        title = "Charts that are not drawn"
        parts.append(
            ("not-drawn", title, [f"<h2>{title}</h2>", "<ul>", *(f"<li>{one}</li>" for one in notes), "</ul>"])
        )
    return parts


def _first(content: dict[str, Any]) -> list[str]:
    """The first screen's answer."""
    answer = answer_of(content)
    chips = [("limit", phrase(verdict_in(content).lead))]
    chips += [(answer.confidence, f"confidence: {answer.confidence}")] if answer.confidence else []
    lines = [
        "<div>", f'<p class="headline">{words(answer.sentence)}</p>', '<ul class="chips">',
        *(chip(said, kind, "li") for kind, said in chips), "</ul>", '<dl class="answer">',
    ]  # fmt: skip
    texts = dict(labelled(answer))
    began = {"Since": since(content)}
    rows = {name: texts.pop(name) for name in ("Cause", "Where") if name in texts} | began | texts
    looks = {"Do": ' class="do"'}
    lines += [
        f"<dt>{escape(label)}</dt><dd{looks.get(label, '')}>{_at_folders(words(said))}</dd>"
        for label, said in rows.items()
        if said
    ]
    if answer.extra:
        shown = "\n".join(map(escape, answer.extra))
        lines.append(f"<dt>{escape(answer.extra_title)}</dt><dd>{to_copy(shown)}</dd>")
    if answer.next_command:
        shown = "\n".join(_unbroken(line) for line in pasted(answer.next_command))
        lines.append(f"<dt>Next</dt><dd>{words(capital(answer.next_purpose))}:{to_copy(shown)}</dd>")
    return [*lines, "</dl>", "</div>"]


def _unbroken(line: str) -> str:
    """A command that is broken between its words alone, not behind the signs of an option."""
    return " ".join(f"<span>{_at_folders(escape(word))}</span>" for word in line.split(" "))


def _at_folders(text: str) -> str:
    """HTML whose paths are broken behind a folder where they have to be, not within a name or a line's number."""
    return _SLASH.sub("/<wbr>", text)
