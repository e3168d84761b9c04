"""Sessions drawn from a pool of real repetitions, as many as one likes. Pure, with the chance given."""

from __future__ import annotations

import math
from statistics import mean
from typing import TYPE_CHECKING

from pipeprof.experiment.qualify.pool import SAME, STEP, Pool, Values
from pipeprof.verdict.gate.samples import Samples

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

STEP_METRICS = (STEP, "step_time_p90")
MIXED = 0.5  # of another repetition's deviation: without it a small pool would hold the same value again and again


class Draws:
    """Deals the repetitions of a pool out as both sides of a session of `length` repetitions.

    With enough rounds each session is some of them in a new order, with both sides of every round dealt anew. With
    fewer, rounds are drawn again, and every repetition is one of the pool plus half the deviation of another one,
    shrunk so that the spread stays what it is (smoothed bootstrap, on logs; metrics keep their correlation).
    """

    def __init__(self, pool: Pool, metrics: Sequence[str], length: int, chance: random.Random) -> None:
        self.pool, self.metrics, self.length, self.chance = pool, metrics, length, chance
        self.enough = length <= len(pool.rounds)
        self.groups = {SAME[0]: [one[name] for one in pool.rounds for name in SAME]}
        self.groups |= {name: [one[name] for one in pool.rounds] for name in pool.rounds[0] if name not in SAME}
        self.groups[SAME[1]] = self.groups[SAME[0]]
        self.logs = {name: min(v[name] for group in self.groups.values() for v in group) > 0 for name in metrics}
        self.centres = {
            name: {metric: mean(self._on_scale(values[metric], metric) for values in group) for metric in metrics}
            for name, group in self.groups.items()
        }

    def session(self, condition: str | None, share: float) -> tuple[dict[str, Samples], dict[str, Samples]]:
        """Base and new: the command as it is, and `condition`; None: as it is too, with steps longer by `share`."""
        draw = self.chance.sample if self.enough else self.chance.choices
        base, new = [], []
        for one in draw(self.pool.rounds, k=self.length):
            first, second = self.chance.sample(SAME, 2)
            base.append(self._repetition(one, first))
            other = self._repetition(one, condition or second)
            new.append(scaled(other, share) if condition is None and share else other)
        return self._side(base), self._side(new)

    def _repetition(self, one: dict[str, Values], name: str) -> Values:
        """A repetition of a round, mixed with another of its condition when rounds are drawn more than once."""
        if self.enough:
            return one[name]
        group = self.groups[name]
        other = self.chance.choice(group)
        grow = math.sqrt(len(group) / (len(group) - 1) / (1 + MIXED * MIXED))
        drawn = {}
        for metric in self.metrics:
            centre = self.centres[name][metric]
            value, added = (self._on_scale(values[metric], metric) - centre for values in (one[name], other))
            mixed = centre + grow * (value + MIXED * added)
            drawn[metric] = math.exp(mixed) if self.logs[metric] else mixed
        return drawn

    def _on_scale(self, value: float, metric: str) -> float:
        return math.log(value) if self.logs[metric] else value

    def _side(self, repetitions: Sequence[Values]) -> dict[str, Samples]:
        order = tuple(range(len(repetitions)))
        return {name: Samples(tuple(values[name] for values in repetitions), order) for name in self.metrics}


def scaled(values: Values, share: float) -> Values:
    """A repetition whose steps take a share longer, by arithmetic."""
    return {name: value * (1 + share) if name in STEP_METRICS else value for name, value in values.items()}
