"""Change points in a history of medians, and drift since the last release. Pure.

For people who look back, never for the gate: one value per commit sees too little (docs/baselines.md has the figures).
"""

from __future__ import annotations

import importlib
import itertools
import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError
from pipeprof.verdict.gate.result import note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.verdict.gate.result import Note

LEAST_SIDE = 5  # points on each side of a change
PENALTY = 3.0  # x ln(number of points), in units of the variance
PLACED = 0.95  # of the likelihood lies within `earliest` to `latest`
COUNTED = 0.1  # of the smallest step of a counted series is what one point varies by
FAR = 3.0  # standard deviations: a point that is farther off says no more about the place than one that far
FALSE_CHANCE = 0.01  # of one change in exchangeable points around it, over all places where it could have been


@dataclass(frozen=True)
class Point:
    """One entry of a history. `group`: machine and environment; points of different groups are never compared."""

    value: float
    group: str = ""
    at: str | None = None
    revision: str | None = None
    tag: str | None = None


@dataclass(frozen=True)
class Change:
    """The level changed at `index` (of the points given; the first one at the new level) from `before` to `after`.

    `before` and `after` are medians of the `points_before` and `points_after` points up to the next change; `p_value`
    is the chance of such a difference anywhere among exchangeable points. The first point at the new level is one from
    `earliest` to `latest`, in most cases (docs/baselines.md says in how many).
    """

    index: int
    group: str
    at: str | None
    revision: str | None
    before: float
    after: float
    points_before: int
    points_after: int
    p_value: float
    earliest: int
    latest: int

    @property
    def ratio(self) -> float:
        """After / before."""
        return self.after / self.before


@dataclass(frozen=True)
class Drift:
    """The latest point against that of the last release; `ratio` is None when they cannot be compared.

    `note`: what to keep in mind, as a code with numbers.
    """

    tag: str
    ratio: float | None
    points_since: int
    note: Note


def change_points(points: Sequence[Point]) -> tuple[Change, ...]:
    """The changes of level of each group by itself, in the order of the points. None in fewer than ten points.

    Candidates come from PELT (least squares, `PENALTY` ln n, at least `LEAST_SIDE` points a side) on logs scaled by the
    median absolute step between neighbours; each must then pass a rank-sum test of its two neighbouring levels,
    corrected for all places between them, or the levels are joined and tested again.

    Raises UsageError when ruptures is not installed, and for values that are not positive numbers.
    Sources: Killick et al. 2012 (PELT), Truong et al. 2020 (ruptures).
    """
    for point in points:
        if not (math.isfinite(point.value) and point.value > 0):
            raise UsageError(f"a history holds {point.value!r}, expected positive numbers")
    ruptures = _ruptures()
    changes: list[Change] = []
    for group in dict.fromkeys(point.group for point in points):
        places = [at for at, point in enumerate(points) if point.group == group]
        logs = [math.log(points[at].value) for at in places]
        cuts = _checked(logs, _candidates(logs, ruptures))
        changes += _changes(points, places, cuts)
    return tuple(sorted(changes, key=lambda change: change.index))


def drift(points: Sequence[Point]) -> Drift | None:
    """The latest point over the latest one with a release tag before it; None when no point before it has a tag."""
    tagged = [at for at, point in enumerate(points[:-1]) if point.tag]
    if not tagged:
        return None
    latest, tag = points[-1], str(points[tagged[-1]].tag)
    same = [at for at in tagged if points[at].tag == tag and points[at].group == latest.group]
    if not same:
        since = len(points) - 1 - tagged[-1]
        return Drift(tag, None, since, note("other_environment", tag=tag))
    since = len(points) - 1 - same[-1]
    return Drift(tag, latest.value / points[same[-1]].value, since, note("two_points", writes=since))


def _ruptures() -> Any:
    try:
        return importlib.import_module("ruptures")
    except ImportError as error:
        raise UsageError(
            "change points need ruptures, which is not installed", "pip install 'pipeprof[history]'"
        ) from error


