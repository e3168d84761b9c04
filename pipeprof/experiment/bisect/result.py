"""What a bisection found, as the documented JSON: the commit, or a range; how sure; because of what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import MeasureError
from pipeprof.experiment.compare import compare_sides
from pipeprof.record.measures import Repetition, merged
from pipeprof.report.words.comparison import because
from pipeprof.verdict.gate.causes import OF_STEPS, cause

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.experiment.bisect.state import Bisection
    from pipeprof.record.measures import Measures
    from pipeprof.verdict.gate.bisection import Posterior

SCHEMA_VERSION = 1
RANGE = 0.95  # of the probability lies in the range that is named
MOST_CANDIDATES = 10
EXIT = {"found": 0, "range": 4, "no_change": 3}
_TOGETHER = "bisect"  # stands for the job of all repetitions: a bisection is not continued in another one


def result(
    state: Bisection, now: Posterior, stopped: str, measured: Mapping[int, Sequence[Measures]]
) -> dict[str, Any]:
    """`verdict`: found (one commit), range, or no_change; `measured`: what was measured of each commit.

    Raises MeasureError when one of the ends was not measured.
    """
    counts = state.counts()
    if not min(counts[0], counts[-1]):
        raise MeasureError("the budget ended before both ends were measured", "give more time with --budget")
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
        "candidates": _candidates(state, now), **_why(state, around[0], around[-1], verdict, measured),
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
    state: Bisection, first: int, last: int, verdict: str, measured: Mapping[int, Sequence[Measures]]
) -> dict[str, Any]:
    """What `pipeprof compare` says about all repetitions before the change and all after it; None for no change."""
    before = [one for at, found in sorted(measured.items()) if at < first for one in found]
    after = [one for at, found in sorted(measured.items()) if at >= last for one in found]
    if verdict == "no_change" or not (before and after):
        return {"headline": None, "cause": None, "because": ""}
    content = compare_sides(_side(before, "before"), _side(after, "after"))
    entry = cause(content["explanation"], grew=True) if state.metric in OF_STEPS else None
    return {"headline": content["headline"], "cause": entry, "because": because(entry).removeprefix(", ")}


def _side(parts: Sequence[Measures], label: str) -> Measures:
    """Repetitions of several commits as one side; facts of the one nearest to the change come first."""
    ordered = list(reversed(parts)) if label == "before" else list(parts)
    kept = []
    for number, part in enumerate(ordered):
        reps = {rep: Repetition(order=number, job=_TOGETHER) for rep in part.reps}
        kept.append(msgspec.structs.replace(part, reps=reps, kind="session", interleaved=True))
    try:
        return merged(kept, label)
    except ValueError as error:
        raise MeasureError(f"the runs {label} the change cannot be put together: {error}") from error
