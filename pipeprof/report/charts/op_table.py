"""The operators as a table that can be sorted and searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import html as escape
from pipeprof.escape import line
from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]

MOST = 500
_WORDS = (("operator", "name"), ("type", "type"), ("phase", "phase"), ("shapes", "in_shapes"), ("called from", "site"))
_MOST_LETTERS = 160  # of a cell


def table_of(rows: Sequence[Row]) -> list[str]:
    """HTML of rows of op/by_instance of one rank; a cell of a number has it as it is in `data-value`."""
    if not rows:
        return []
    own_types = any(row["type"] != row["name"] for row in rows)
    shown = [
        (title, field) for title, field in _WORDS if any(row[field] for row in rows) and (own_types or field != "type")
    ]
    heads = [f'<th scope="col">{title}</th>' for title, _ in shown]
    heads += [f'<th scope="col" class="number">{title}</th>' for title in ("executions", "own time", "mean", "share")]
    lines = [f"<tr>{_words(row, shown)}{_numbers(row)}</tr>" for row in rows]
    caption = f"The {MOST} operators with most own time" if len(rows) == MOST else "Operators"
    return [
        '<div class="wide" tabindex="0">', '<table class="sortable" id="operators">', f"<caption>{caption}</caption>",
        f"<thead><tr>{''.join(heads)}</tr></thead>", "<tbody>", *lines, "</tbody>", "</table>", "</div>",
    ]  # fmt: skip


def _words(row: Row, shown: Sequence[tuple[str, str]]) -> str:
    return "".join(f"<td>{escape(_cut(line(row[field] or '-')))}</td>" for _, field in shown)


def _numbers(row: Row) -> str:
    cells = (
        (row["count"], str(row["count"])),
        (row["self_ns"], format_ns(row["self_ns"])),
        (row["mean_ns"], format_ns(row["mean_ns"])),
        (row["share"], format_ratio(row["share"])),
    )
    return "".join(f'<td class="number" data-value="{value or 0}">{escape(text)}</td>' for value, text in cells)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}\u2026"
