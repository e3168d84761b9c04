"""How sure a verdict is: high without doubts, a grade lower for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GRADES = ("high", "medium", "low")
# On a busy machine no time is that of a quiet one; shares that contradict each other decide nothing. Others weigh 1.
WEIGHTS = {"other_load": 2, "shares_differ": 2}


def graded(doubts: Sequence[Mapping[str, Any]], without: str = "high") -> str:
    """The confidence with these doubts, where it would be `without` if there were none."""
    lower = sum(WEIGHTS.get(doubt["code"], 1) for doubt in doubts)
    return GRADES[min(len(GRADES) - 1, GRADES.index(without) + lower)]
