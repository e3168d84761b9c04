"""Two sides of one workload, measured in turn: order, rates and ratios. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Side = Literal["a", "b"]
SKIPPED = 0.25  # of the training steps, at the start
LEAST_STEPS = 5


@dataclass(frozen=True)
class Rate:
    """Training steps per second of one run, from `steps` steps."""

    per_second: float
    steps: int


@dataclass(frozen=True)
class Ratio:
    """Speed-up of side b over side a: median of the pairs, the lowest and the highest of them."""

    ratio: float
    low: float
    high: float


def order(pairs: int) -> list[tuple[Side, int]]:
    """Which side runs when: a b, b a, a b, ... so that a drift of the machine hits both sides alike."""
    planned: list[tuple[Side, int]] = []
    for number in range(pairs):
        first, second = ("a", "b") if number % 2 == 0 else ("b", "a")
        planned += [(first, number), (second, number)]  # type: ignore[list-item]
    return planned


def steady_rate(steps: Iterable[Mapping[str, Any]]) -> Rate | None:
    """Steps/s from rows of the table `step`: the training steps without warm-up ones and without the first quarter.

    With several ranks that of the slowest. None for fewer than 5 steps.
    """
    ranks: dict[int, list[Mapping[str, Any]]] = {}
    for row in steps:
        if row["kind"] == "train":
            ranks.setdefault(int(row["rank"]), []).append(row)
    rates = []
    for rows in ranks.values():
        ordered = sorted(rows, key=lambda row: int(row["kind_step"]))
        kept = ordered[int(len(ordered) * SKIPPED) :]
        total = sum(int(row["end_ns"]) - int(row["start_ns"]) for row in kept)
        if len(kept) >= LEAST_STEPS and total > 0:
            rates.append(Rate(len(kept) * 1e9 / total, len(kept)))
    return min(rates, key=lambda rate: rate.per_second, default=None)


def ratio_of(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """Side b against side a, pair by pair."""
    ratios = [other / one for one, other in zip(a, b, strict=True)]
    return Ratio(median(ratios), min(ratios), max(ratios))
