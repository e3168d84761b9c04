"""An HTML page that stands alone: nothing fetched, readable on paper, light and dark; no script but that of charts."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from pipeprof.escape import html as escape
from pipeprof.escape import html_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_STYLE = """
:root { color-scheme: light dark; --bad: #b3261e; --good: #1b7f3b; --unsure: #8a6100; --line: #8884; }
html { background: Canvas; color: CanvasText; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
table { border-collapse: collapse; margin: .5em 0 1.5em; }
th, td { border-bottom: 1px solid var(--line); padding: .3em .7em; text-align: left; vertical-align: top; }
th.number, td.number { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
code, p, li, h1, h2, h3, figcaption { overflow-wrap: anywhere; }
.headline { font-size: 1.25em; } h1 { font-size: 1.6em; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #7bd88f; --unsure: #ffcc66; } }
"""

SORTABLE = """
.wide { overflow-x: auto; }
th button { all: unset; cursor: pointer; text-decoration: underline dotted; }
th button:focus-visible { outline: 2px solid; }
th[aria-sort=ascending] button::after { content: " \\25b4"; }
th[aria-sort=descending] button::after { content: " \\25be"; }
@media print { .wide { overflow: visible; } }
"""  # of tables that `charts/specs/tables.js` sorts

CHARTS = """
figure { margin: 1em 0; } figcaption { font-size: .9em; } figcaption p { margin: .3em 0; }
figure > svg { max-width: 100%; height: auto; }
.chart { overflow-x: auto; }
.vega-bindings { display: flex; flex-wrap: wrap; gap: .3em 1.5em; }
.vega-bind label { display: flex; align-items: center; gap: .5em; }
@media print {
  .vega-bindings, .search { display: none; } figure { break-inside: avoid; }
  .chart { overflow: visible; } .chart svg { max-width: 100%; height: auto; }
}
"""  # of a page that `charts.script.figure` gives its charts


def page(title: str, body: Iterable[str], style: str = "", script: str = "", refresh_s: int = 0, look: str = "") -> str:
    """The whole page. `title` is text, `look` its classes; `body`, `style` and `script` are HTML, CSS and JavaScript.

    With a script, the page's policy allows that script and this style by their hashes, and nothing else. A page with
    `refresh_s` is asked for again after so many seconds.
    """
    name, heading = escape(title), f'<h1 class="{look}">' if look else "<h1>"
    css = _STYLE + style
    policy = "default-src 'none'; style-src " + (digest(css) if script else "'unsafe-inline'")
    if script:
        policy += f"; script-src {digest(script)}"
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        *([f'<meta http-equiv="refresh" content="{refresh_s}">'] if refresh_s else []),
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}</title>\n<style>{css}</style>\n</head>\n<body>\n<main>\n{heading}{html_words(title)}</h1>",
        *body,
        "</main>",
        *([f"<script>{script}</script>"] if script else []),
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def digest(text: str) -> str:
    """The source `'sha256-...'` of a Content-Security-Policy that allows this script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def table(head: Sequence[str], body: Iterable[str], right: Iterable[int] = ()) -> list[str]:
    """The lines of a table. `head` is text, `body` rows of HTML; columns in `right` hold numbers."""
    numbers = frozenset(right)
    kinds = ('scope="col" class="number"' if index in numbers else 'scope="col"' for index in range(len(head)))
    titles = "".join(f"<th {kind}>{escape(cell)}</th>" for kind, cell in zip(kinds, head, strict=True))
    return ["<table>", f"<thead><tr>{titles}</tr></thead>", "<tbody>", *body, "</tbody>", "</table>"]
