"""What a tuning is for: a faster training, or one that needs less memory or CPU time and is as fast. Pure."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

import msgspec

from pipeprof.verdict.gate.planned import Look, planned_looks
from pipeprof.verdict.gate.policy import Policy, Rule
from pipeprof.verdict.speedup import CHANGE, answer_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.experiment.tune.state import Final, Trial, TuneState, Word
    from pipeprof.verdict.gate.result import MetricVerdict, Verdict
    from pipeprof.verdict.tuning import Goal

METRIC = "step_time_median"  # whose rule in the gate the mean step of a run is judged by
NEED = "need"
KEPT = 0.95  # of the speed: what is given up at most, where something else is saved
ENOUGH = 3  # pairs that a trial needs to decide anything but the clearest; without time for them none begins
LOOKS = (4, 6, 9, 12)  # pairs after which the whole set is judged


def seconds_for(state: TuneState, pairs: int) -> float:
    """What so many pairs of a trial take, with a recording, the comparison of rows and the proof's first look after."""
    return state.look_s + 2 * (state.rows_run_s + (pairs + LOOKS[0]) * state.run_s)


def lacks_time(state: TuneState) -> bool:
    """Whether more time could change the result: a trial was cut short or not begun, the proof is open or failed."""
    final = state.final
    return state.ended == "budget" or (final is not None and (bool(final.error) or has_looks(state, final)))


def has_looks(state: TuneState, final: Final) -> bool:
    """Whether more pairs of the proof may decide it."""
    is_open = not final.error and final.verdict in (None, "inconclusive") and len(final.a) < LOOKS[-1]
    return is_open and state.may_take(final.batches, so_far=True)


def decided_word(trial: Trial, goal: Goal) -> Word | None:
    """What the pairs of a trial so far decide; None where they do not. Fills in its intervals."""
    speed = answer_of([b / a for a, b in zip(trial.a, trial.b, strict=True)], CHANGE)
    trial.interval = speed.interval
    if goal == "time":
        words: dict[str, Word] = {"above": "accepted", "below": "slower", "narrow": "no_gain"}
        return words.get(speed.decided or "")
    need = answer_of([a / b for a, b in zip(trial.need_a, trial.need_b, strict=True)], CHANGE)
    trial.saved_interval = need.interval
    if speed.decided == "below":
        return "slower"
    if need.decided in ("below", "narrow"):
        return "no_gain"
    fast_enough = speed.interval is not None and speed.interval[0] >= KEPT
    return "accepted" if need.decided == "above" and fast_enough else None


def is_hopeless(trial: Trial, goal: Goal, most: int) -> bool:
    """Whether not even pairs as good as the best so far, up to so many, would have the trial accepted."""
    more = most - len(trial.a)
    a, b = _with_best(trial.a, trial.b, more)
    need_b, need_a = _with_best(trial.need_b, trial.need_a, more)
    best = msgspec.structs.replace(trial, a=a, b=b, need_a=need_a, need_b=need_b)
    return decided_word(best, goal) != "accepted"


def _with_best(base: Sequence[float], new: Sequence[float], more: int) -> tuple[list[float], list[float]]:
    """Both sides, and the pair in which the new one is best so many times more."""
    best = max(zip(base, new, strict=True), key=lambda pair: pair[1] / pair[0], default=None)
    pairs = [*zip(base, new, strict=True), *([best] * more if best else [])]
    return [one for one, _ in pairs], [other for _, other in pairs]


def policy_of(goal: Goal) -> Policy:
    """How the whole set is judged: faster by the gate's own rule; or as fast within 5 %, and in need of less."""
    if goal == "time":
        return Policy(looks=LOOKS)
    return Policy(
        looks=LOOKS,
        metrics={METRIC: Rule(unit="ns", min_effect=1 - KEPT, margin=1 - KEPT), NEED: Rule(min_effect=0.02)},
    )


def proof_plan(final: Final, goal: Goal, most: int) -> tuple[Look, ...]:
    """The looks at the proof that were made, and those that follow when at most so many pairs can be had.

    Where the time is too short for all pairs, the last look that it allows has half of the alpha that is left: a later
    call, with more time, has the other half.
    """
    policy, used = policy_of(goal), fsum(final.alphas)
    if most < LOOKS[-1]:
        policy = msgspec.structs.replace(policy, alpha=(used + policy.alpha) / 2)
    return planned_looks(policy, zip(final.looks, final.alphas, strict=False), most)


def sides_of(final: Final, goal: Goal) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """What the gate judges of the original and of the set: times, and what both needed."""
    base, new = ({METRIC: [1e9 / rate for rate in rates]} for rates in (final.a, final.b))
    return (base, new) if goal == "time" else (base | {NEED: final.need_a}, new | {NEED: final.need_b})


def take_verdict(final: Final, verdict: Verdict, plan: Sequence[Look], goal: Goal) -> bool:
    """Put the gate's verdict by the planned looks into the final; True when it is decided."""
    speed = verdict.metric(METRIC)
    need = speed if goal == "time" else verdict.metric(NEED)
    if speed is None or need is None:
        return False
    final.verdict, final.looks = _overall(speed, need), list(verdict.looks)
    final.alphas = [look.alpha for look in plan[: len(final.looks)]]
    # The metric is a time: its ratio the other way round is that of the speeds.
    final.ratio, final.low, final.high = (
        None if value is None else 1 / value for value in (speed.ratio, speed.ci_high, speed.ci_low)
    )
    final.p_value, final.alpha = need.p_value, need.alpha
    if goal != "time":
        final.need = (need.ratio, need.ci_low, need.ci_high)
    return is_decided(final)


def is_decided(final: Final) -> bool:
    """Whether more pairs would not change what is said of the whole set."""
    return final.verdict in ("improved", "regressed", "unchanged")


def _overall(speed: MetricVerdict, need: MetricVerdict) -> str:
    """The verdict on what is wanted; where it is saved, only of a set that is not slower."""
    if need is speed:
        return speed.verdict
    if "regressed" in (speed.verdict, need.verdict):
        return "regressed"
    if need.verdict == "improved" and speed.verdict not in ("unchanged", "improved"):
        return "inconclusive"
    return need.verdict
