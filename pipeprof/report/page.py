"""An HTML page that stands alone: nothing fetched, readable on paper, light and dark; no script but its own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeprof.escape import html as escape
from pipeprof.escape import html_words
from pipeprof.report.charts.chart import middle_cut
from pipeprof.report.charts.script import bundle, javascript

STYLE = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
MOST_LETTERS = 40  # of a word without a blank: a longer one is cut in the middle
MOST_IN_CHIP = 44
LIVELY = ("data-copy", "sortable", 'class="contents"')  # what the script of a page without charts is for


def page(title: str, body: Iterable[str], *, drawn: bool = False, asks: bool = False, look: str = "") -> str:
    """The whole page. `title` is text, `look` its classes; `body` is HTML, with charts to be `drawn` or without.

    The page's policy allows its one script and the style by their hashes, and nothing else. A page that `asks` may ask
    the server that it is from for what is new.
    """
    lines = list(body)
    lively = any(mark in line for line in lines for mark in LIVELY)
    script = bundle() if drawn else javascript("page") if lively or asks else ""
    script += javascript("live") if asks else ""
    name, heading = escape(title), f'<h1 class="{look}">' if look else "<h1>"
    policy = f"default-src 'none'; style-src {digest(STYLE)}"
    if script:
        policy += f"; script-src {digest(script)}"
    if asks:
        policy += "; connect-src 'self'"
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{heading}{html_words(title)}</h1>",
        *lines,
        "</main>",
        *([f"<script>{script}</script>"] if script else []),
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def digest(text: str) -> str:
    """The source `'sha256-...'` of a Content-Security-Policy that allows this script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def shortened(cell: str) -> str:
    """A cell as HTML: a long word is cut in its middle, and has the whole as its title; words in backticks are code."""
    if len(cell) <= MOST_LETTERS or " " in cell.strip():
        return html_words(cell)
    return f'<span class="short" title="{escape(cell)}">{escape(middle_cut(cell, MOST_LETTERS))}</span>'


def chip(said: str, kind: str, tag: str = "span") -> str:
    """What is said of a run in a few words; long ones are cut in the middle, and are whole in the title."""
    whole = f' title="{escape(said)}"' if len(said) > MOST_IN_CHIP else ""
    return f'<{tag} class="chip {kind}"{whole}>{html_words(middle_cut(said, MOST_IN_CHIP))}</{tag}>'


def table(head: Sequence[str], body: Iterable[str], right: Iterable[int] = ()) -> list[str]:
    """The lines of a table. `head` is text, `body` rows of HTML; columns in `right` hold numbers."""
    numbers = frozenset(right)
    kinds = ('scope="col" class="number"' if index in numbers else 'scope="col"' for index in range(len(head)))
    titles = "".join(f"<th {kind}>{escape(cell)}</th>" for kind, cell in zip(kinds, head, strict=True))
    return ["<table>", f"<thead><tr>{titles}</tr></thead>", "<tbody>", *body, "</tbody>", "</table>"]
