"""The gate's error rates, simulated with the library's own functions: `python lab/gate/simulate.py [--write FILE]`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import gate_measured
import gate_noise
import gate_table
import numpy as np
from counted_work import counted_work
from gate_rules import RULES, decided, deciding, sessions, shares
from scipy import stats

from pipeprof.verdict import Policy
from pipeprof.verdict.gate.decision import IMPROVED, INCONCLUSIVE, REGRESSED, UNCHANGED, decide
from pipeprof.verdict.gate.judge import family_size
from pipeprof.verdict.gate.planned import planned_looks, whole_plan
from pipeprof.verdict.gate.statistics import job_effect

TRIALS = 20_000
STEP_TRIALS = 4_000  # of the rules that look at steps
OP_TRIALS = 4_000
AGAIN_TRIALS = 10_000
SEED = 20261121
EFFECTS = (0.0, 0.05, 0.10)
SLOWED = slice(0, 2)  # a slow-down takes the median and the p90 of the step along
REPS = 20
OPERATORS, STATISTICS = 41, 5
POLICY = Policy()
DECIDING = deciding(gate_noise.NAMES, POLICY)


@dataclass(frozen=True)
class Sessions:
    """Shares (0..1) of one regime at one effect, of the metrics that decide; `reps` are means over sessions, per side."""

    trials: int
    any_regressed: float
    per_metric: float  # share of "regressed", mean over the metrics
    worst_metric: float  # of the metric with most
    inconclusive: float  # no metric regressed, at least one inconclusive
    decided: float  # none inconclusive
    regressed: float  # step time, median
    improved: float
    unchanged: float
    reps: float  # until step time is decided
    reps_all: float  # until everything is

    @property
    def bound(self):
        return upper(self.any_regressed, self.trials)


def upper(share, trials):
    """Upper end of the one-sided 95 % interval of a share (Clopper and Pearson 1934)."""
    hits = round(share * trials)
    return float(stats.beta.ppf(0.95, hits + 1, trials - hits)) if hits < trials else 1.0


def regimes():
    """Name -> (repetitions, steps), each a function of (trials, reps, seed); same-job ones."""
    found = {one.name: one for one in (gate_noise.QUIET, gate_noise.SAMEJOB, gate_noise.SATURATED)}
    out = {name: (partial(gate_noise.repetitions, one), partial(gate_noise.steps, one)) for name, one in found.items()}
    if gate_measured.available():
        for name, damped in (("scaled", True), ("real", False)):
            out[name] = (partial(gate_measured.repetitions, damped), partial(gate_measured.steps, damped))
    out["heavy"] = (partial(gate_noise.repetitions, gate_noise.HEAVY), partial(gate_noise.steps, gate_noise.HEAVY))
    return out


def planted(table, effect):
    """The same repetitions with the step metrics of the new side slower."""
    slower = table.copy()
    slower[:, 1, SLOWED] *= 1 + effect
    return slower


def any_regressed(table):
    """Which sessions call any of the metrics that decide regressed."""
    return (sessions(table, gate_noise.NAMES, POLICY)[0][:, DECIDING] == REGRESSED).any(axis=1)


def session_rates(table, policy=POLICY, *, to_the_end=False):
    code, made = sessions(table, gate_noise.NAMES, policy, to_the_end=to_the_end)
    code = code[:, deciding(gate_noise.NAMES, policy)]
    false, step = (code == REGRESSED), code[:, 0]
    return Sessions(
        len(table), false.any(axis=1).mean(), false.mean(), false.mean(axis=0).max(),
        (~false.any(axis=1) & (code == INCONCLUSIVE).any(axis=1)).mean(), (code != INCONCLUSIVE).all(axis=1).mean(), (step == REGRESSED).mean(),
        (step == IMPROVED).mean(), (step == UNCHANGED).mean(), made[:, 0].mean(), made.max(axis=1).mean(),
    )  # fmt: skip


def all_sessions(trials=TRIALS):
    """{regime: {effect: Sessions}}."""
    out = {}
    for at, (name, (draw, _)) in enumerate(regimes().items()):
        table = draw(trials, REPS, SEED + at)
        out[name] = {effect: session_rates(planted(table, effect)) for effect in EFFECTS}
    return out


BUDGETS = (4, 5, 6, 8, 10, 14)  # repetitions per side that there is time for


def within_budgets(trials=TRIALS // 2):
    """{regime: {repetitions: {effect: (planned, cut off)}}}: any that decides regressed, with looks planned to fit.

    Cut off: the policy's looks, as far as they fit, each with the alpha that it has without a budget.
    """
    out = {}
    for at, (name, (draw, _)) in enumerate(regimes().items()):
        table = draw(trials, max(BUDGETS), SEED + 20 + at)
        out[name] = {
            reps: {effect: _of_budget(planted(table, effect)[..., :reps], reps) for effect in EFFECTS}
            for reps in BUDGETS
        }
    return out


def _of_budget(table, reps):
    plans = planned_looks(POLICY, (), reps), [look for look in whole_plan(POLICY) if look.reps <= reps]
    codes = [sessions(table, gate_noise.NAMES, POLICY, plan)[0][:, DECIDING] if plan else None for plan in plans]
    return tuple(0.0 if code is None else float((code == REGRESSED).any(axis=1).mean()) for code in codes)


def patience(trials=TRIALS // 4):
    """{regime: {effect: (given up, to the end)}} of Sessions: what stopping a session without hope saves and costs."""
    out = {}
    for at, (name, (draw, _)) in enumerate(regimes().items()):
        table = draw(trials, REPS, SEED + at)
        out[name] = {
            effect: tuple(session_rates(planted(table, effect), to_the_end=end) for end in (False, True))
            for effect in (*EFFECTS, 0.30)
        }
    return out


CONFIRMED_ALPHAS = (POLICY.alpha, 0.05)
CONFIRMED_EFFECTS = (0.0, 0.03, 0.05, 0.10)
TIMES = [at for at, name in enumerate(gate_noise.NAMES) if DECIDING[at] and POLICY.rule(name).unit == "ns"]


def two_runners(trials=TRIALS // 2):
    """{regime: {alpha: {effect: (one, both, bound of both)}}}: a time that decides regressed; on both the same one."""
    out = {}
    for at, (name, (draw, _)) in enumerate(regimes().items()):
        tables = [draw(trials, REPS, SEED + 70 + 2 * at + runner) for runner in (0, 1)]
        out[name] = {
            alpha: {effect: _of_two(tables, effect, alpha) for effect in CONFIRMED_EFFECTS}
            for alpha in CONFIRMED_ALPHAS
        }
    return out


def _of_two(tables, effect, alpha):
    policy = Policy(alpha=alpha)
    first, second = (
        sessions(planted(table, effect), gate_noise.NAMES, policy)[0][:, TIMES] == REGRESSED for table in tables
    )
    one, both = first.any(axis=1), (first & second).any(axis=1)
    return float(one.mean()), float(both.mean()), upper(both.mean(), len(both))


FEW = (2, 3, 4)  # repetitions per side, judged once with the whole alpha
MULTIPLES = (1.5, 2.0, 3.0, 10.0)
FEW_SEED = 20261128  # drawn after the rule was fixed


def with_few(trials=TRIALS):
    """{regime: {repetitions: {multiple: (regressed, by the test alone, improved, bound)}}}: any metric that decides."""
    out = {}
    for at, (name, (draw, _)) in enumerate(regimes().items()):
        out[name] = {reps: _few(draw(trials, reps, FEW_SEED + 10 * at + reps)) for reps in FEW}
    return out


def _few(table):
    rules = [POLICY.rule(name) for name, chosen in zip(gate_noise.NAMES, DECIDING, strict=True) if chosen]
    size = family_size(POLICY, "primary", dict.fromkeys(gate_noise.NAMES))
    out = {}
    for multiple in (1.0, *MULTIPLES):
        sides = planted(table, multiple - 1)[:, :, DECIDING]
        both, tested = (
            decided((sides[:, 0], sides[:, 1]), rules, POLICY.alpha, size, test_only=only) for only in (False, True)
        )
        parts = (both == REGRESSED, tested == REGRESSED, both == IMPROVED)
        shares = [float(part.any(axis=1).mean()) for part in parts]
        out[multiple] = (*shares, upper(shares[0], len(table)))
    return out


def operator_sources():
    found = {"synthetic": partial(gate_noise.operators)}
    if gate_measured.available():
        found["scaled"] = partial(gate_measured.operators)
    return found


def operator_rates(draw, reps, trials=OP_TRIALS, chunk=500):
    """Any false flag without a change; one operator of 41 at +10 % found, and any false flag beside it."""
    names = [f"op/{op}/{part}" for op in range(OPERATORS) for part in range(STATISTICS)]
    quiet, found, beside = [], [], []
    for start in range(0, trials, chunk):
        table = draw(chunk, reps, SEED + 100 + start)
        quiet.append((shares(table, names, POLICY) == REGRESSED).any(axis=1))
        slow = np.random.default_rng(SEED + start).integers(0, OPERATORS, chunk)
        hit = np.repeat(np.arange(OPERATORS)[None] == slow[:, None], STATISTICS, axis=1)
        table[:, 1] *= np.where(hit, 1.10, 1.0)[..., None]
        flags = shares(table, names, POLICY) == REGRESSED
        found.append((flags & hit).any(axis=1))
        beside.append((flags & ~hit).any(axis=1))
    return {
        key: float(np.concatenate(part).mean()) for key, part in (("any", quiet), ("found", found), ("beside", beside))
    }


def all_operators(trials=OP_TRIALS):
    """{source: {reps: rates}}."""
    return {
        name: {reps: operator_rates(draw, reps, trials) for reps in (8, 12)}
        for name, draw in operator_sources().items()
    }


def reruns(trials=AGAIN_TRIALS, times=5):
    """{regime: (joined, fresh)}: any "regressed" in five re-runs of identical code.

    Joined: every re-run adds 20 repetitions to the same session, and is judged again. Fresh: each is a new session.
    """
    out = {}
    for at, (name, (draw, _)) in enumerate(regimes().items()):
        parts = [draw(trials, REPS, SEED + 50 * (at + 1) + run) for run in range(times)]
        joined, fresh = np.zeros(trials, dtype=bool), np.zeros(trials, dtype=bool)
        for run in range(times):
            alone = any_regressed(parts[run])
            fresh |= alone
            joined |= any_regressed(np.concatenate(parts[: run + 1], axis=-1)) if run else alone
        out[name] = (float(joined.mean()), float(fresh.mean()), trials)
    return out


def peers(trials=STEP_TRIALS):
    """{regime: {rule: {effect: share called slower}}}; `diffjob` measures the sides in different jobs."""
    sources = {name: draw for name, (_, draw) in regimes().items()}
    sources["diffjob"] = partial(gate_noise.steps, gate_noise.DIFFJOB)
    out = {}
    for at, (name, draw) in enumerate(sources.items()):
        table = draw(trials, 10, SEED + 500 + at)
        out[name] = {rule: {} for rule in RULES}
        for effect in EFFECTS:
            slower = table.copy()
            slower[:, 1] *= 1 + effect
            for rule, call in RULES.items():
                out[name][rule][effect] = float(np.mean(call(slower)))
    return out


def other_job(trials=TRIALS, past=8):
    """{effect: share regressed} against a baseline of 8 past jobs, five repetitions each; job effect 5.4 %."""
    random = np.random.default_rng(SEED)
    base = 0.054 * random.standard_normal((trials, past)) + 0.027 / np.sqrt(5) * random.standard_normal((trials, past))
    new = 0.054 * random.standard_normal((trials, 1)) + 0.027 / np.sqrt(5) * random.standard_normal((trials, 1))
    limits = np.full((trials, 1), np.log1p(0.02)), np.full((trials, 1), np.log1p(0.03))
    out = {}
    for effect in (0.0, 0.10, 0.25, 0.50):
        change = job_effect(base, new + np.log1p(effect))
        change = type(change)(change.difference[:, None], change.error[:, None], change.df[:, None])
        out[effect] = float((decide(change, *limits, POLICY.alpha, 5).code == REGRESSED).mean())
    return out


PARTS = {
    "sessions": all_sessions, "few": with_few, "budgets": within_budgets, "patience": patience, "operators": all_operators,
    "reruns": reruns, "two_runners": two_runners, "peers": peers, "other_job": other_job, "counted": counted_work,
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="a markdown file")
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="with --write: draw these alone, and keep the others")
    parser.add_argument("--date", default=datetime.now(timezone.utc).date().isoformat())
    options = parser.parse_args()
    found = {name: draw() for name, draw in PARTS.items() if name in (options.parts or PARTS)}
    if options.parts:
        text = gate_table.updated(options.write.read_text(encoding="utf-8"), found, options.date)
    else:
        text = gate_table.page(found, options.date)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
