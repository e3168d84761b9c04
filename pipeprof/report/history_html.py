"""A history as one HTML page: what the terminal shows, and a picture of each series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report import history_rows as said
from pipeprof.report.page import page, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]

WIDTH, HEIGHT, EDGE = 900, 140, 6
_STYLE = """
figure { margin: 1em 0; } figcaption { font-size: .9em; }
svg { max-width: 100%; height: auto; }
pre { margin: .2em 0 1em 1em; white-space: pre-wrap; }
"""


def text(content: Row) -> str:
    """The page; every name and sentence in it is escaped."""
    body: list[str] = []
    for sentence, below in said.changes(content):
        lines = "\n".join(escape(line) for line in below)
        body += [f'<p class="headline">{words(sentence)}</p>', f"<pre>{lines}</pre>"]
    body += [f"<p>{words(note)}</p>" for note in said.notes(content)]
    body += ["<h2>Series</h2>", *table(said.HEAD, map(_cells, said.rows(content)), said.NUMBERS)]
    for series in content["series"]:
        body += _picture(series)
    return page(said.title(content), body, _STYLE)


def _cells(row: Sequence[str]) -> str:
    cells = (
        f'<td class="number">{escape(cell)}</td>' if at in said.NUMBERS else f"<td>{escape(cell)}</td>"
        for at, cell in enumerate(row)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _picture(series: Row) -> list[str]:
    """A circle per measurement with its revision and time as its title, and a line for each level."""
    points = series["points"]
    top = float(max(point["value"] for point in points)) * 1.05
    across = (WIDTH - 2 * EDGE) / max(1, len(points) - 1)

    def height(number: float) -> float:
        return HEIGHT - EDGE - number / top * (HEIGHT - 2 * EDGE)

    drawn = []
    for at, point in enumerate(points):
        told = f"{said.value(series, point['value'])}, {(point['revision'] or '-')[: said.SHORT]}, {point['at'] or '-'}"
        drawn.append(
            f'<circle cx="{EDGE + at * across:.1f}" cy="{height(point["value"]):.1f}" r="3" fill="currentColor"'
            f' fill-opacity=".6"><title>{escape(told)}</title></circle>'
        )
    for first, last, level in _levels(series):
        y = height(level)
        drawn.append(
            f'<line x1="{EDGE + first * across:.1f}" x2="{EDGE + last * across:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
            ' stroke="var(--bad)" stroke-width="2"/>'
        )
    name = f"{series['workload']}, {said.name_of(series)}, {series['machine']}"
    opening = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
    caption = f"{name}: 0 to {said.value(series, top)}, {len(points)} measurements, conditions {series['conditions']}"
    return [
        "<figure>", f'{opening} aria-label="{escape(name)}">', *drawn, "</svg>",
        f"<figcaption>{escape(caption)}</figcaption>", "</figure>",
    ]  # fmt: skip


def _levels(series: Row) -> list[tuple[int, int, float]]:
    """First and last place of each level, and its value."""
    changes, last = series["changes"], len(series["points"]) - 1
    if not changes:
        return [(0, last, series["median"])]
    starts = [0, *(change["position"] for change in changes)]
    ends = [*(change["position"] - 1 for change in changes), last]
    return list(zip(starts, ends, [changes[0]["before"], *(change["after"] for change in changes)], strict=True))
