"""The one table of the terminal: no number is cut, names wrap, and columns without room are left out and counted.

A table gets as narrow as its numbers allow: titles and texts wrap first, then columns go, the spare ones before the
rightmost; the first column stays. A single row, and rows that hardly a column would be left of, become lists of cells.

And where text for people goes: to stdout, as wide as it is, or into a text of its own.
"""

from __future__ import annotations

import io
import os
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from pipeprof import escape
from pipeprof.report.output import PLAIN_WIDTH, has_colours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipeprof.report.sections.block import Block

    Draw = Callable[[Console], None]


def print_drawn(draw: Draw) -> None:
    """Print to stdout: as wide as COLUMNS says, else as the terminal, else as plain text is."""
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else None
    console = Console(width=width, highlight=False, file=sys.stdout, no_color=not has_colours())
    if console.is_terminal:
        draw(console)
    else:
        text = plain_text(draw, width or PLAIN_WIDTH)
        sys.stdout.write(text if console.encoding.startswith("utf") else text.replace(RULE, "-"))


def plain_text(draw: Draw, width: int = PLAIN_WIDTH) -> str:
    """What `draw` prints, without colours, and without blanks at the ends of lines."""
    buffer = io.StringIO()
    draw(Console(file=buffer, width=width, highlight=False, no_color=True, force_terminal=False))
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


WIDE_GAP, GAP = 3, 2  # blanks between columns, with room and without
LEAST_TEXT = 20  # columns that a text is not made narrower than
FEWEST = 3  # columns below which rows become lists
SHOWS_ALL = "--format markdown"
RULE = "─"  # below titles; "-" where it cannot be written


class Drawn(NamedTuple):
    """The lines of a table: its titles, then a rule and its rows."""

    head: list[str]
    body: list[str]


def print_block(console: Console, block: Block, *, shows_all: str = SHOWS_ALL) -> None:
    """Print a table. `shows_all`: what shows columns that do not fit."""
    head, body = draw(block, console.width, shows_all)
    for line in head:
        console.print(Text(line, style="bold"), soft_wrap=True)
    text = "\n".join(body)
    if console.options.ascii_only:
        text = text.replace(RULE, "-")
    if block.styles:
        styled = Text(text)
        for word, style in block.styles.items():
            styled.highlight_regex(rf"(?<!\S){re.escape(word)}(?!\S)", style)
        console.print(styled, soft_wrap=True)
    elif body:
        console.out(text, highlight=False)  # rich would take minutes for a million rows


def draw(block: Block, width: int, shows_all: str = SHOWS_ALL) -> Drawn:
    """The lines of a table, none wider than `width` unless a number is."""
    shown = escape.terminal if block.tall else escape.line
    columns = [
        _Column(shown(title), [shown(row[index]) for row in block.rows], index in block.right)
        for index, title in enumerate(block.head)
    ]
    columns_shown = _shown(columns, block.spare, width)
    if len(columns_shown) < len(columns) and (len(columns_shown) < FEWEST or len(block.rows) == 1):
        return Drawn([], list(_lists(columns, width)))
    widths, gap = _widths([columns[index] for index in columns_shown], width)
    head, body = _table([columns[index] for index in columns_shown], widths, " " * gap)
    left_out = [column.title for index, column in enumerate(columns) if index not in columns_shown]
    return Drawn(head, body + ([_left_out(left_out, shows_all, width)] if left_out else []))


