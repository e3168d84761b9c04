"""The result of a sweep as GitHub-flavoured Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import markdown as escaped
from pipeprof.report.markdown import table
from pipeprof.report.sweep.rows import sections

if TYPE_CHECKING:
    from collections.abc import Mapping


def text(content: Mapping[str, Any]) -> str:
    """The whole result; the first heading is of level 1."""
    lines: list[str] = []
    for level, section in enumerate(sections(content)):
        lines += [f"{'#' if level == 0 else '##'} {escaped(section.title)}", ""]
        lines += [f"**{escaped(sentence)}**  " for sentence in section.strong]
        lines += [""] if section.strong else []
        lines += [f"- {escaped(sentence)}" for sentence in section.notes]
        lines += [""] if section.notes else []
        for block in section.blocks:
            lines += [*table(block), ""]
    return "\n".join(lines).rstrip() + "\n"
