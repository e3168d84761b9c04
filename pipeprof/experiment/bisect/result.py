"""What a bisection found, as the documented JSON: the commit, or a range; how sure; because of what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import MeasureError
from pipeprof.experiment.compare import compare_sides
from pipeprof.record.measures import Repetition, merged
from pipeprof.report.words.comparison import because
from pipeprof.verdict.gate.bisection import BESIDE, posterior
from pipeprof.verdict.gate.causes import OF_STEPS, cause
from pipeprof.verdict.gate.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.experiment.bisect.state import Bisection
    from pipeprof.record.measures import Measures
    from pipeprof.verdict.gate.bisection import Posterior

SCHEMA_VERSION = 1
RANGE = 0.95  # of the probability lies in the range that is named
MOST_CANDIDATES = 10
EXIT = {"found": 0, "range": 4, "no_change": 3}
_TOGETHER = "bisect"  # stands for the job of all repetitions: a bisection is not continued in another one


def result(state: Bisection, stopped: str, measured: Mapping[int, Sequence[Measures]]) -> dict[str, Any]:
    """`verdict`: found (one commit), range, or no_change; `measured`: what was measured of each commit.

    Raises MeasureError when one of the ends was not measured.
    """
    counts = state.counts()
    if not min(counts[0], counts[-1]):
        raise MeasureError("the budget ended before both ends were measured", "give more time with --budget")
    now = posterior(state.counted(), len(counts) - 1)
    cell, chance = now.likeliest(state.measurable())
    one = stopped == "found" and len(cell) == 1
    verdict = "no_change" if stopped == "no_change" else "found" if one else "range"
    around = cell if stopped == "found" else now.interval(RANGE)
    return {
        "schema_version": SCHEMA_VERSION, "verdict": verdict, "exit_code": EXIT[verdict], "stopped": stopped,
        "metric": state.metric, "probability": chance if stopped == "found" else None,
        "commit": _commit(state, now, cell[-1]) if verdict == "found" else None,
        "range": [] if verdict == "no_change" else [_commit(state, now, at) for at in around],
        "no_change_probability": now.none, "ratio": None if verdict == "no_change" else now.ratio,
        "candidates": _candidates(state, now), **_why(state, now, around, verdict, measured),
        "good": _commit(state, now, 0), "bad": _commit(state, now, len(state.commits) - 1),
        "commits": len(state.commits) - 1, "runs": sum(counts),
        "cannot_be_measured": [_commit(state, now, at) for at, one in enumerate(state.commits) if one.broken],
        "session": {
            "session_id": state.session_id, "folder": "", "seconds": state.spent, "starts": state.starts,
            "repetitions": [msgspec.to_builtins(run) for run in state.runs],
        },
    }  # fmt: skip


def _commit(state: Bisection, now: Posterior, at: int) -> dict[str, Any]:
    one = state.commits[at]
    return {
        "revision": one.revision, "subject": one.subject, "probability": float(now.first[at]),
        "runs": state.counts()[at],
    }  # fmt: skip


def _candidates(state: Bisection, now: Posterior) -> list[dict[str, Any]]:
    """The most probable commits, the likeliest first."""
    order = sorted(range(1, len(state.commits)), key=lambda at: (-now.first[at], at))
    return [_commit(state, now, at) for at in order[:MOST_CANDIDATES]]


def _why(
    state: Bisection, now: Posterior, around: range, verdict: str, measured: Mapping[int, Sequence[Measures]]
) -> dict[str, Any]:
    """What `pipeprof compare` says about the repetitions before the change and those behind it; None for no change."""
    before = [at for at in sorted(measured, reverse=True) if at < around[0]]
    after = [at for at in sorted(measured) if at >= around[-1]]
    if verdict == "no_change" or not (before and after):
        return {"headline": None, "cause": None, "because": "", "compared": None}
    compared: dict[str, Any] = {}
    for least in (BESIDE, None):
        nearest = [_nearest(measured, order, least) for order in (before, after)]
        compared = _compared(state, nearest, now.ratio)
        if compared["cause"]:
            break
    return compared


def _nearest(measured: Mapping[int, Sequence[Measures]], order: Sequence[int], least: int | None) -> list[Measures]:
    """Repetitions of the nearest commits, `least` or more where there are as many; all of them for None.

    Those beside the change were measured in turn: what the machine did meanwhile is the same for both.
    """
    nearest: list[Measures] = []
    for at in order:
        if least is not None and len(nearest) >= least:
            break
        nearest += measured[at]
    return nearest


def _compared(state: Bisection, nearest: Sequence[Sequence[Measures]], ratio: float) -> dict[str, Any]:
    before, after = nearest
    names = {name for part in (*before, *after) for name in part.values}
    content = compare_sides(_side(before, "before"), _side(after, "after"), _policy(names, ratio))
    entry = cause(content["explanation"], grew=True) if state.metric in OF_STEPS else None
    return {
        "headline": content["headline"], "cause": entry, "because": because(entry).removeprefix(", "),
        "compared": {"before": len(before), "after": len(after)},
    }  # fmt: skip


def _policy(names: Iterable[str], ratio: float) -> Policy:
    """The default policy, in which a part of a step counts when it changed by half of what the step did.

    Else no part of a step that grew by 5 % would count: 5 % is where they begin to.
    """
    policy, most = Policy(), (ratio - 1) / 2
    parts = {name: policy.rule(name) for name in names}
    smaller = {
        name: msgspec.structs.replace(rule, min_effect=min(rule.min_effect, most))
        for name, rule in parts.items() if rule.family == "secondary"
    }  # fmt: skip
    return msgspec.structs.replace(policy, metrics=policy.metrics | smaller)


def _side(parts: Sequence[Measures], label: str) -> Measures:
    """Repetitions of several commits as one side; facts of the one nearest to the change come first."""
    sessions = []
    for number, part in enumerate(parts):
        reps = {rep: Repetition(order=number, job=_TOGETHER) for rep in part.reps}
        sessions.append(msgspec.structs.replace(part, reps=reps, kind="session", interleaved=True))
    try:
        return merged(sessions, label)
    except ValueError as error:
        raise MeasureError(f"the runs {label} the change cannot be put together: {error}") from error
