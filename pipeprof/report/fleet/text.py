"""A report on many runs on a terminal, as Markdown, and as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from pipeprof import escape
from pipeprof.report import markdown
from pipeprof.report.fleet.sections import sections, title
from pipeprof.report.page import page
from pipeprof.report.screen import plain_text, print_drawn
from pipeprof.report.section_html import section_lines
from pipeprof.report.terminal import print_section

if TYPE_CHECKING:
    from rich.console import Console

_STYLE = """
p.strong { font-size: 1.15em; font-weight: 600; margin: .3em 0; }
.wide { overflow-x: auto; }
"""


def show(content: dict[str, Any]) -> None:
    """Print to stdout."""
    print_drawn(lambda console: _print(content, console))


def plain(content: dict[str, Any]) -> str:
    """The same, as plain text."""
    return plain_text(lambda console: _print(content, console))


def as_markdown(content: dict[str, Any]) -> str:
    """As GitHub-flavoured Markdown."""
    lines = [f"# {escape.markdown(title(content))}", ""]
    for section in sections(content):
        lines += markdown.section_lines(section)
    return "\n".join(lines).rstrip() + "\n"


def as_page(content: dict[str, Any]) -> str:
    """As one HTML page; every name and sentence in it is escaped."""
    body = []
    for section in sections(content):
        body += [f"<h2>{escape.html(section.title)}</h2>", *section_lines(section)]
    return page(title(content), body, _STYLE)


def _print(content: dict[str, Any], console: Console) -> None:
    console.print(Text(escape.line(title(content)), style="bold"))
    for section in sections(content):
        console.print()
        print_section(console, section)
