"""Repetitions of one more job, added to a baseline."""

from __future__ import annotations

import msgspec

from pipeprof.errors import RunError
from pipeprof.record.baseline_summary import is_primary
from pipeprof.record.machine import hard_differences
from pipeprof.record.measures import Measures, merged
from pipeprof.record.note import note, unique

DAY_NS = 86_400 * 10**9
SOME_TIME_NS = 10**17  # an order above it is a time of the clock, of 1973 or later
MOST_RUNS = 200  # whose ids are kept


class ChangedError(RunError):
    """The baseline is of another environment or workload: only a new one can hold the run."""


def appended(old: Measures, fresh: Measures) -> Measures:
    """The repetitions of both, in one baseline.

    Raises ChangedError for another environment and a workload whose facts differ, RunError for a repetition that is
    there already.
    """
    where = f"the baseline of `{old.workload}`"
    changed = hard_differences(old.fingerprint, fresh.fingerprint)
    if changed:
        raise ChangedError(
            f"cannot append to {where}: {', '.join(changed)} differ", "write it without --append, or another --workload"
        )
    facts = sorted(name for name in {*old.facts, *fresh.facts} if old.facts.get(name) != fresh.facts.get(name))
    if facts:
        raise ChangedError(
            f"cannot append to {where}: the workload is not the same, `{facts[0]}` is "
            f"`{fresh.facts.get(facts[0], 'not there')}`, was `{old.facts.get(facts[0], 'not there')}`",
            "write it without --append",
        )
    old_contents = {_content(old, rep) for rep in old.reps}
    twice = [rep for rep in fresh.reps if _content(fresh, rep) in old_contents]
    if twice:
        raise RunError(f"cannot append to {where}: it holds repetition {twice[0]} of `{fresh.label}` already")
    last = max(rep.order for rep in old.reps.values())
    late = max(0, last + 1 - min(rep.order for rep in fresh.reps.values()))  # 0 where the order is a time
    moved = {at: msgspec.structs.replace(rep, order=rep.order + late) for at, rep in fresh.reps.items()}
    joined = merged([old, msgspec.structs.replace(fresh, reps=moved, fingerprint=old.fingerprint)], fresh.label)
    revisions = {str((side.git or {}).get("revision")) for side in (old, fresh)}
    if len(revisions) > 1:
        joined.notes = unique([*joined.notes, note("several_revisions")])
    joined.git, joined.created_at, joined.command = fresh.git, fresh.created_at, fresh.command or old.command
    return joined


def without_old(measures: Measures, keep_jobs: int | None, keep_days: float | None) -> tuple[Measures, int]:
    """The measures with the repetitions of the latest jobs alone, and how many jobs were left out.

    `keep_days` counts from the latest repetition; it says nothing of repetitions whose time is not known. The latest
    job always stays.
    """
    if not measures.reps:
        return measures, 0
    latest: dict[str | None, int] = {}
    for rep in measures.reps.values():
        latest[rep.job] = max(latest.get(rep.job, rep.order), rep.order)
    jobs = sorted(latest, key=lambda job: -latest[job])
    newest = latest[jobs[0]]
    remaining = jobs[:keep_jobs]
    if keep_days is not None and newest > SOME_TIME_NS:
        known = [job for job in remaining if latest[job] > SOME_TIME_NS]  # older pipeprof stored benchmarks without
        expired = {job for job in known if newest - latest[job] > keep_days * DAY_NS}
        remaining = [job for job in remaining if job not in expired]
    if len(remaining) == len(jobs):
        return measures, 0
    reps = {at: rep for at, rep in measures.reps.items() if rep.job in remaining}
    values = {
        name: {at: value for at, value in by_rep.items() if at in reps} for name, by_rep in measures.values.items()
    }
    digests = measures.digests
    if len(digests) == len(measures.reps):
        digests = [one for at, one in zip(sorted(measures.reps), digests, strict=True) if at in reps]
    latest_alone = msgspec.structs.replace(
        measures, reps=reps, values={name: by_rep for name, by_rep in values.items() if by_rep}, digests=digests,
        run_ids=measures.run_ids[-MOST_RUNS:],
    )  # fmt: skip
    return latest_alone, len(jobs) - len(remaining)


def _content(measures: Measures, rep: int) -> tuple[str | None, tuple[tuple[str, float], ...]]:
    values = sorted((metric, by_rep[rep]) for metric, by_rep in measures.values.items() if rep in by_rep)
    return measures.reps[rep].job, tuple(pair for pair in values if is_primary(pair[0])) or tuple(values)
