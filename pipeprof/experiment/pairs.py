"""Two sides of one workload, measured in turn: order, number of pairs, rates and ratios, and their words. Pure."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pipeprof.collect.probe.redact import without_secrets
from pipeprof.units import NS_PER_S, format_count, format_ns
from pipeprof.verdict.speedup import PARTS, two_speeds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.experiment.runs import Measured, Series
    from pipeprof.verdict.speedup import Speed

Side = Literal["a", "b"]
Stopped = Literal["decided", "pairs", "budget"]
SKIPPED = 0.25  # of the training steps, at the start
LEAST_STEPS = 5
LEAST_RUN = 10  # training steps that a run is not ended before: a quarter of them is not timed
EACH_PARTS = 3  # parts of a run that a speed is seen in


class _Step(msgspec.Struct, frozen=True):
    """What counts of a row of the table `step`."""

    kind: str
    rank: int
    kind_step: int
    start_ns: int
    end_ns: int
    epoch: int | None = None


class _Iterator(msgspec.Struct, frozen=True):
    """What counts of a row of the table `pipeline`."""

    role: str | None
    iteration: int | None
    rank: int
    created_ns: int
    ready_ns: int
    closed_ns: int | None
    closing_ns: int | None


@dataclass(frozen=True)
class Rate:
    """Training steps per second of one run, from `steps` steps."""

    per_second: float
    steps: int


@dataclass(frozen=True)
class Start:
    """A time in which the workers of a loader were started or ended, between two steps of a rank."""

    rank: int
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Ratio:
    """Speed-up of side b over side a: median of the pairs, the lowest and the highest of them."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Plan:
    """How many pairs: at least, at most, and the seconds within which they have to stay.

    `steps`: training steps after which each run is ended; None: the whole training is run. `later`: only steps from the
    second epoch on count, as where the first fills a cache.
    """

    least: int
    most: int
    budget_s: float | None = None
    steps: int | None = None
    later: bool = False

    def stop(self, pairs: int, spent_s: float, *, decided: bool) -> Stopped | None:
        """Why no further pair follows on so many that took so long; None where one does.

        A pair that would not end in time, at the pace of those before it, is not begun.
        """
        if decided and pairs >= self.least:
            return "decided"
        if pairs >= self.most:
            return "pairs"
        late = self.budget_s is not None and spent_s * (pairs + 1) / pairs > self.budget_s
        return "budget" if late else None


def sides(pair: int) -> tuple[Side, Side]:
    """Which side runs when: a b, b a, a b, ... so that a drift of the machine hits both sides alike."""
    return ("a", "b") if pair % 2 == 0 else ("b", "a")


def steady_rate(steps: Iterable[Mapping[str, Any]], starts: Sequence[Start] = ()) -> Rate | None:
    """Steps/s from rows of the table `step`: the training steps without warm-up ones and without the first quarter.

    `starts`: what takes time between them. With several ranks that of the slowest. None for fewer than 5 steps.
    """
    rates = [rate for rows in _timed(steps) if (rate := _rate(rows, starts)) is not None]
    return min(rates, key=lambda rate: rate.per_second, default=None)


def starts_of(pipelines: Iterable[Mapping[str, Any]]) -> list[Start]:
    """What the training's loaders took to start their workers and to end them, from rows of the table `pipeline`."""
    starts = []
    for row in msgspec.convert([row for row in pipelines if row.get("iteration") is not None], list[_Iterator]):
        if row.role == "train":
            starts.append(Start(row.rank, row.created_ns, row.ready_ns))
            if row.closing_ns and row.closed_ns:
                starts.append(Start(row.rank, row.closed_ns, row.closed_ns + row.closing_ns))
    return starts