def _candidates(logs: list[float], ruptures: Any) -> list[int]:
    """Cuts by PELT, growing. KernelCPD with the linear kernel is PELT with the l2 cost, in C."""
    scale = _scale(logs)
    if len(logs) < 2 * LEAST_SIDE or scale == 0:
        return []
    numpy = importlib.import_module("numpy")
    middle = median(logs)
    signal = numpy.asarray([[(value - middle) / scale] for value in logs])
    search = ruptures.KernelCPD(kernel="linear", min_size=LEAST_SIDE).fit(signal)
    return [int(cut) for cut in search.predict(pen=PENALTY * math.log(len(logs)))[:-1]]


def _scale(logs: list[float]) -> float:
    """Standard deviation of one point, from the median absolute step between neighbours: no change of level moves it.

    Where more than half of the neighbours are equal, something is counted: its smallest step is a change or what varies
    now and then, and a share of that lets each step be a candidate. 0 for a constant series.
    """
    steps = [abs(after - before) for before, after in itertools.pairwise(logs)]
    robust = 1.4826 * median(steps) / math.sqrt(2) if steps else 0.0
    return robust or COUNTED * min((step for step in steps if step), default=0.0)


def _checked(logs: list[float], cuts: list[int]) -> list[tuple[int, float]]:
    """The cuts that pass, with their p-values: the weakest is taken out until all do."""
    passing = list(cuts)
    while passing:
        edges = [0, *passing, len(logs)]
        chances = [
            _chance(logs[edges[at] : edges[at + 1]], logs[edges[at + 1] : edges[at + 2]]) for at in range(len(passing))
        ]
        weakest = max(range(len(passing)), key=lambda at: chances[at])
        if chances[weakest] <= FALSE_CHANCE:
            return list(zip(passing, chances, strict=True))
        del passing[weakest]
    return []


def _chance(before: list[float], after: list[float]) -> float:
    """Two-sided rank-sum p-value x the places where a cut could have been (Bonferroni), at most 1."""
    stats = importlib.import_module("scipy.stats")
    places = len(before) + len(after) - 2 * LEAST_SIDE + 1
    return min(1.0, float(stats.mannwhitneyu(before, after).pvalue) * places)


def _changes(points: Sequence[Point], places: list[int], cuts: list[tuple[int, float]]) -> list[Change]:
    edges = [0, *(cut for cut, _ in cuts), len(places)]
    changes = []
    for number, (cut, chance) in enumerate(cuts, 1):
        sides = (places[edges[number - 1] : cut], places[cut : edges[number + 1]])
        before, after = (median(points[at].value for at in side) for side in sides)
        first = points[places[cut]]
        low, high = _range([[math.log(points[at].value) for at in side] for side in sides])
        changes.append(
            Change(
                index=places[cut],
                group=first.group,
                at=first.at,
                revision=first.revision,
                before=before,
                after=after,
                points_before=len(sides[0]),
                points_after=len(sides[1]),
                p_value=chance,
                earliest=places[cut + low],
                latest=places[cut + high],
            )
        )
    return changes


def _range(sides: Sequence[list[float]]) -> tuple[int, int]:
    """How far before (0 or less) and after the cut the change may lie: places with `PLACED` of the likelihood.

    Both levels are taken as known, and the spread around them: 1.4826 x the median absolute deviation. The interval
    grows from the cut towards the likelier neighbour.
    """
    levels = [median(side) for side in sides]
    away = [abs(value - level) for side, level in zip(sides, levels, strict=True) for value in side]
    spread = 1.4826 * median(away)
    if spread == 0:
        return 0, 0
    values, cut = [*sides[0], *sides[1]], len(sides[0])
    scores = [[min(FAR, abs(value - level) / spread) ** 2 / 2 for value in values] for level in levels]
    moved = itertools.accumulate(before - after for before, after in zip(*scores, strict=True))
    logs = list(moved)[:-1]  # of each place, but for what all places have in common
    least = min(logs)
    chances = [math.exp(least - one) for one in logs]
    low = high = cut - 1
    enough = PLACED * sum(chances)
    while sum(chances[low : high + 1]) < enough:
        lower, upper = (chances[low - 1] if low else -1.0), (chances[high + 1] if high + 1 < len(chances) else -1.0)
        low, high = (low - 1, high) if lower > upper else (low, high + 1)
    return low - cut + 1, high - cut + 1
