"""How much faster one side of a workload is, and whether its pairs of runs decide that. Pure.

The rule `interval_over_pairs`, tried after every pair:

1. `two_speeds`: the pairs fall into two groups that are clearly apart. An interval over both would say what no run
   does, so each group answers for itself.
2. `above`, `below`: the interval over the pairs lies wholly on one side of the band that matters.
3. `narrow`: it does not, but it is so narrow that more pairs would not tell the reader more.

Otherwise the pairs do not decide. The interval is that of Student's t over the logarithms of the ratios, from 6 pairs
on of their mean without a sixth at either end (Tukey and McLaughlin 1963), so that one disturbed run does not keep the
answer away. Its level is 98 %, more than the usual one, because the pairs are looked at after each of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal

from pipeprof.verdict.quantile import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

Decided = Literal["above", "below", "narrow", "two_speeds"]

WORTH = 1.05  # a bound that matters
FASTER, SLOWER = 1.02, 0.98  # a change that does
NARROW = 1.10  # the interval's high end over its low one
TRIMMED = 6  # one pair in so many is left out at either end
FEWEST, EACH = 5, 2  # values in all, and of either speed, that two speeds can be seen in
APART = 1.15  # the slowest of the fast ones over the fastest of the slow ones
CLEAR = 4.0  # that gap over the widest gap between neighbours within a group, as logarithms
LEVEL = 0.98  # of the interval
PARTS = 8  # of a run, one after the other, that may differ in speed
MOST_PAIRS = 8  # that are made where nothing is said


@dataclass(frozen=True)
class Band:
    """Speed-ups that do not matter: at least `low`, at most `high`."""

    low: float
    high: float


GAIN = Band(WORTH, WORTH)
CHANGE = Band(SLOWER, FASTER)


@dataclass(frozen=True)
class Speed:
    """One of two groups: its median, its lowest and highest value, and the places of its values, from 0."""

    median: float
    low: float
    high: float
    places: tuple[int, ...]


@dataclass(frozen=True)
class Answer:
    """What the pairs say: the interval (None for one pair), two speeds or none, and what decided, if anything did."""

    interval: tuple[float, float] | None
    speeds: tuple[Speed, ...]
    decided: Decided | None


def answer_of(ratios: Sequence[float], band: Band) -> Answer:
    """The answer of pairs by the rule `interval_over_pairs`; `ratios` above 0, one of each pair, in any order."""
    interval, speeds = interval_over(ratios), two_speeds(ratios)
    if speeds:
        return Answer(interval, speeds, _side(speeds[0].low, speeds[1].high, band) or "two_speeds")
    if interval is None:
        return Answer(None, (), None)
    low, high = interval
    narrow: Decided | None = "narrow" if high / low <= NARROW else None
    return Answer(interval, (), _side(low, high, band) or narrow)


def interval_over(ratios: Sequence[float]) -> tuple[float, float] | None:
    """Where the usual ratio lies, at 98 %; always around the median. None for fewer than 2 pairs."""
    count = len(ratios)
    if count <= 1:
        return None
    logs = sorted(math.log(ratio) for ratio in ratios)
    cut = count // TRIMMED
    trimmed = logs[cut : count - cut]
    drawn_in = [min(max(value, trimmed[0]), trimmed[-1]) for value in logs]  # winsorised
    centre, middle = fmean(trimmed), fmean(drawn_in)
    squares = sum((value - middle) ** 2 for value in drawn_in)
    error = math.sqrt(squares * count / (count - 1)) / len(trimmed)
    half = t_quantile(0.5 + LEVEL / 2, len(trimmed) - 1) * error
    usual = median(ratios)
    return min(math.exp(centre - half), usual), max(math.exp(centre + half), usual)


def two_speeds(values: Sequence[float], each: int = EACH) -> tuple[Speed, ...]:
    """The slow and the fast group of values above 0, at least `each` in both; () where they are not clearly two."""
    if len(values) < FEWEST:
        return ()
    places = sorted(range(len(values)), key=lambda at: values[at])
    gaps = [math.log(values[after] / values[before]) for before, after in pairwise(places)]
    cut = max(range(len(gaps)), key=lambda at: gaps[at])
    inside = max(gaps[:cut] + gaps[cut + 1 :])
    groups = places[: cut + 1], places[cut + 1 :]
    if gaps[cut] < math.log(APART) or gaps[cut] < CLEAR * inside or min(map(len, groups)) < each:
        return ()
    return tuple(_speed(values, group) for group in groups)


def _speed(values: Sequence[float], places: Sequence[int]) -> Speed:
    mine = [values[at] for at in places]
    return Speed(median(mine), min(mine), max(mine), tuple(sorted(places)))


def _side(low: float, high: float, band: Band) -> Decided | None:
    if low > band.high:
        return "above"
    return "below" if high < band.low else None
