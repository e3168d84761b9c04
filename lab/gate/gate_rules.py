"""The gate over many trials at once, by the library's own functions, and the rules of other tools on the same samples."""

from __future__ import annotations

import numpy as np
from scipy import stats

from pipeprof.verdict.gate.decision import INCONCLUSIVE, decide, scaled
from pipeprof.verdict.gate.judge import family_size
from pipeprof.verdict.gate.planned import whole_plan
from pipeprof.verdict.gate.power import chances, hopeless
from pipeprof.verdict.gate.statistics import clear_distance, common_mode, welch


def _stacked(parts):
    return np.stack(parts, axis=-1)


def decided(pairs, rules, alpha, family, logs=None, *, test_only=False):
    """Codes (trials, metrics); `pairs` are (base, new) of shape (trials, metrics, reps), `logs` the same as shares.

    With `test_only` sides that lie far apart are judged by the test, too.
    """
    change, least, margin = changed(pairs, rules, logs)
    apart = _stacked([clear_distance(pairs[0][:, at], pairs[1][:, at], rule) for at, rule in enumerate(rules)])
    return decide(change, least, margin, alpha, family, None if test_only or logs is not None else apart).code


def changed(pairs, rules, logs=None):
    """Change, least change and margin of each metric, (trials, metrics)."""
    on = [scaled(pairs[0][:, at], pairs[1][:, at], rule) for at, rule in enumerate(rules)]
    sides = (
        [(part.base, part.new) for part in on]
        if logs is None
        else list(zip(*(np.moveaxis(one, 1, 0) for one in logs), strict=True))
    )
    changes = [welch(base, new) for base, new in sides]
    whole = type(changes[0])(
        *(_stacked([getattr(one, part) for one in changes]) for part in ("difference", "error", "df"))
    )
    return whole, _stacked([part.least for part in on]), _stacked([part.margin for part in on])


def sessions(table, names, policy, plan=None, *, to_the_end=False):
    """All planned looks: codes and deciding looks, both (trials, metrics). `table`: (trials, 2, metrics, reps).

    Looks end when the metrics that decide are decided, or, unless `to_the_end`, cannot be any more; those that inform
    have look 0.
    """
    plan = whole_plan(policy) if plan is None else plan
    code = np.full((len(table), len(names)), INCONCLUSIVE, dtype=np.int8)
    decides = deciding(names, policy)
    made = np.where(decides, plan[-1].reps, 0) * np.ones(code.shape, dtype=int)
    open_ = np.ones(len(table), dtype=bool)
    for look, alpha in plan:
        here = table[open_, :, :, :look]
        now = np.empty((len(here), len(names)), dtype=np.int8)
        for family, part in (("primary", decides), ("informing", ~decides)):
            rules = [policy.rule(name) for name, chosen in zip(names, part, strict=True) if chosen]
            if rules:
                size = family_size(policy, family, dict.fromkeys(names))
                now[:, part] = decided((here[:, 0, part], here[:, 1, part]), rules, alpha, size)
        before = code[open_]
        newly = (before == INCONCLUSIVE) & (now != INCONCLUSIVE) & decides
        made[open_] = np.where(newly, look, made[open_])
        code[open_] = np.where(before == INCONCLUSIVE, now, before)
        still = (code[:, decides] == INCONCLUSIVE).any(axis=1) & open_
        if look < plan[-1].reps and not to_the_end and still.any():
            rules = [policy.rule(name) for name, chosen in zip(names, decides, strict=True) if chosen]
            part = table[still][:, :, decides, :look]
            ahead = chances(*changed((part[:, 0], part[:, 1]), rules), look, plan[-1])
            undecided = code[still][:, decides] == INCONCLUSIVE
            given_up = np.zeros(len(table), dtype=bool)
            given_up[still] = hopeless(*ahead, undecided)
            late = given_up[:, None] & (code == INCONCLUSIVE) & decides
            made[late] = look
            still &= ~given_up
        open_ = still
        if not open_.any():
            break
    return code, made


def deciding(names, policy):
    """Which of the metrics decide."""
    return np.array([policy.rule(name).family == "primary" for name in names])


def shares(table, names, policy):
    """Codes (trials, metrics) of metrics judged once, as shares."""
    logs = np.log(table)
    logs -= common_mode(logs)[..., None, :]
    rules = [policy.rule(name) for name in names]
    return decided((table[:, 0], table[:, 1]), rules, policy.alpha, len(names), (logs[:, 0], logs[:, 1]))


def mean_rule(steps):
    """Mean more than 5 % up, one run."""
    return steps[:, 1, 0].mean(axis=-1) > 1.05 * steps[:, 0, 0].mean(axis=-1)


def ratio_to_previous(steps):
    """github-action-benchmark: more than 200 % of the previous value."""
    return steps[:, 1, 0].mean(axis=-1) > 2.0 * steps[:, 0, 0].mean(axis=-1)


def welch_on_steps(steps):
    """Welch's t test at .05 on the steps of one run."""
    test = stats.ttest_ind(steps[:, 1, 0], steps[:, 0, 0], axis=-1, equal_var=False)
    return (test.pvalue < 0.05) & (test.statistic > 0)


def rank_test_on_steps(steps):
    """Mann-Whitney at .05 on the steps of one run."""
    base, new = steps[:, 0, 0], steps[:, 1, 0]
    return _ranked(base, new, 0.05, "asymptotic")


def benchstat(steps):
    """benchstat: Mann-Whitney at .05 on ten repeated lines, each the mean of a run; no least change."""
    lines = steps[:, :, :10].mean(axis=-1)
    return _ranked(lines[:, 0], lines[:, 1], 0.05, "exact")


def asv(steps):
    """asv: factor 1.1 between medians, and Mann-Whitney at .002, samples of two processes pooled."""
    base, new = (steps[:, side, :2].reshape(len(steps), -1) for side in (0, 1))
    return (np.median(new, axis=-1) > 1.1 * np.median(base, axis=-1)) & _ranked(base, new, 0.002, "asymptotic")


def _ranked(base, new, level, method):
    p_value = stats.mannwhitneyu(new, base, axis=-1, method=method).pvalue
    return (p_value < level) & (np.median(new, axis=-1) > np.median(base, axis=-1))


RULES = {
    "mean > 5 %, 1 run": mean_rule,
    "Welch t on steps, .05, 1 run": welch_on_steps,
    "Mann-Whitney on steps, .05, 1 run": rank_test_on_steps,
    "benchstat: Mann-Whitney .05, 10 runs": benchstat,
    "asv: x 1.1 and Mann-Whitney .002, 2 runs": asv,
    "github-action-benchmark: x 2.0, 1 run": ratio_to_previous,
}
