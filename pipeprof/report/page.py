"""An HTML page that stands alone: no script, nothing fetched, readable on paper, light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.escape import html as escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_STYLE = """
:root { color-scheme: light dark; --bad: #b3261e; --good: #1b7f3b; --unsure: #8a6100; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
table { border-collapse: collapse; margin: .5em 0 1.5em; }
th, td { border-bottom: 1px solid var(--line); padding: .3em .7em; text-align: left; vertical-align: top; }
th.number, td.number { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
code { overflow-wrap: anywhere; }
.headline { font-size: 1.25em; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #7bd88f; --unsure: #ffcc66; } }
"""


def page(title: str, body: Iterable[str], style: str = "") -> str:
    """The whole page. `title` is text; `body` and `style` are HTML and CSS."""
    name = escape(title)
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n<h1>{name}</h1>",
        *body,
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def table(head: Sequence[str], body: Iterable[str], right: Iterable[int] = ()) -> list[str]:
    """The lines of a table. `head` is text, `body` rows of HTML; columns in `right` hold numbers."""
    numbers = frozenset(right)
    titles = "".join(
        f'<th class="number">{escape(cell)}</th>' if index in numbers else f"<th>{escape(cell)}</th>"
        for index, cell in enumerate(head)
    )
    return ["<table>", f"<thead><tr>{titles}</tr></thead>", "<tbody>", *body, "</tbody>", "</table>"]
