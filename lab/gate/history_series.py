"""Series of a history made of measured repetitions, with steps, drifts and outliers planted; and how finds are scored."""

from __future__ import annotations

from dataclasses import dataclass, field

import gate_measured
import gate_noise
import numpy as np

POINTS, REPS = 120, 5
NEAR = 3  # commits that a find may be off
LEAST_APART = 8  # points between two planted events, and to either end
SIZES = (0.03, 0.05, 0.10, 0.20)
STEP, DRIFT = "step", "drift"


@dataclass(frozen=True)
class Event:
    """A planted change, `first` to `last` point of it; a step has one point."""

    kind: str
    first: int
    last: int
    ratio: float


@dataclass(frozen=True)
class Series:
    """Values of one metric, and the repetitions that each is the median of, (points, reps)."""

    source: str
    repetitions: np.ndarray
    events: list[Event] = field(default_factory=list)

    @property
    def medians(self):
        return np.median(self.repetitions, axis=1)


def pools():
    """Source -> function of (points, reps, seed): step times of processes of identical code, (points, reps)."""
    found = {
        one.name: lambda points, reps, seed, one=one: gate_noise.repetitions(one, points, reps, seed)[:, 0, 0]
        for one in (gate_noise.QUIET, gate_noise.SAMEJOB)
    }
    if gate_measured.available():
        for name, damped in (("scaled", True), ("real", False)):
            found[name] = lambda points, reps, seed, damped=damped: gate_measured.repetitions(
                damped, points, reps, seed
            )[:, 0, 0]
    return found


def quiet(source, draw, seed, points=POINTS):
    """Identical code, with an outlier now and then."""
    random = np.random.default_rng([seed, 1])
    return Series(source, _outliers(draw(points, REPS, seed), random))


def planted(source, draw, seed):
    """One to three events: a step in two of three, else a drift over 20 to 40 points; up or down."""
    random = np.random.default_rng([seed, 2])
    table, events = draw(POINTS, REPS, seed).copy(), []
    for _ in range(random.integers(1, 4)):
        kind = STEP if random.random() < 2 / 3 else DRIFT
        length = 1 if kind == STEP else int(random.integers(20, 41))
        free = [at for at in range(LEAST_APART, POINTS - LEAST_APART - length) if _is_free(at, at + length - 1, events)]
        if not free:
            break
        first = int(random.choice(free))
        ratio = (1 + random.choice(SIZES)) ** random.choice([1, 1, -1])
        last = first + length - 1
        course = np.interp(np.arange(POINTS), [first - 1, last], [0.0, np.log(ratio)])
        table *= np.exp(course)[:, None]
        events.append(Event(kind, first, last, float(ratio)))
    return Series(source, _outliers(table, random), sorted(events, key=lambda event: event.first))


def _is_free(first, last, events):
    return all(last + LEAST_APART < event.first or first - LEAST_APART > event.last for event in events)


def _outliers(table, random):
    """In 2 % of the points all repetitions take 1.2 to 2 times as long: something else ran."""
    hit = random.random(len(table)) < 0.02
    return table * np.where(hit, random.uniform(1.2, 2.0, len(table)), 1.0)[:, None]


@dataclass
class Score:
    """Counts over series. A drift is found by any find within it; more finds within it count neither way."""

    right: int = 0
    false: int = 0
    missed: int = 0
    points: int = 0
    by_size: dict = field(default_factory=dict)

    def add(self, series, finds):
        left = sorted(finds)
        self.points += len(series.repetitions)
        for event in series.events:
            near = [at for at in left if event.first - NEAR <= at <= event.last + NEAR]
            hits = self.by_size.setdefault((event.kind, round(abs(np.log(event.ratio)), 3)), [0, 0])
            hits[1] += 1
            hits[0] += bool(near)
            self.right += bool(near)
            self.missed += not near
            best = min(near, key=lambda at, event=event: abs(at - event.first), default=None)
            left = [at for at in left if (at not in near if event.kind == DRIFT else at != best)]
        self.false += len(left)

    @property
    def precision(self):
        return self.right / (self.right + self.false) if self.right + self.false else float("nan")

    @property
    def recall(self):
        return self.right / (self.right + self.missed) if self.right + self.missed else float("nan")

    @property
    def f1(self):
        return 2 * self.right / (2 * self.right + self.false + self.missed) if self.right else 0.0

    @property
    def false_per_1000(self):
        return 1000 * self.false / self.points
