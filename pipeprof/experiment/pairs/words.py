"""What pairs of runs gave, in words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.experiment.pairs.series import MOST_PAIRS, PARTS
from pipeprof.units import NS_PER_S, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.experiment.pairs.series import Plan, Side

SAYS_NOTHING = 100  # times the low end of an interval, as its high end
AGAIN = 2  # times as many pairs, where so many did not decide


def plan_line(plan: Plan) -> str:
    """How many pairs of runs there will be."""
    number = str(plan.most) if plan.most == plan.least else f"{plan.least} to {plan.most}, until they decide"
    within = "" if plan.budget_s is None else f", within {format_ns(plan.budget_s * NS_PER_S)}"
    return f"pairs of runs: {number}{within}"


def standing_line(ratios: Sequence[float], spent_s: float, plan: Plan) -> str:
    """Where the pairs stand when another one follows, and how long that may go on at most."""
    pairs = len(ratios)
    more = plan.most - pairs
    if plan.budget_s is not None:
        more = min(more, int((plan.budget_s - spent_s) * pairs / spent_s))
    left = format_ns(more * spent_s / pairs * NS_PER_S)
    ends = " to ".join(dict.fromkeys(f"x{ratio:.2f}" for ratio in (min(ratios), max(ratios))))
    return f"{format_count(pairs, 'pair')} so far ({ends}): at most {more} more, {left}"


def figure(measured: Mapping[str, Any], mark: str = "x") -> str:
    """`x1.60`, or `x1.80 or x3.10` where there are two speeds."""
    return " or ".join(f"{mark}{one['ratio']:.2f}" for one in measured["speeds"] or [measured])


def spread(measured: Mapping[str, Any]) -> str:
    """What the figure comes from: the interval and the single pairs, or the two speeds."""
    if measured["speeds"]:
        listed = [
            f"x{speed['ratio']:.2f} in {format_count(len(speed['pairs']), 'pair')}" for speed in measured["speeds"]
        ]
        return f"two speeds: {', '.join(listed)}"
    pairs = f"pairs x{measured['low']:.2f} to x{measured['high']:.2f}"
    interval = measured["interval"]
    if interval is None or interval[1] > SAYS_NOTHING * interval[0]:
        return pairs
    return f"x{interval[0]:.2f} to x{interval[1]:.2f}; {pairs}"


def undecided_lines(measured: Mapping[str, Any]) -> list[str]:
    """That there is no answer, why, and what may bring one."""
    if measured["decided"] == "two_speeds":
        return [
            f"undecided: {figure(measured)} ({spread(measured)})",
            "  each run has one of the speeds; more pairs do not change that",
        ]
    more = f"--max-pairs {max(MOST_PAIRS, AGAIN * measured['pairs'])}"
    if measured["stopped"] == "budget":
        more = "a longer --budget"
    if measured["interval"] is None:
        return [f"undecided: a single pair says {figure(measured)}", f"  measure more of them: {more}"]
    return [
        f"undecided: {format_count(measured['pairs'], 'pair')} do not agree ({spread(measured)})",
        f"  measure more of them ({more}), on a quiet machine if you can",
    ]


def speed_lines(content: Mapping[str, Any]) -> list[str]:
    """Which runs have two speeds: those of a side, or single ones within themselves."""
    words: dict[Side, str] = {"a": "unchanged", "b": "changed"}
    side = content["measured"]["speeds_of"]
    said = [f"  it is the {words[side]} runs that have two speeds"] if side else []
    for run in content["runs"]:
        if run["speeds"]:
            listed = [f"{one['steps_per_second']:.1f} steps/s in {one['parts']}" for one in run["speeds"]]
            said.append(f"  run {run['name']} changed its speed: {', '.join(listed)} of its {PARTS} parts")
    return said


def rates_line(content: Mapping[str, Any], before: str, after: str) -> str:
    """Steps/s of the runs of either side, each in the order of the pairs."""
    runs = sorted(content["runs"], key=lambda run: run["pair"])
    rates = {side: [run["steps_per_second"] for run in runs if run["side"] == side] for side in ("a", "b")}
    return f"  steps/s {before} {_listed(rates['a'])}; {after} {_listed(rates['b'])}"


def _listed(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:.1f}" for rate in rates)
