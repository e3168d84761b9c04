"""The codes of the verdicts as sentences: one file for each kind of code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def joined(parts: Sequence[str], last: str = " and ") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else last.join((", ".join(parts[:-1]), parts[-1])) if parts else ""


def first_of(parts: Sequence[str], most: int) -> str:
    """`a, b`, or of more than `most` parts `a, b and 3 more`."""
    return ", ".join(parts[:most]) + (f" and {len(parts) - most} more" if len(parts) > most else "")


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """The first and the last of each row of neighbours among the numbers, in order."""
    rows: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if rows and number == rows[-1][1] + 1:
            rows[-1] = (rows[-1][0], number)
        else:
            rows.append((number, number))
    return rows
