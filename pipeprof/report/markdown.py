"""The report of a run as GitHub-flavoured Markdown."""

from __future__ import annotations

from typing import Any

from pipeprof.escape import markdown as escaped
from pipeprof.escape import markdown_block
from pipeprof.report.answer import answer_of
from pipeprof.report.answer.command import pasted
from pipeprof.report.answer.screen import labelled
from pipeprof.report.section_markdown import page
from pipeprof.report.sections.of_run import sections


def text(content: dict[str, Any]) -> str:
    """The whole report of a run."""
    return page("pipeprof report", sections(content), _first(content))


def _first(content: dict[str, Any]) -> list[str]:
    """The first screen's answer."""
    answer = answer_of(content)
    lines = [f"**{escaped(answer.sentence)}**", ""]
    lines += [f"- **{label}:** {escaped(words)}" for label, words in labelled(answer)]
    if answer.extra:
        lines += ["", f"{answer.extra_title}:", "", *markdown_block(answer.extra)]
    if answer.next_command:
        lines += ["", f"Next ({answer.next_purpose}):", "", *markdown_block(pasted(answer.next_command), "sh")]
    return [*lines, ""]
