"""Texts over several lines: broken at blanks, else between the words of a name, never inside a number."""

from __future__ import annotations

import re

from rich.cells import cell_len

HANGING = 2  # blanks before the further lines of a text
_UNITS = "ns|us|ms|min|s|%|B|KiB|MiB|GiB|TiB"
_NUMBER = re.compile(
    rf"[+-]?\d+(?:(?:[.:/-]|,(?=\d{{3}}(?!\d)))\d+)*(?:[eE][+-]?\d+)?(?: (?:{_UNITS})(?!\w))?", re.ASCII
)
_WORD = re.compile(r"[^\s_/.,;:=-]*[_/.,;:=-]*")
_MARKS = frozenset("_/.,;:=-)]}")


def text_width(text: str) -> int:
    """Columns of the widest line; wide characters take two."""
    return max((len(line) if line.isascii() else cell_len(line) for line in text.split("\n")), default=0)


def longest_number(text: str) -> int:
    """Columns of the longest number, with its sign, exponent and unit."""
    return max((len(match[0]) for match in _NUMBER.finditer(text)), default=0)


def longest_word(text: str) -> int:
    """Columns of the longest part that a title is not broken within."""
    return max(longest_number(text), *(text_width(word) for word in _WORD.findall(text)))


def wrap_text(text: str, width: int, hanging: int = HANGING) -> list[str]:
    """Lines of at most `width` columns; further ones are indented by `hanging` more than the text.

    A number that is wider than that stands alone in a line that is too long. Blanks where a line ends are left out.
    """
    return [line for part in text.split("\n") for line in _wrapped(part, width, hanging)]


def _wrapped(text: str, width: int, hanging: int) -> list[str]:
    lines = []
    blanks = " " * min(len(text) - len(text.lstrip()) + hanging, width // 3)
    while text_width(text) > width:
        at = _break(text, width)
        if not text[at:].strip():
            break
        lines.append(text[:at].rstrip())
        text = blanks + text[at:].lstrip()
    return [*lines, text.rstrip() if lines else text]


def _break(text: str, width: int) -> int:
    """Where the first line ends: the best place that fits, or behind the number that does not."""
    start = len(text) - len(text.lstrip())
    within = text[: start + 4 * width + 4]  # more is not looked at, however long the text is
    inside = {at for match in _NUMBER.finditer(within) for at in range(match.start() + 1, match.end())}
    places, used = [], 0
    for at, letter in enumerate(within):
        if at > start and at not in inside and cell_len(letter):
            places.append(at)
        used += cell_len(letter)
        if used > width and places:
            break
    fits = [at for at in places if text_width(text[:at]) <= width]
    least = start + (width - start) // 3
    blank = [at for at in fits if text[at].isspace() and at > least]
    words = [at for at in fits if _ends_word(text[at - 1], text[at]) and at > least]
    return max(blank or words or fits or places[:1] or [len(text)])


def _ends_word(last: str, following: str) -> bool:
    """Whether a word of a name ends between two letters: `data_|wait`, `Cross|Entropy`."""
    return last in _MARKS or (last.islower() and following.isupper())