def rates_of_parts(steps: Iterable[Mapping[str, Any]]) -> list[float]:
    """Steps/s of each eighth of what `steady_rate` counts, of the lowest rank, without the first step of an epoch.

    Such a step may start the pipeline anew. [] where an eighth would have fewer than 5 steps.
    """
    rows = next(iter(_timed(steps)), [])
    within_epochs = [after for before, after in pairwise(rows) if before.epoch == after.epoch]
    borders = [len(within_epochs) * part // PARTS for part in range(PARTS + 1)]
    rates = [_rate(within_epochs[begin:end]) for begin, end in pairwise(borders)]
    per_second = [rate.per_second for rate in rates if rate is not None]
    return per_second if len(per_second) == PARTS else []


def ratio_of(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """Side b against side a, pair by pair."""
    ratios = [other / one for one, other in zip(a, b, strict=True)]
    return Ratio(median(ratios), min(ratios), max(ratios))


def _timed(steps: Iterable[Mapping[str, Any]]) -> list[list[_Step]]:
    """The training steps that count, in order, of each rank."""
    ranks: dict[int, list[_Step]] = {}
    for row in msgspec.convert(list(steps), list[_Step]):
        if row.kind == "train":
            ranks.setdefault(row.rank, []).append(row)
    ordered = [sorted(ranks[rank], key=lambda row: row.kind_step) for rank in sorted(ranks)]
    return [rows[int(len(rows) * SKIPPED) :] for rows in ordered]


def _between(rows: Sequence[_Step], start: Start) -> int:
    """What of a start lies between two of the steps."""
    after = bisect_right(rows, start.begin_ns, key=lambda row: row.start_ns)
    if not 0 < after < len(rows):
        return 0
    return max(0, min(start.end_ns, rows[after].start_ns) - max(start.begin_ns, rows[after - 1].end_ns))


def _rate(rows: Sequence[_Step], starts: Sequence[Start] = ()) -> Rate | None:
    total = sum(row.end_ns - row.start_ns for row in rows)
    total += sum(_between(rows, one) for one in starts if rows and one.rank == rows[0].rank)
    return Rate(len(rows) * 1e9 / total, len(rows)) if len(rows) >= LEAST_STEPS and total > 0 else None


def measured_facts(series: Series, *, command: Sequence[str]) -> dict[str, Any]:
    """The part of the JSON that says what was run and what came out, without a verdict."""
    answer = series.answer
    measured = asdict(ratio_of(series.rates("a"), series.rates("b"))) | {
        "interval": None if answer.interval is None else list(answer.interval),
        "pairs": len(series.rates("a")),
        "decided": answer.decided,
        "stopped": series.stopped,
        "speeds": [_speed(speed) for speed in answer.speeds],
        "speeds_of": _whose(answer.speeds, series),
    }
    return {"command": without_secrets(command), "measured": measured, "runs": [_run(run) for run in series.runs]}


def _speed(speed: Speed) -> dict[str, Any]:
    return {"ratio": speed.median, "low": speed.low, "high": speed.high, "pairs": list(speed.places)}


def _whose(speeds: Sequence[Speed], series: Series) -> Side | None:
    """The side whose own rates fall into the groups of the pairs; None where neither's do."""
    groups = {speed.places for speed in speeds}
    sides: tuple[Side, Side] = ("a", "b")
    return next((side for side in sides if groups and _groups(series.rates(side)) == groups), None)


def _groups(rates: Sequence[float]) -> set[tuple[int, ...]]:
    return {speed.places for speed in two_speeds(rates)}


def _run(run: Measured) -> dict[str, Any]:
    return {
        "name": run.name,
        "side": run.side,
        "pair": run.pair,
        "path": run.path.name,
        "steps_per_second": run.rate.per_second,
        "timed_steps": run.rate.steps,
        "training_steps": run.training_steps,
        "speeds": [
            {"steps_per_second": speed.median, "parts": len(speed.places)}
            for speed in two_speeds(run.part_rates, EACH_PARTS)
        ],
    }


def plan_line(plan: Plan) -> str:
    """How many pairs of runs there will be."""
    number = str(plan.most) if plan.most == plan.least else f"{plan.least} to {plan.most}, until they decide"
    within = "" if plan.budget_s is None else f", within {format_ns(plan.budget_s * NS_PER_S)}"
    ended = "" if plan.steps is None else f"; each run ends after {plan.steps:,} training steps"
    return f"pairs of runs: {number}{within}{ended}"


def standing_line(ratios: Sequence[float], spent_s: float, plan: Plan) -> str:
    """Where the pairs stand when another one follows, and how long that may go on at most."""
    pairs = len(ratios)
    more = plan.most - pairs
    if plan.budget_s is not None:
        more = min(more, int((plan.budget_s - spent_s) * pairs / spent_s))
    left = format_ns(more * spent_s / pairs * NS_PER_S)
    ends = " to ".join(dict.fromkeys(f"x{ratio:.2f}" for ratio in (min(ratios), max(ratios))))
    return f"{format_count(pairs, 'pair')} so far ({ends}): at most {more} more, {left}"
