"""The verdict on two sides: families, words, and the worst of the primary metrics. Pure; rules: docs/gate.md.

Metrics as shares: what all metrics of a prefix did in a repetition is taken out of each (common mode). Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.verdict.gate.decision import INCONCLUSIVE, WORDS, decide, scaled
from pipeprof.verdict.gate.jobs import change_between, compared, weights
from pipeprof.verdict.gate.levels import LARGEST, level, unjudged, with_interval, with_least
from pipeprof.verdict.gate.policy import usable
from pipeprof.verdict.gate.power import chances
from pipeprof.verdict.gate.result import MetricVerdict, Verdict, Word, note
from pipeprof.verdict.gate.samples import Samples, taken
from pipeprof.verdict.gate.statistics import LEAST_COMMON, LEVEL, SHARE, clear_distance, common_mode, repetitions_needed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.verdict.gate.decision import Scaled
    from pipeprof.verdict.gate.jobs import Compared
    from pipeprof.verdict.gate.levels import Levels
    from pipeprof.verdict.gate.planned import Look
    from pipeprof.verdict.gate.policy import Policy, Rule
    from pipeprof.verdict.gate.result import Note
    from pipeprof.verdict.gate.statistics import Array, Change


Sides = tuple[Samples, Samples]
_FIRST = ("primary", "informing")
TIMES = ("ns", "s")  # units of what a faster machine makes shorter


@dataclass(frozen=True)
class _Case:
    """One metric that can be judged; `change` is new - base whatever the direction, `shown` what people see of it.

    `distance`: of `clear_distance`, new - base as well; `nearest`: new / base between the nearest repetitions.
    """

    name: str
    rule: Rule
    sides: Sides
    scaled: Scaled
    change: Change
    shown: Levels
    chosen: Compared
    reasons: tuple[Note, ...]
    share_ratio: float | None
    distance: float
    nearest: float | None


def judge(
    base: Mapping[str, Samples | Sequence[float]],
    new: Mapping[str, Samples | Sequence[float]],
    policy: Policy | Mapping[str, Any] | None = None,
) -> Verdict:
    """The verdict on `new` against `base`: metric name to one value per repetition, in the metric's unit.

    Every metric of `base` gets a verdict: primary ones in the policy's order, then those that inform, then the others
    by name. The verdict of the whole is the worst primary one. The order of repetitions plays no role. `policy` may be
    a table, as in a policy file. Raises UsageError for values that are no finite numbers, and for a policy that cannot
    be.
    """
    policy = usable(policy)
    return judged(taken(base, "base"), taken(new, "new"), policy, policy.alpha)


def judged(
    base: Mapping[str, Samples], new: Mapping[str, Samples], policy: Policy, alpha: float, last: Look | None = None
) -> Verdict:
    """`judge` with the alpha that one look of several may use, for samples that were checked.

    With the `last` of the looks that follow, the verdict has `chances`.
    """
    measured = {name: (side, new.get(name, Samples(()))) for name, side in base.items() if side.values}
    centred = shares(base, new, policy)
    verdicts: dict[str, MetricVerdict] = {}
    cases: list[_Case] = []
    for name, sides in measured.items():
        rule = policy.rule(name)
        if not sides[1].values:
            verdicts[name] = _entry(name, rule, sides, "missing", reasons=(note("not_in_new"),))
        elif rule.exact and not (rule.min_effect and _varies(sides)):
            verdicts[name] = _exact(name, rule, sides)
        else:
            case = _case(name, rule, sides, policy, centred.get(name))
            if isinstance(case, MetricVerdict):
                verdicts[name] = case
            else:
                cases.append(case)
    places = {name: _position(policy, name) for name in measured}
    for family in ("primary", "informing", "secondary"):
        here = sorted((case for case in cases if case.rule.family == family), key=lambda case: places[case.name])
        verdicts.update(_family(here, policy, alpha, family_size(policy, family, measured)))
    metrics = tuple(verdicts[name] for name in sorted(verdicts, key=places.__getitem__))
    ahead = {} if last is None else _chances([case for case in cases if case.rule.family == "primary"], verdicts, last)
    return Verdict(overall(metrics), metrics, _notes(measured, new, policy), chances=ahead)


def family_size(policy: Policy, family: str, measured: Mapping[str, object]) -> int:
    """Metrics that share alpha; of those that decide or inform at least as many as the policy has.

    Leaving one out, or having one only inform, makes no test easier.
    """
    together = _FIRST if family in _FIRST else (family,)
    here = sum(_shares_alpha(policy.rule(name), together) for name in measured)
    if family == "secondary":
        return max(1, here)
    return max(1, here, sum(_shares_alpha(rule, together) for rule in policy.metrics.values()))


def _shares_alpha(rule: Rule, families: Sequence[str]) -> bool:
    """Whether it is among those of `families` that are tested: nothing of what is exact is left to chance."""
    return rule.family in families and not rule.exact


def overall(metrics: Sequence[MetricVerdict]) -> Word:
    """The worst primary verdict; missing when no primary metric was judged, for then nothing is known."""
    words = {one.verdict for one in metrics if one.family == "primary"}
    order: tuple[Word, ...] = ("regressed", "missing", "incomparable", "inconclusive", "improved", "acknowledged")
    return next((word for word in order if word in words), "unchanged") if words else "missing"


def _position(policy: Policy, name: str) -> tuple[int, int, str]:
    family, listed = policy.rule(name).family, list(policy.metrics)
    if family in _FIRST:
        return _FIRST.index(family), listed.index(name) if name in listed else len(listed), name
    return len(_FIRST), 0, name


def _case(
    name: str, rule: Rule, sides: Sides, policy: Policy, centred: tuple[Array, Array] | None
) -> _Case | MetricVerdict:
    chosen = compared(*sides, policy, timed=rule.unit in TIMES)
    if chosen.how is None:
        few = min(len(side.values) for side in sides) < policy.least_reps
        needed = policy.least_reps if few else None
        return _entry(name, rule, sides, "inconclusive", reps_needed=needed, reasons=chosen.reasons)
    base, new = (np.asarray(side.values, dtype=float) for side in sides)
    base, new = base[chosen.base], new[chosen.new]
    on = scaled(base, new, rule)
    if chosen.how == "few_jobs":  # nothing is surely the same, and only what is very large is a change
        on = replace(on, least=np.maximum(on.least, _on(on.kind, chosen.limit)), margin=np.zeros_like(on.margin))
    change = change_between(on.base, on.new, sides, chosen)
    counts = weights(sides, chosen)
    shift = rule.floor if on.kind == "shifted" else 0.0
    means = [level(side, count, shift, on.kind) for side, count in zip((base, new), counts, strict=True)]
    shown = with_interval(means[0], means[1], change, float(on.unit), shift, on.kind)
    shown = with_least(shown, float(on.least), float(on.unit), shift, on.kind)
    reasons, share_ratio = _scale(on.kind), None
    distance = float(clear_distance(base, new, rule)) if centred is None and policy.alpha >= SHARE else 0.0
    if centred is not None:
        on = replace(on, base=centred[0][chosen.base], new=centred[1][chosen.new])
        change = change_between(on.base, on.new, sides, chosen)
        share_ratio = math.exp(min(float(change.difference), LARGEST))
        reasons = (note("share", prefix=prefix_of(name), ratio=share_ratio),)
    reasons = (*chosen.reasons, *reasons)
    return _Case(name, rule, sides, on, change, shown, chosen, reasons, share_ratio, distance, _nearest(base, new))


def _nearest(base: Array, new: Array) -> float | None:
    """New / base between the nearest repetitions of sides that do not overlap; None unless both are above 0."""
    lower, upper = (base.max(), new.min()) if new.min() > base.max() else (base.min(), new.max())
    return float(upper / lower) if lower > 0 < upper else None


def _on(kind: str, share: float) -> float:
    """A relative change as a difference on the scale that is judged."""
    return share if kind == "linear" else math.log1p(share)


def _scale(kind: str) -> tuple[Note, ...]:
    """What is said about a scale that is not the usual one, of logarithms."""
    if kind == "log":
        return ()
    return (note("shifted_scale"),) if kind == "shifted" else (note("linear_scale"),)


def _family(cases: Sequence[_Case], policy: Policy, alpha: float, family: int) -> dict[str, MetricVerdict]:
    if not cases:
        return {}
    together = _together([_worse(case) for case in cases])
    least, margin = (np.stack([getattr(case.scaled, part) for case in cases], axis=-1) for part in ("least", "margin"))
    distances = np.array([-case.distance if case.rule.direction == "higher" else case.distance for case in cases])
    decision = decide(together, least, margin, alpha, family, distances)
    verdicts = {}
    for at, case in enumerate(cases):
        code, p_value, held = int(decision.code[at]), float(decision.p_value[at]), float(decision.held[at])
        needed, finds, reasons = None, None, case.reasons
        if code == INCONCLUSIVE:
            needed, finds = _needed(case, policy, policy.alpha / family)
            allowed = float(decision.held_better[at]) if p_value > 0.5 else held
            reasons = reasons if case.chosen.how == "few_jobs" else (*reasons, _why(case, p_value, allowed))
        elif decision.untested[at]:
            reasons = (*reasons, note("far_apart", above=case.distance > 0, ratio=case.nearest))
        verdicts[case.name] = _entry(
            case.name, case.rule, case.sides, WORDS[code], shown=case.shown, p_value=p_value, alpha=held,
            reps_needed=needed, reasons=reasons, share_ratio=case.share_ratio, reps_find=finds,
        )  # fmt: skip
    return verdicts


def _worse(case: _Case) -> Change:
    """The change with differences above 0 for worse."""
    return case.change.mirrored() if case.rule.direction == "higher" else case.change


def _together(changes: Sequence[Change]) -> Change:
    return type(changes[0])(
        *(np.stack([getattr(one, part) for one in changes], axis=-1) for part in ("difference", "error", "df"))
    )


def _chances(
    cases: Sequence[_Case], verdicts: Mapping[str, MetricVerdict], last: Look
) -> dict[str, tuple[float, float]]:  # fmt: skip
    """Of each undecided case of one job: the chances that `last` says regressed, and that it says anything."""
    out = {}
    for case in cases:
        reps = min(int(case.chosen.base.sum()), int(case.chosen.new.sum()))
        if verdicts[case.name].verdict == "inconclusive" and case.chosen.how == "job":
            worse, decided = chances(_worse(case), case.scaled.least, case.scaled.margin, reps, last)
            out[case.name] = (float(worse), float(decided))
    return out


def _needed(case: _Case, policy: Policy, alpha: float) -> tuple[int | None, float | None]:
    """Repetitions per side for the policy's `detect`, or for twice the least change that counts where that is more.

    With the change that they find. Where there are as many already: those that would settle the difference that was
    seen, as a change when it counts, as unchanged when it is within the margin; None when it is neither, for then no
    number would.
    """
    if case.chosen.how in ("jobs", "few_jobs"):
        return None, None
    numbers = int(case.chosen.base.sum()), int(case.chosen.new.sum())
    spread = float(case.change.error) / math.sqrt(sum(1 / number for number in numbers))
    effect = max(_on(case.scaled.kind, policy.detect), 2 * float(case.scaled.least))
    finds: float | None = effect if case.scaled.kind == "linear" else math.expm1(effect)
    needed = repetitions_needed(spread, effect, alpha, policy.power)
    if needed is not None and needed <= min(numbers):
        needed, finds = _to_settle(case, spread, alpha, policy.power), None
    return (None, None) if needed is None else (max(needed, policy.least_reps, min(numbers) + 1), finds)


def _to_settle(case: _Case, spread: float, alpha: float, power: float) -> int | None:
    size, room = abs(float(case.change.difference)), float(case.scaled.margin)
    if size >= float(case.scaled.least):
        return repetitions_needed(spread, size, alpha, power)
    return repetitions_needed(spread, room - size, (1 - LEVEL) / 2, power) if size < room else None


def _why(case: _Case, p_value: float, held: float) -> Note:
    least, size = float(case.scaled.least), abs(float(case.change.difference))
    worse_or_better = min(p_value, 1 - p_value)
    if worse_or_better <= held and size < least:
        shown, needed = (size, least) if case.scaled.kind == "linear" else (math.expm1(size), math.expm1(least))
        return note("too_small", change=shown, needed=needed)
    return note("too_noisy", p_value=worse_or_better, needed=held, better=p_value > 0.5)


def _varies(sides: Sides) -> bool:
    """Whether it differs between the repetitions of one side: then it is judged with its own noise."""
    return any(len(set(side.values)) > 1 for side in sides)


def _exact(name: str, rule: Rule, sides: Sides) -> MetricVerdict:
    if _varies(sides):
        return _entry(name, rule, sides, "inconclusive", reasons=(note("count_varies"),))
    base, new = sides[0].values[0], sides[1].values[0]
    worse = new < base if rule.direction == "higher" else new > base
    small = abs(new - base) < max(rule.min_effect * abs(base), rule.floor)
    return _entry(name, rule, sides, "unchanged" if base == new or small else "regressed" if worse else "improved")


def _entry(
    name: str, rule: Rule, sides: Sides, word: Word, *, shown: Levels | None = None, p_value: float | None = None,
    alpha: float | None = None, reps_needed: int | None = None, reasons: tuple[Note, ...] = (),
    share_ratio: float | None = None, reps_find: float | None = None,
) -> MetricVerdict:  # fmt: skip
    base, new = (side.values for side in sides)
    shown = shown or unjudged(base, new)
    return MetricVerdict(
        name, rule.unit, rule.direction, rule.family, word, shown.base, shown.new, shown.ratio, shown.ci_low,
        shown.ci_high, p_value, alpha, rule.min_effect, len(base), len(new), reps_needed, reasons, share_ratio,
        shown.counts_below, shown.counts_above, reps_find,
    )  # fmt: skip


def _notes(measured: Mapping[str, object], new: Mapping[str, Samples], policy: Policy) -> tuple[Note, ...]:
    fresh = sorted(name for name, side in new.items() if side.values and name not in measured)
    only_new = [name for name in fresh if policy.rule(name).family == "primary"]
    nowhere = [
        name
        for name, rule in policy.metrics.items()
        if rule.family == "primary" and name not in measured and name not in only_new
    ]
    notes = (note("only_in_new", metrics=only_new), note("on_neither_side", metrics=nowhere))
    return tuple(one for one in notes if one["metrics"])


def prefix_of(metric: str) -> str:
    """`op/` of `op/matmul/median`; empty without a slash."""
    head, slash, _ = metric.partition("/")
    return head + slash if slash else ""


def shares(base: Mapping[str, Samples], new: Mapping[str, Samples], policy: Policy) -> dict[str, tuple[Array, Array]]:
    """Logs of base and new without the common mode, for metrics whose rule says `share`, in the order of their values.

    Left out, and so judged as they are: metrics with values that are not positive, and prefixes with fewer than three
    metrics on both sides, where the median would take a real change along.
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(set(base) & set(new)):
        values = (*base[name].values, *new[name].values)
        if policy.rule(name).share and values and min(values) > 0:
            groups.setdefault(prefix_of(name), []).append(name)
    centred = {}
    for names in groups.values():
        if len(names) >= LEAST_COMMON:
            left, right = _centred(base, names), _centred(new, names)
            centred.update({name: (left[name], right[name]) for name in names})
    return centred


def _centred(side: Mapping[str, Samples], names: Sequence[str]) -> dict[str, Array]:
    places = {name: side[name].repetitions() for name in names}
    columns = {key: at for at, key in enumerate(sorted({key for keys in places.values() for key in keys}))}
    at = {name: np.array([columns[key] for key in keys], dtype=np.intp) for name, keys in places.items()}
    logs = {name: np.log(np.asarray(side[name].values, dtype=float)) for name in names}
    table = np.full((len(names), len(columns)), np.nan)
    for row, name in enumerate(names):
        table[row, at[name]] = logs[name]
    common = common_mode(table)
    return {name: logs[name] - common[at[name]] for name in names}
