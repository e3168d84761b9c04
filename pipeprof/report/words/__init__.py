"""The codes of the verdicts as sentences: one file for each kind of code."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def joined(parts: Sequence[str], last: str = " and ") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else last.join((", ".join(parts[:-1]), parts[-1])) if parts else ""
