"""A report of any verb: a title and sections, shown in each format by the one function `show`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from pipeprof import escape
from pipeprof.report import json_text, section_markdown
from pipeprof.report.output import write_text
from pipeprof.report.section_text import print_section
from pipeprof.report.table import plain_text, print_drawn, wrap_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rich.console import Console

    from pipeprof.report.sections import Section

    Content = dict[str, Any]


@dataclass
class Document:
    """What a report says. Sections without a title belong to what stands above them.

    `style` is that of the title; on a terminal an `unbroken` one stays one line.
    """

    title: str
    sections: Sequence[Section]
    style: str = "bold"
    unbroken: bool = False


def show(content: Content, document_of: Callable[[Content], Document], form: str, output: Path | None = None) -> None:
    """Print a report as `terminal`, `html`, `markdown` or `json`, or write it to a file."""
    if form == "json":
        write_text(json_text.text(content), output)
    elif form == "terminal" and output is None:
        document = document_of(content)
        print_drawn(lambda console: draw(console, document))
    else:
        write_text(text(document_of(content), form), output)


def text(document: Document, form: str = "terminal") -> str:
    """The document as `terminal` (plain text, 120 columns wide), `markdown` or `html`."""
    if form == "html":
        from pipeprof.report.section_html import page_of  # noqa: PLC0415 - charts are slow to import

        return page_of(document.title, document.sections, document.style)
    if form == "markdown":
        return section_markdown.page(document.title, document.sections)
    return plain_text(lambda console: draw(console, document))


def draw(console: Console, document: Document) -> None:
    """The document on a terminal."""
    title = escape.line(document.title)
    for line in [title] if document.unbroken else wrap_text(title, console.width):
        console.print(Text(line, style=document.style), soft_wrap=True)
    for number, section in enumerate(one for one in document.sections if one.says_something and not one.folded):
        if section.title or (number and (section.strong or section.notes or section.code)):  # else its table does
            console.print()
        print_section(console, section)
