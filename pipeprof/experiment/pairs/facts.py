"""What pairs of runs gave, as the JSON of `headspace` and `whatif` has it. Pure.

How many pairs of runs there will be, and where they stand, in words. Pure.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pipeprof.collect.probe.redact import without_secrets
from pipeprof.experiment.pairs.series import ratio_of
from pipeprof.units import NS_PER_S, format_count, format_ns
from pipeprof.verdict.speedup import two_speeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.experiment.pairs.series import Plan, Side
    from pipeprof.experiment.runs import Measured, Series
    from pipeprof.verdict.speedup import Speed


EACH_PARTS = 3  # parts of a run that a speed is seen in


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
