"""The report as one HTML page: what the terminal shows, with the phases of a step and the queues drawn."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from pipeprof.report.page import page, table, words
from pipeprof.report.sections import Block, Section, sections
from pipeprof.report.sections.block import PHASES, focus_of, rows_at
from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Row = dict[str, Any]

WIDTH, CURVE_HEIGHT, BAR_HEIGHT = 900, 160, 26
MOST_POINTS = 1500  # of a curve: more cannot be seen at this width
_COLOURS = {"data_wait": "#d95f02", "compute": "#1b9e77", "forward_backward": "#1b9e77", "tail": "#7570b3"}
_STYLE = """
p.strong { font-size: 1.15em; font-weight: 600; margin: .3em 0; }
td.tree { white-space: pre; }
figure { margin: 1em 0; } figcaption { font-size: .9em; }
svg { max-width: 100%; height: auto; }
"""


def text(content: dict[str, Any]) -> str:
    """The page; every name and sentence in it is escaped."""
    first, *others = sections(content)
    body = _section(first)
    for section in others:
        body += [f"<h2>{escape(section.title)}</h2>", *_section(section)]
        if section.title == "Steps":
            body += _pictures(content)
    return page(first.title, body, _STYLE)


def _section(section: Section) -> list[str]:
    lines = [f'<p class="strong">{words(sentence)}</p>' for sentence in section.strong]
    if section.notes:
        lines += ["<ul>", *(f"<li>{words(sentence.strip())}</li>" for sentence in section.notes), "</ul>"]
    for block in section.blocks:
        lines += _block(block)
    return lines


def _block(block: Block) -> list[str]:
    body = []
    for row in block.rows:
        cells = [
            f'<td class="{"number" if index in block.right else "tree" if cell.startswith(" ") else ""}">'
            f"{escape(cell)}</td>"
            for index, cell in enumerate(row)
        ]
        body.append(f"<tr>{''.join(cells)}</tr>".replace(' class=""', ""))
    return table(block.head, body, block.right)


def _pictures(content: dict[str, Any]) -> list[str]:
    focus = focus_of(content)
    phases = [row for row in rows_at(content["steps"]["phases"], focus) if row["phase"] in _COLOURS]
    return _phases(phases) + _curve(rows_at(content["steps"].get("curve", ()), focus))


def _phases(rows: Sequence[Row]) -> list[str]:
    """The mean step as a bar; the parts add up to the step."""
    ordered = sorted(rows, key=lambda row: list(PHASES).index(row["phase"]))
    total = sum(row["mean_ns"] for row in ordered)
    if len(ordered) < 2 or not total:
        return []
    at, parts, said = 0.0, [], []
    for row in ordered:
        wide = row["mean_ns"] / total * WIDTH
        name = f"{PHASES[row['phase']]} {format_ns(row['mean_ns'])} ({format_ratio(row['mean_ns'] / total)})"
        parts.append(
            f'<rect x="{at:.1f}" y="0" width="{wide:.1f}" height="{BAR_HEIGHT}" fill="{_COLOURS[row["phase"]]}">'
            f"<title>{escape(name)}</title></rect>"
        )
        said.append(f'<span style="color:{_COLOURS[row["phase"]]}">&#9632;</span> {escape(name)}')
        at += wide
    return _figure(parts, BAR_HEIGHT, "a training step", "mean training step: " + ", ".join(said))


def _curve(rows: Sequence[Row]) -> list[str]:
    """Length of every training step; above MOST_POINTS steps the longest of each group, so that no peak is lost."""
    if len(rows) < 2:
        return []
    every = -(-len(rows) // MOST_POINTS)
    points = [max(row["dur_ns"] for row in rows[at : at + every]) for at in range(0, len(rows), every)]
    top = max(points) or 1
    step = WIDTH / max(len(points) - 1, 1)
    line = " ".join(
        f"{index * step:.1f},{CURVE_HEIGHT * (1 - value / top * 0.95):.1f}" for index, value in enumerate(points)
    )
    drawn = [f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1"/>']
    what = f"length of {len(rows)} training steps, 0 to {format_ns(top)}"
    more = f"; of {every} neighbours the longest" if every > 1 else ""
    return _figure(drawn, CURVE_HEIGHT, what, escape(what + more))


def _figure(parts: Iterable[str], height: int, label: str, caption: str) -> list[str]:
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    opening = f'<svg {size} role="img" aria-label="{escape(label)}">'
    return ["<figure>", opening, *parts, "</svg>", f"<figcaption>{caption}</figcaption>", "</figure>"]
