"""The answer as at most 20 lines of 80 columns."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

from pipeprof.report.answer.command import left_out, pasteable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.report.answer.shape import Answer

WIDTH, MOST_LINES = 80, 20
LABEL = 12
_TOGETHER = {"--": 2}  # words behind it that stay with it: the program and its script; behind an option its value
WHOLE = 20
# Lines of a labelled text at most, of a second cause, and of what to do and what it brings: the first that fit.
ROOM = ((5, 5, WHOLE), (4, 4, WHOLE), (3, 3, WHOLE), (2, 2, WHOLE), (2, 1, WHOLE), (3, 3, 3), (2, 2, 2))


def labelled(answer: Answer) -> list[tuple[str, str]]:
    """What stands behind the first sentence, each with its label; not the next command."""
    gain = answer.gain
    if gain:
        gain += f"; then {answer.then}." if answer.then else "."
    pairs = [
        ("Cause", answer.cause), ("Where", answer.place), ("Do", answer.action), ("Gain", gain),
        ("Also", answer.also), ("Confidence", _confidence(answer)),
    ]  # fmt: skip
    return [(label, text) for label, text in pairs if text]


def _confidence(answer: Answer) -> str:
    if answer.confidence is None:
        return ""
    why = f", because {answer.confidence_reason}" if answer.confidence_reason else ""
    return f"{answer.confidence}{why}."


def lines(answer: Answer, state: str, more: str) -> list[str]:
    """`state`: how the run ended and what it holds; `more`: what else the report can show."""
    tail = _wrap(state) + _wrap(more)
    given = _next(answer.next_command, answer.next_purpose)
    short = _next(answer.short_command, answer.short_purpose)
    tries = [*((room, given) for room in ROOM[:2]), *((room, shown) for room in ROOM for shown in (given, short))]
    screens = (_screen(answer, tail, room, following) for room, following in tries)
    return next((shown for shown in screens if height(shown) <= MOST_LINES), [answer.sentence, *tail])


def verdict_lines(answer: Answer, shown: Sequence[str]) -> int:
    """How many of the lines shown are the verdict's: its sentence, in whole or wrapped."""
    wrapped = _wrap(answer.sentence)
    return len(wrapped) if list(shown[: len(wrapped)]) == wrapped else 1


def _next(command: str, purpose: str) -> list[str]:
    """What to run next and what for, behind a blank line."""
    return ["", f"Next ({purpose}):", *command_lines(command)] if command else []


def _screen(answer: Answer, tail: list[str], room: tuple[int, int, int], following: list[str]) -> list[str]:
    """All lines, with as many blank ones as there is place for. `room`: lines of each labelled text at most."""
    shown, (others, also, advice) = _wrap(answer.sentence), room
    most = {"Also": also, "Do": advice, "Gain": advice}
    body = [line for label, text in labelled(answer) for line in _labelled(label, text, most.get(label, others))]
    free = MOST_LINES - height([*shown, *body, *following, *tail]) - 3
    if answer.extra and free > 1:
        body += ["", f"{answer.extra_title}:", *(_cut("  " + line) for line in answer.extra[-free + 1 :])]
    return _without_blanks([*shown, "", *body, *following, "", *tail])


def command_lines(command: str) -> list[str]:
    """The command to paste, broken with backslashes where it is longer than a line, and what it lacks.

    An option and its value stay on one line, and so do `--` and the program behind it.
    """
    if not command:
        return []
    broken, line = [], "  "
    for part in _parts(pasteable(command)):
        if len(line) + len(part) > WIDTH - 2 and line.strip():
            broken.append(line.rstrip() + " \\")
            line = "    "
        line += part + " "
    note = left_out(command)
    return [*broken, line.rstrip(), *([_cut(f"  {note}")] if note else [])]


def _parts(words: list[str]) -> list[str]:
    """What no line may break. The word behind an option may be its value: nobody can tell of a command of the user's.

    Without options a command of many words may break between any two, but not between a program and its script.
    """
    parts: list[str] = []
    glued = 0  # words that still belong to the last part
    for word in words:
        if glued and (not _is_option(word) or parts[-1].split(" ")[0] == "--"):
            parts[-1] += f" {word}"
            glued -= 1
        else:
            parts.append(word)
            glued = 0
        if _is_option(word):
            glued = _TOGETHER.get(word, 1)
    return parts


def _is_option(word: str) -> bool:
    return word.startswith("-") and not re.fullmatch(r"-\d[\d.e]*", word)


def _labelled(label: str, text: str, room: int) -> list[str]:
    first = f"{label + ':':<{LABEL}}"
    return _wrap(text, initial_indent=first, subsequent_indent=" " * LABEL, max_lines=room, placeholder=" ...")


def _wrap(text: str, **more: Any) -> list[str]:
    """Lines of the screen's width; a number stays with its unit."""
    together = re.sub(r"(\d) (?=%|[num]?s\b|[KMG]iB\b)", "\\1\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(together, WIDTH, break_on_hyphens=False, **more)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."


def _without_blanks(shown: list[str]) -> list[str]:
    """Without as many blank lines as it takes, from the end."""
    remaining = list(shown)
    for index in range(len(remaining) - 1, -1, -1):
        if height(remaining) > MOST_LINES and not remaining[index]:
            del remaining[index]
    return remaining


def height(lines: Sequence[str]) -> int:
    """Lines on a screen of 80 columns: a word of a command may be longer than one."""
    return sum(max(1, -(-len(part) // WIDTH)) for line in lines for part in line.split("\n"))