@dataclass
class _Column:
    title: str
    cells: Sequence[str]
    is_number: bool

    @cached_property
    def natural(self) -> int:
        """Columns of the terminal that it takes unwrapped."""
        return max(text_width(self.title), self._widest)

    @cached_property
    def least(self) -> int:
        """Columns that it takes at least: no number and no word of the title is broken."""
        title = longest_word(self.title)
        if self.is_number:
            return max(title, self._widest)
        numbers = max(map(longest_number, self.cells), default=0)
        return min(self.natural, max(title, LEAST_TEXT, numbers + HANGING))

    @cached_property
    def _widest(self) -> int:
        return max(map(text_width, self.cells), default=0)

    def lines(self, row: int, width: int) -> list[str]:
        """A cell in its width."""
        cell = self.cells[row]
        return cell.split("\n") if self.is_number or len(cell) * 2 <= width else wrap_text(cell, width)

    def padded(self, text: str, width: int) -> str:
        """Numbers to the right, texts to the left."""
        blanks = " " * (width - text_width(text))
        return blanks + text if self.is_number else text + blanks


def _shown(columns: Sequence[_Column], spare: Sequence[int], width: int) -> list[int]:
    """The columns that there is room for."""
    shown = list(range(len(columns)))
    going = [*spare, *(index for index in reversed(shown[1:]) if index not in spare)]
    for index in going:
        if sum(columns[one].least for one in shown) + GAP * (len(shown) - 1) <= width:
            break
        shown.remove(index)
    return shown


def _widths(columns: Sequence[_Column], width: int) -> tuple[list[int], int]:
    """Width of each column, and the gap between them: the widest get narrower until all fit."""
    widths = [column.natural for column in columns]
    if sum(widths) + WIDE_GAP * (len(widths) - 1) <= width:
        return widths, WIDE_GAP
    room = width - GAP * (len(widths) - 1)
    widths = [max(column.least, min(column.natural, room)) for column in columns]
    while sum(widths) > room:
        wide = [index for index, column in enumerate(columns) if widths[index] > column.least]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths, GAP


def _table(columns: Sequence[_Column], widths: Sequence[int], gap: str) -> tuple[list[str], list[str]]:
    titles = [wrap_text(column.title, width, 0) for column, width in zip(columns, widths, strict=True)]
    height = max(map(len, titles), default=0)
    head = _joined(columns, [[""] * (height - len(lines)) + lines for lines in titles], widths, gap)
    body = [gap.join(RULE * width for width in widths)] if any(head) else []
    rows = len(columns[0].cells) if columns else 0
    tall = any("\n" in cell for column in columns for cell in column.cells)
    for row in range(rows):
        cells = [column.lines(row, width) for column, width in zip(columns, widths, strict=True)]
        body += [""] if tall and row else []
        body += _joined(columns, cells, widths, gap)
    return (head if any(head) else []), body


def _joined(columns: Sequence[_Column], cells: Sequence[list[str]], widths: Sequence[int], gap: str) -> list[str]:
    """The lines of one row."""
    lines = []
    for at in range(max(map(len, cells), default=0)):
        parts = [
            column.padded(lines_[at] if at < len(lines_) else "", width)
            for column, lines_, width in zip(columns, cells, widths, strict=True)
        ]
        lines.append(gap.join(parts).rstrip())
    return lines


def _lists(columns: Sequence[_Column], width: int) -> Iterator[str]:
    """Each row as a list of titles and cells, one below the other."""
    titles = [" ".join(column.title.split()) for column in columns]
    label = max(map(text_width, titles))
    room = max(width - label - 2 * GAP, LEAST_TEXT)
    for row in range(len(columns[0].cells)):
        if len(columns[0].cells) > 1:
            yield f"row {row + 1}"
        for title, column in zip(titles, columns, strict=True):
            first, *others = wrap_text(column.cells[row].strip(), room, 0)
            yield f"{' ' * GAP}{title}{' ' * (label - text_width(title) + GAP)}{first}".rstrip()
            yield from (f"{' ' * (label + 2 * GAP)}{line}".rstrip() for line in others)


def _left_out(titles: Sequence[str], shows_all: str, width: int) -> str:
    what = f"+{len(titles)} column" + ("s" if len(titles) > 1 else "")
    named = f"{what} ({', '.join(' '.join(title.split()) for title in titles)}): {shows_all} shows all"
    return named if text_width(named) <= width else f"{what}: {shows_all} shows all"


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
