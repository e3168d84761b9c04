"""The fenced blocks of a page, and the commands in them.

A comment in front of a block says how it is treated, and why:

    <!-- not run: REASON -->        its commands are only parsed
    <!-- only compiled: REASON -->  this Python is not run
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

FENCE = re.compile(r"^( *)```(\w*)$")
REMARK = re.compile(r"^ *<!-- (not run|only compiled): (\S.*) -->$")
EXIT = re.compile(r"#.*\bexit code (\d+)")
PROMPT = "$ "
LISTS = {"|", "||", "&&", ";", "&"}
VERDICTS = {0, 1, 4}
TRAINS = {"collect", "ab", "whatif", "headspace", "sweep", "qualify", "demo", "bisect", "tune"}
"""Verbs that start trainings. The pages' trainings are made in tests/e2e/test_docs_tutorial.py; here they are parsed."""


class Block(NamedTuple):
    """The lines between two fences; `start` and `end` are where they lie in the page."""

    language: str
    start: int
    end: int
    lines: list[str]
    remark: str
    reason: str


class Command(NamedTuple):
    """A line that a reader types, and the exit codes that it may have."""

    text: str
    exit_codes: set[int]

    @property
    def calls(self) -> list[list[str]]:
        """The words of each `pipeprof` or `make` in it."""
        text = re.sub(r'"?\$\(([^)]*)\)"?', r"; \1 ;", self.text)
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        calls: list[list[str]] = [[]]
        for word in lexer:
            if set(word) <= set("|&;"):
                calls.append([])
            else:
                calls[-1].append(word)
        return [_without_redirection(call) for call in calls if call and call[0] in {"pipeprof", "make"}]

    @property
    def trains(self) -> bool:
        return any(len(call) > 1 and call[0] == "pipeprof" and call[1] in TRAINS for call in self.calls)


def blocks(page: Path) -> list[Block]:
    """All fenced blocks, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found, number = [], 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if fence:
            start, indent = number + 1, len(fence[1])
            end = lines.index(f"{fence[1]}```", start)
            before = next((line for line in reversed(lines[:number]) if line.strip()), "")
            remark = REMARK.match(before)
            kind, reason = (remark[1], remark[2]) if remark else ("", "")
            found.append(Block(fence[2], start, end, [line[indent:] for line in lines[start:end]], kind, reason))
            number = end
        number += 1
    return found


def commands(block: Block) -> list[Command]:
    """What a reader would type; lines that end with a backslash go on."""
    lines = block.lines
    if block.language == "console":
        lines = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    typed = [line for line in whole if line.strip() and not line.lstrip().startswith("#")]
    return [Command(line, _exit_codes(line)) for line in typed]


def _exit_codes(line: str) -> set[int]:
    """The one that the page states; else 0, and of a comparison those that are verdicts."""
    stated = EXIT.search(line)
    if stated:
        return {int(stated[1])}
    return VERDICTS if line.startswith("pipeprof compare") else {0}


def _without_redirection(call: list[str]) -> list[str]:
    return call[: call.index(">")] if ">" in call else call
