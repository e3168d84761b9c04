"""Repetitions of one more job, added to a baseline."""

from __future__ import annotations

import msgspec

from pipeprof.errors import RunError
from pipeprof.record.baseline_summary import is_primary
from pipeprof.record.machine import hard_differences
from pipeprof.record.measures import Measures, merged


def appended(old: Measures, fresh: Measures) -> Measures:
    """The repetitions of both, in one baseline.

    Raises RunError for another environment, a workload whose facts differ, and a repetition that is there already.
    """
    where = f"the baseline of `{old.workload}`"
    changed = hard_differences(old.fingerprint, fresh.fingerprint)
    if changed:
        raise RunError(
            f"cannot append to {where}: {', '.join(changed)} differ", "write it without --append, or another --workload"
        )
    facts = sorted(name for name in {*old.facts, *fresh.facts} if old.facts.get(name) != fresh.facts.get(name))
    if facts:
        raise RunError(
            f"cannot append to {where}: the workload is not the same, `{facts[0]}` is "
            f"`{fresh.facts.get(facts[0], 'not there')}`, was `{old.facts.get(facts[0], 'not there')}`",
            "write it without --append",
        )
    known = {_content(old, rep) for rep in old.reps}
    twice = [rep for rep in fresh.reps if _content(fresh, rep) in known]
    if twice:
        raise RunError(f"cannot append to {where}: it holds repetition {twice[0]} of `{fresh.label}` already")
    last = max(rep.order for rep in old.reps.values())
    late = max(0, last + 1 - min(rep.order for rep in fresh.reps.values()))  # 0 where the order is a time
    moved = {at: msgspec.structs.replace(rep, order=rep.order + late) for at, rep in fresh.reps.items()}
    found = merged([old, msgspec.structs.replace(fresh, reps=moved, fingerprint=old.fingerprint)], fresh.label)
    revisions = {str((side.git or {}).get("revision")) for side in (old, fresh)}
    if len(revisions) > 1:
        found.notes = list(dict.fromkeys([*found.notes, "holds repetitions of several revisions"]))
    found.git, found.created_at, found.command = fresh.git, fresh.created_at, fresh.command or old.command
    return found


def _content(measures: Measures, rep: int) -> tuple[str | None, tuple[tuple[str, float], ...]]:
    values = sorted((metric, found[rep]) for metric, found in measures.values.items() if rep in found)
    return measures.reps[rep].job, tuple(pair for pair in values if is_primary(pair[0])) or tuple(values)
