"""Sections as GitHub-flavoured Markdown, of any report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pipeprof.escape import markdown as escaped
from pipeprof.escape import markdown_block, markdown_summary

if TYPE_CHECKING:
    from pipeprof.report.sections import Block, Section


def page(title: str, parts: Iterable[Section], first: Iterable[str] = (), mark: str = "#") -> str:
    """Sections under a heading with this `mark`; `first` are lines of Markdown between."""
    lines = [f"{mark} {escaped(title)}", "", *first]
    for section in parts:
        lines += _section(section, f"{mark}#") if section.says_something else []
    return "\n".join(lines).rstrip() + "\n"


def _section(section: Section, mark: str) -> list[str]:
    """A section under a heading, or folded away behind it."""
    lines = [f"{mark} {escaped(section.title)}", ""] if section.title else []
    if section.folded:
        lines = [f"<details><summary>{markdown_summary(section.title)}</summary>", ""]
    lines += [f"**{escaped(sentence)}**  " for sentence in section.strong]
    lines += [""] if section.strong else []
    lines += [f"- {escaped(sentence.strip())}" for sentence in section.notes]
    lines += [""] if section.notes else []
    lines += [*markdown_block(section.code, section.language), ""] if section.code else []
    for block in section.blocks:
        lines += [escaped(" ".join(block.caption)), ""] if block.caption else []
        lines += [*table(block), ""]
    return [*lines, "</details>", ""] if section.folded else lines


def table(block: Block) -> list[str]:
    """A table's lines. Leading blanks, which show the depth in a tree, stay visible, and so do lines within a cell."""
    marks = ["---:" if index in block.right else "---" for index in range(len(block.head))]
    shown = (lambda cell: "<br>".join(map(_cell, cell.split("\n")))) if block.tall else _cell
    head, *body = ([shown(cell) for cell in row] for row in (block.head, *block.rows))
    return ["| " + " | ".join(row) + " |" for row in (head, marks, *body)]


def _cell(cell: str) -> str:
    stripped = cell.lstrip(" ")
    return "&nbsp;" * (len(cell) - len(stripped)) + escaped(stripped)
