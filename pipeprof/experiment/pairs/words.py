"""How many pairs of runs there will be, and where they stand, in words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.units import NS_PER_S, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.experiment.pairs.series import Plan


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
