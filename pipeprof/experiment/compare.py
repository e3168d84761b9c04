"""`pipeprof compare`: two sides in, a verdict per metric and what explains it out, as the documented JSON."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pipeprof.query.sides import engine_of
from pipeprof.verdict.gate.acknowledge import acknowledged
from pipeprof.verdict.gate.explain import explanation, headline
from pipeprof.verdict.gate.fingerprint import differences
from pipeprof.verdict.gate.judge import judge
from pipeprof.verdict.gate.looks import judge_looks
from pipeprof.verdict.gate.policy import Policy
from pipeprof.verdict.gate.result import MetricVerdict, Verdict
from pipeprof.verdict.gate.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.record.measures import Measures

SCHEMA_VERSION = 1
NO_JOB = "unknown"
LABELS = {
    "step_time_median": "step time", "step_time_p90": "step time p90", "data_wait": "data wait",
    "first_step_time": "time to first step", "peak_memory": "peak memory",
}  # fmt: skip
NOT_INTERLEAVED = (
    "the two sides were measured one after the other, so a drift of the machine looks like a change: "
    "`pipeprof ab` takes them in turn"
)


def compare_sides(
    base: Measures,
    new: Measures,
    policy: Policy | None = None,
    *,
    planned: bool = False,
    allow_cross_machine: bool = False,
    today: str | None = None,
) -> dict[str, Any]:
    """The content of `pipeprof compare --format json`.

    `planned`: the repetitions were taken for planned looks, which share the chance of a false alarm. Other conditions
    (machine, versions) make everything incomparable, unless `allow_cross_machine`: then the verdict informs and the
    exit code is 0. `today` (ISO) decides which acknowledgements hold.
    """
    policy = policy or Policy()
    found = differences(base.fingerprint, new.fingerprint, policy.ignore_fingerprint)
    refused = any(entry["hard"] for entry in found) and not allow_cross_machine
    verdict = (judge_looks if planned else judge)(_samples(base, "base"), _samples(new, "new"), policy)
    if refused:
        verdict = _incomparable(verdict, found)
    else:
        verdict = acknowledged(verdict, policy, new.workload, today or dt.date.today().isoformat())  # noqa: DTZ011 - the user's day
    with engine_of(base, new) as engine:
        changes, facts = engine.rows("compare/metric_change"), engine.rows("compare/fact_change")
    entries = [] if refused else explanation(changes, facts, verdict)
    informational = allow_cross_machine and any(entry["hard"] for entry in found)
    notes = [*verdict.notes, *_notes(base, new), *(["informational: the conditions differ"] if informational else [])]
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": verdict.verdict,
        "exit_code": 0 if informational else verdict.exit_code,
        "headline": _refusal(found) if refused else headline(verdict, entries, LABELS),
        "metrics": [asdict(one) for one in verdict.metrics],
        "explanation": entries,
        "fingerprint": {"same": not found, "differences": found},
        "notes": list(dict.fromkeys(notes)),
        "informational": informational,
        "base": _about(base),
        "new": _about(new),
        "looks": list(verdict.looks),
        "next_look": verdict.next_look,
    }


def _samples(side: Measures, name: str) -> dict[str, Samples]:
    """Every metric with order and jobs; a repetition whose job is not known is in a job of its own side."""
    found = {}
    for metric, values in side.values.items():
        reps = sorted(values, key=lambda rep: (side.reps[rep].order, rep))
        jobs = tuple(side.reps[rep].job or f"{NO_JOB} {name}" for rep in reps)
        found[metric] = Samples(tuple(values[rep] for rep in reps), tuple(side.reps[rep].order for rep in reps), jobs)
    return found


def _incomparable(verdict: Verdict, found: Sequence[Mapping[str, Any]]) -> Verdict:
    """No metric is judged across machines or versions."""
    reason = "measured under other conditions: " + ", ".join(entry["name"] for entry in found if entry["hard"])
    metrics: list[MetricVerdict] = [
        replace(one, verdict="incomparable", reason=reason, p_value=None, alpha=None, reps_needed=None)
        for one in verdict.metrics
    ]
    return Verdict("incomparable", tuple(metrics), (), verdict.looks, None)


def _refusal(found: Sequence[Mapping[str, Any]]) -> str:
    hard = [entry for entry in found if entry["hard"]]
    shown = ", ".join(f"{entry['name']} {entry['base']} / {entry['new']}" for entry in hard[:3])
    more = f" and {len(hard) - 3} more" if len(hard) > 3 else ""
    return f"measured under other conditions ({shown}{more}); incomparable"


def _notes(base: Measures, new: Measures) -> list[str]:
    notes = [*base.notes, *new.notes]
    if not (base.interleaved and new.interleaved) and base.jobs == new.jobs and len(base.jobs) == 1:
        notes.append(NOT_INTERLEAVED)
    if base.workload != new.workload:
        notes.append(f"the workloads have other names: `{base.workload}`, `{new.workload}`")
    if base.git and new.git and base.git == new.git and not base.git.get("dirty"):
        notes.append("both sides were recorded from the same revision")
    return notes


def _about(side: Measures) -> dict[str, Any]:
    return {
        "label": side.label,
        "kind": side.kind,
        "workload": side.workload,
        "reps": len(side.reps),
        "git": side.git,
        "created_at": side.created_at,
    }
