"""`pipeprof qualify`: how often the gate is wrong on this machine, and what it sees here at which cost.

Real repetitions of one command, as it is and with its steps really slowed down, are dealt out again and again as the
two sides of a session, and each session is judged as `ab` would judge it.

Sessions drawn from a pool of real repetitions, as many as one likes. Pure, with the chance given.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.collect import fingerprint
from pipeprof.collect.launch import signals_held
from pipeprof.collect.probe.redact import without_secrets
from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment.ab import policy_hash
from pipeprof.experiment.journal import alone
from pipeprof.experiment.qualify.pool import HALF, SAME, STEP, Order, Pool, Values, collect_pool, open_state
from pipeprof.experiment.repetition import Bench
from pipeprof.experiment.runs import write_json
from pipeprof.report.words.experiments import noted
from pipeprof.verdict.gate.decision import scaled as on_scale
from pipeprof.verdict.gate.judge import family_size
from pipeprof.verdict.gate.power import repetitions_to_find
from pipeprof.verdict.gate.result import note
from pipeprof.verdict.gate.samples import Samples
from pipeprof.verdict.gate.sequential_test import judge_looks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.verdict.gate.policy import Policy
    from pipeprof.verdict.gate.result import Note


SCHEMA_VERSION = 1
CHANGES = (0.02, 0.05, 0.10)
MINUTES = (5, 10, 30)
MOST_PERCENT = 50


def run_qualify(
    order: Order, sessions: int, policy: Policy, folder: Path, say: Callable[[str], None], bench: Bench | None = None
) -> dict[str, Any]:
    """Collect the pool, evaluate `sessions` drawn sessions per question, write `folder`/qualify.json; its content.

    A folder that holds such runs already is gone on with, with the seed that it began with.
    Raises UsageError for fewer rounds than the policy judges, WorkloadError when the command fails, MeasureError when
    too few rounds could be made or no step was seen.
    """
    if order.rounds < order.least_rounds:
        raise UsageError(
            f"--rounds {order.rounds}: at least {order.least_rounds} are needed", "the policy's `least_reps` says so"
        )
    open_state(order, folder)
    with alone(folder):
        state = open_state(order, folder)  # nobody else changes it from here on
        order = replace(order, seed=state.seed)
        pool = collect_pool(order, folder, bench or Bench(), say, state)
    say(f"simulating {sessions} comparisons for each of {1 + len(order.slow_downs)} questions")
    with signals_held():
        content = evaluate(order, pool, sessions, policy)
    write_json(folder / "qualify.json", content)
    return content


def evaluate(order: Order, pool: Pool, sessions: int, policy: Policy) -> dict[str, Any]:
    """The content of qualify.json from a pool."""
    metrics = pool.metrics([name for name, rule in policy.metrics.items() if rule.family == "primary"])
    if not pool.metrics([STEP]):
        raise MeasureError(
            "no step time was measured in every repetition", "in sink mode pipeprof sees no steps: switch it off"
        )
    if not metrics:
        raise MeasureError("no metric that the policy decides by was measured in every repetition", "see `metrics`")
    draws = Draws(pool, metrics, policy.looks[-1], random.Random(order.seed))  # noqa: S311 - no secret
    return {
        "schema_version": SCHEMA_VERSION,
        "command": without_secrets(order.command),
        "policy": policy_hash(policy),
        "alpha": policy.alpha,
        "looks": list(policy.looks),
        "seed": order.seed,
        "machine": fingerprint.machine(),
        "pool": {
            "rounds": len(pool.rounds),
            "repetitions": len(pool.rounds) * len(order.conditions),
            "discarded": pool.discarded,
            "seconds": sum(pool.seconds),
            "seconds_per_repetition": pool.pace,
            "spread": {name: pool.spread(name) for name in dict.fromkeys([*metrics, STEP])},
        },
        "false_alarms": evaluated(draws, sessions, policy),
        "slow_downs": [_slow_down(draws, sessions, policy, share) for share in order.slow_downs],
        "sees": [sees(pool, change, policy) for change in CHANGES],
        "within": [within(pool, minutes, policy) for minutes in MINUTES],
        **noted([*pool.notes, *_notes(pool, policy)]),
    }


def evaluated(
    draws: Draws, sessions: int, policy: Policy, condition: str | None = None, share: float = 0.0
) -> dict[str, Any]:
    """What the gate said in so many sessions: false alarms without a condition, else how often it was found."""
    verdicts = [judge_looks(*draws.session(condition, share), policy) for _ in range(sessions)]
    words = Counter(verdict.verdict for verdict in verdicts)
    used, count = [verdict.looks[-1] for verdict in verdicts], words["regressed"]
    low, high = wilson(count, sessions)
    return {
        "sessions": sessions,
        "count": count,
        "rate": count / sessions,
        "low": low,
        "high": high,
        "verdicts": {str(word): words[word] for word in sorted(words)},
        "mean_repetitions": sum(used) / len(used),
    }


def sees(pool: Pool, change: float, policy: Policy) -> dict[str, Any]:
    """Repetitions of each side after which a change of the step time is found with the policy's power, and minutes.

    `repetitions` is None where more than 200 are needed, or where the policy does not count such a change (`counts`).
    """
    values = np.asarray([one[name][STEP] for one in pool.rounds for name in SAME])
    least, effect, spread = (
        float(on_scale(values, values, policy.rule(STEP)).least),
        math.log1p(change),
        pool.spread(STEP),
    )
    counts, level = effect > least, policy.alpha / family_size(policy, "primary", {})
    repetitions = repetitions_to_find(spread, change, least, level, policy.power)
    needed = None if repetitions is None else max(repetitions, policy.least_reps)
    minutes = None if needed is None else (2 * needed + 2) * pool.pace / 60
    return {"change": change, "counts": counts, "repetitions": needed, "minutes": minutes}


def within(pool: Pool, minutes: float, policy: Policy) -> dict[str, Any]:
    """The least change of the step time, in whole percents, that is found in so many minutes with the policy's power.

    `change` is None where not even 50 % is found. The policy's last look ends a session, however many minutes are left.
    """
    for percent in range(1, MOST_PERCENT + 1):
        row = sees(pool, percent / 100, policy)
        if row["minutes"] is not None and row["minutes"] <= minutes and row["repetitions"] <= policy.looks[-1]:
            return {"minutes": minutes, "change": percent / 100}
    return {"minutes": minutes, "change": None}


def wilson(count: int, total: int) -> tuple[float, float]:
    """95 % interval of a rate (Wilson 1927), which stays inside 0 to 1. Raises ValueError for a total of 0."""
    from scipy.stats import binomtest  # noqa: PLC0415 - slow to import

    interval = binomtest(count, total).proportion_ci(0.95, "wilson")
    return float(interval.low), float(interval.high)


def exit_code(content: dict[str, Any]) -> int:
    """1 when the gate is wrong more often than the policy promises, beyond the interval; else 0."""
    return 1 if content["false_alarms"]["low"] > content["alpha"] else 0


def _slow_down(draws: Draws, sessions: int, policy: Policy, share: float) -> dict[str, Any]:
    """One slow-down: what it did to the step time, and how often the gate found it.

    Where the sleep was hidden (the training waits for data anyway), times are made longer by arithmetic instead.
    """
    condition = f"slow-{share:g}"
    change, low, high = draws.pool.effect(condition)
    hidden = high < HALF * share
    evaluation = evaluated(draws, sessions, policy, None if hidden else condition, share if hidden else 0.0)
    how = "arithmetic" if hidden else "sleep"
    return {"injected": share, "measured": change, "measured_low": low, "measured_high": high, "how": how} | evaluation


def _notes(pool: Pool, policy: Policy) -> list[Note]:
    rounds, last = len(pool.rounds), policy.looks[-1]
    luck = note("same_rounds", rounds=rounds)
    return [luck, note("used_again", looks=last, rounds=rounds)] if last > rounds else [luck]


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
