"""Which statistic two sides allow: measured in the same job, in several shared ones, or in different ones. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.verdict.gate.result import note
from pipeprof.verdict.gate.statistics import assumed_job_effect, blocked, job_effect, job_means, welch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeprof.verdict.gate.policy import Policy
    from pipeprof.verdict.gate.result import Note
    from pipeprof.verdict.gate.samples import Samples
    from pipeprof.verdict.gate.statistics import Array, Change

WARM_UP = 0.30  # a change that counts while there are too few past jobs
JOB_SPREAD = 0.06  # standard deviation of the logarithm from job to job that is assumed meanwhile
SAME_SPEED = 1.15  # machines whose calibration loops differ by at most this factor are of one class


@dataclass(frozen=True)
class Compared:
    """Which repetitions of each side are compared, and how: `reasons` say why none are, when `how` is None.

    `limit`: the least change that counts with "few_jobs".
    """

    base: NDArray[np.bool_]
    new: NDArray[np.bool_]
    how: str | None
    reasons: tuple[Note, ...] = ()
    limit: float = WARM_UP


def compared(base: Samples, new: Samples, policy: Policy, *, timed: bool = False) -> Compared:
    """Repetitions that can be compared: those of jobs that both sides share; without such, all, if past jobs suffice.

    `how`: "job" (one job, or jobs unknown on both sides), "blocks" (several shared jobs), "jobs" (different ones),
    "few_jobs" (different ones, too few to know how far jobs differ: only very large changes count). A `timed` metric
    of different jobs is compared with those on machines as fast as that of new.
    """
    every = np.ones(len(base.values), dtype=bool), np.ones(len(new.values), dtype=bool)
    if min(len(base.values), len(new.values)) < policy.least_reps:
        return Compared(*every, None, (note("few_repetitions", needed=policy.least_reps),))
    if bool(base.jobs) != bool(new.jobs):
        return Compared(*every, None, (note("job_not_known", side="new" if base.jobs else "base"),))
    if not base.jobs:
        return Compared(*every, "job")
    if set(base.jobs) & set(new.jobs):
        return _shared(base, new, policy)
    return _across(base, new, policy, _ratios(base, new) if timed else np.ones(len(base.values)))


def _ratios(base: Samples, new: Samples) -> NDArray[np.float64]:
    """Calibration of new / that of each repetition of base; 1 where either is not known."""
    known = [one for one in new.calibration if one]
    now = float(np.median(known)) if known else 0.0
    return np.array([now / one if one and now else 1.0 for one in base.calibration or (None,) * len(base.values)])


def _across(base: Samples, new: Samples, policy: Policy, ratios: NDArray[np.float64]) -> Compared:
    """Of different jobs. `ratios`: how many times as long the calibration loop takes in new, for each one of base."""
    of_class, all_new = np.maximum(ratios, 1 / ratios) <= SAME_SPEED, np.ones(len(new.values), dtype=bool)
    jobs = np.asarray(base.jobs)
    if of_class.sum() < policy.least_reps:
        ratio = float(np.median(ratios))
        limit = (1 + WARM_UP) * max(ratio, 1 / ratio) - 1
        reasons = (note("other_speed", ratio=ratio, limit=limit),)
        return Compared(np.ones(len(jobs), dtype=bool), all_new, "few_jobs", reasons, limit)
    past, left_out = len(set(jobs[of_class].tolist())), len(set(jobs[~of_class].tolist()))
    others = (note("other_speed_left_out", jobs=left_out),) if left_out else ()
    if past < policy.least_jobs:
        few = note("few_jobs", jobs=past, needed=policy.least_jobs, limit=WARM_UP)
        return Compared(of_class, all_new, "few_jobs", (few, *others))
    return Compared(of_class, all_new, "jobs", (note("across_jobs", jobs=past), *others))


def _shared(base: Samples, new: Samples, policy: Policy) -> Compared:
    shared = set(base.jobs) & set(new.jobs)
    here = _within(base, shared), _within(new, shared)
    left_out = sum(int((~side).sum()) for side in here)
    if min(int(side.sum()) for side in here) < policy.least_reps:
        return Compared(*here, None, (note("few_left", left_out=left_out),))
    reasons = (note("other_jobs_left_out", left_out=left_out),) if left_out else ()
    return Compared(*here, "blocks" if len(shared) > 1 else "job", reasons)


def _within(side: Samples, jobs: set[str]) -> NDArray[np.bool_]:
    return np.array([job in jobs for job in side.jobs], dtype=bool)


def weights(sides: tuple[Samples, Samples], chosen: Compared) -> tuple[Array, Array]:
    """What each compared value of base and new counts in the difference of `change_between`; a side adds up to 1."""
    jobs = [np.asarray(side.jobs or ("",) * len(side.values)) for side in sides]
    compared_jobs = [names[here] for names, here in zip(jobs, (chosen.base, chosen.new), strict=True)]
    counts = [dict(zip(*np.unique(names, return_counts=True), strict=True)) for names in compared_jobs]
    if chosen.how == "blocks":
        blocks = {name: size * counts[1][name] / (size + counts[1][name]) for name, size in counts[0].items()}
        shares = [{name: one / sum(blocks.values()) for name, one in blocks.items()}] * 2
    elif chosen.how == "few_jobs":  # as `welch` has them: each repetition alike
        shares = [{name: size / sum(count.values()) for name, size in count.items()} for count in counts]
    else:
        shares = [{name: 1 / len(count) for name in count} for count in counts]
    base, new = (
        np.array([share[name] / count[name] for name in names.tolist()])
        for names, count, share in zip(compared_jobs, counts, shares, strict=True)
    )
    return base, new


def change_between(base: Array, new: Array, sides: tuple[Samples, Samples], chosen: Compared) -> Change:
    """The change by the statistic that `chosen.how` names; `base` and `new` are those compared, on a judged scale."""
    if chosen.how == "job":
        return welch(base, new)
    base_jobs = np.asarray(sides[0].jobs)[chosen.base].tolist()
    new_jobs = np.asarray(sides[1].jobs)[chosen.new].tolist()
    if chosen.how == "blocks":
        return blocked(base, new, base_jobs, new_jobs)
    if chosen.how == "few_jobs":
        return assumed_job_effect(welch(base, new), JOB_SPREAD, len(set(base_jobs)), len(set(new_jobs)))
    return job_effect(job_means(base, base_jobs), job_means(new, new_jobs))
