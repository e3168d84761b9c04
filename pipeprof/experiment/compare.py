"""`pipeprof compare`: two sides in, a verdict per metric and what explains it out, as the documented JSON.

What two sides must be before they are compared: numbers, and not the same measurement twice.
"""

from __future__ import annotations

import datetime as dt
import math
import shlex
from collections import Counter
from statistics import median_low
from typing import TYPE_CHECKING, Any

from pipeprof.errors import RunError, UsageError
from pipeprof.experiment.base_revision_policy import judged_sides, started
from pipeprof.experiment.policy_file import FoundPolicy
from pipeprof.experiment.trust import trust_of
from pipeprof.query.measure import with_same_operators
from pipeprof.query.side import check_exist, engine_of, open_base, open_measures
from pipeprof.record.baseline import SOME_TIME_NS
from pipeprof.record.note import sentence, unique
from pipeprof.report.words import comparison, experiments, gate
from pipeprof.verdict.gate.alerts import acknowledged
from pipeprof.verdict.gate.explain import explanation
from pipeprof.verdict.gate.judge import judge
from pipeprof.verdict.gate.levels import usual
from pipeprof.verdict.gate.policy import differences, incomparable, usable
from pipeprof.verdict.gate.result import note
from pipeprof.verdict.gate.samples import Samples
from pipeprof.verdict.gate.sequential_test import judge_looks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeprof.record.measures import Measures
    from pipeprof.verdict.gate.planned import Look
    from pipeprof.verdict.gate.policy import Policy
    from pipeprof.verdict.gate.result import Note, Verdict


SCHEMA_VERSION = 1
NO_JOB = "unknown"


def compare_places(
    base: str, new: str, *, base_ref: str | None = None, policy_file: Path | None = None,
    allow_cross_machine: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """`compare_sides` of what lies at two places, judged as `judged_sides` says: runs, baselines or benchmark files."""
    check_exist(*([] if base_ref else [base]), new)
    newer = open_measures(new)
    judged = judged_sides(base, base_ref, policy_file, newer.command)
    older = open_base(judged.base, newer)
    return compare_sides(older, newer, judged.policy, allow_cross_machine=allow_cross_machine, trust=judged.trust)


def compare_sides(
    base: Measures, new: Measures, policy: Policy | Mapping[str, Any] | None = None, *,
    plan: Sequence[Look] | None = None, allow_cross_machine: bool = False, today: str | None = None,
    trust: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The content of `pipeprof compare --format json`.

    `plan`: the looks that the repetitions were taken for, which share the chance of a false alarm. Other conditions
    (machine, versions) make everything incomparable, unless `allow_cross_machine`: then the verdict informs and the
    exit code is 0. `policy` may be a table, as in a policy file. `today` (ISO) decides which acknowledgements hold.
    `trust` is the result's member of that name (`trust_of`): with a base revision in it the change is judged by rules
    that are not its own, and a baseline of another command is one of other conditions. The workload is called as the
    baseline is, or the script. Raises as `check_sides`.
    """
    check_sides(base, new)
    given, policy = policy is not None, usable(policy)
    if trust is None:
        trust = trust_of(FoundPolicy(policy, "given" if given else "defaults"))
    base, new = with_same_operators(base, new)
    differing = differences(base.fingerprint, new.fingerprint, policy.ignore_fingerprint)
    if trust["base_revision"] is not None:
        differing = [*_other_command(base, new, policy), *differing]
    hard = any(entry["hard"] for entry in differing)
    refused, informational = hard and not allow_cross_machine, hard and allow_cross_machine
    sides = _samples(base, "base"), _samples(new, "new")
    verdict = judge(*sides, policy) if plan is None else judge_looks(*sides, policy, plan)
    if refused:
        verdict, entries = incomparable(verdict, differing), []
    else:
        day = today or dt.date.today().isoformat()  # noqa: DTZ011 - the user's day
        verdict = acknowledged(verdict, policy, (base.workload, new.workload), day)
        entries = _explained(base, new, verdict)
    about = [*_notes(base, new), *([note("only_informs")] if informational else [])]
    sides_say = unique([*base.notes, *new.notes])
    said = [*map(gate.sentence, verdict.notes), *map(sentence, sides_say), *map(experiments.sentence, about)]
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": verdict.verdict,
        "exit_code": 0 if informational else verdict.exit_code,
        "headline": _refusal(differing) if refused else comparison.headline(verdict, entries),
        "metrics": [gate.metric(one) for one in verdict.metrics],
        "explanation": comparison.worded(entries),
        "repetitions": _repetitions(base, new, verdict),
        "curves": {"base": _curve(base), "new": _curve(new)},
        "pipelines": {"base": base.stages, "new": new.stages},
        "fingerprint": {"same": not differing, "differences": differing},
        "notes": list(dict.fromkeys(said)),
        "note_facts": [*verdict.notes, *sides_say, *about],
        "informational": informational,
        "trust": dict(trust),
        "workload": (base if base.kind == "baseline" else new).workload,
        "base": _about(base),
        "new": _about(new),
        "looks": list(verdict.looks),
        "next_look": verdict.next_look,
        "hopeless": verdict.hopeless,
    }


def _explained(base: Measures, new: Measures, verdict: Verdict) -> list[dict[str, Any]]:
    appeared = {name: usual(list(by_rep.values())) for name, by_rep in new.values.items() if name not in base.values}
    with engine_of(base, new) as engine:
        facts = engine.rows("compare/fact_change")
    levels = {name: level for name, level in appeared.items() if level is not None}
    return [_placed(entry, base, new) for entry in explanation(verdict, levels, facts)]


def _placed(entry: dict[str, Any], base: Measures, new: Measures) -> dict[str, Any]:
    """An entry about a stage of the pipeline with file:line of its code on both sides, where that is known."""
    stage = str(entry["name"]) if entry["kind"] == "structure" else f"stage {entry['name']}"
    if entry["kind"] not in ("structure", "pipeline_op"):
        return entry
    places = {"place_base": base.places.get(stage), "place_new": new.places.get(stage)}
    return entry | {name: place for name, place in places.items() if place}


def _samples(side: Measures, name: str) -> dict[str, Samples]:
    """Every metric with places and jobs; a repetition whose job is not known is in a job of its own side.

    A job's calibration is the fastest of its repetitions.
    Places count from 0 over all repetitions of the side: of two with the same `order` the one named first goes first.
    """
    places = {rep: at for at, rep in enumerate(sorted(side.reps, key=lambda rep: (side.reps[rep].order, rep)))}
    jobs = {rep: about.job or f"{NO_JOB} {name}" for rep, about in side.reps.items()}
    fastest: dict[str, int] = {}  # calibration of each job
    for rep, about in side.reps.items():
        if about.calibration_ns:
            fastest[jobs[rep]] = min(about.calibration_ns, fastest.get(jobs[rep], about.calibration_ns))
    samples = {}
    for metric, values in side.values.items():
        reps = sorted(values, key=places.__getitem__)
        samples[metric] = Samples(
            tuple(values[rep] for rep in reps), tuple(places[rep] for rep in reps), tuple(jobs[rep] for rep in reps),
            tuple(fastest.get(jobs[rep]) for rep in reps),
        )  # fmt: skip
    return samples


def _repetitions(base: Measures, new: Measures, verdict: Verdict) -> list[dict[str, Any]]:
    """What was measured of each metric that decides or informs: [place in time over both sides, value]."""
    orders = sorted({rep.order for side in (base, new) for rep in side.reps.values()})
    places = {order: at for at, order in enumerate(orders)}
    names = [one.name for one in verdict.metrics if one.family in ("primary", "informing")]

    def points(side: Measures, name: str) -> list[list[float]]:
        return sorted([places[side.reps[rep].order], value] for rep, value in side.values.get(name, {}).items())

    return [{"name": name, "base": points(base, name), "new": points(new, name)} for name in names]


def _curve(side: Measures) -> list[float]:
    """The steps of the repetition whose median step is in the middle of all; empty where none is known."""
    medians = [(ns, rep) for rep, ns in side.values.get("step_time_median", {}).items() if rep in side.curves]
    return side.curves[median_low(medians)[1]] if medians else []


def _refusal(differing: Sequence[Mapping[str, Any]]) -> str:
    shown = comparison.differing([entry for entry in differing if entry["hard"]], 3)
    return f"Incomparable: the two sides were measured under different conditions: {shown}"


def _notes(base: Measures, new: Measures) -> list[Note]:
    notes = []
    if not _in_turn(base, new) and base.jobs == new.jobs and len(base.jobs) == 1:
        notes.append(note("not_interleaved"))
    if base.jobs and new.jobs and not base.jobs & new.jobs:
        notes.append(note("other_job"))
    if base.workload != new.workload and "baseline" not in (
        base.kind,
        new.kind,
    ):  # the name of one is the user's choice
        notes.append(note("other_workload", base=base.workload, new=new.workload))
    elif apart := _arguments_apart(base, new):
        notes.append(note("other_arguments", **apart))
    if base.steps and new.steps and not set(base.steps.values()) & set(new.steps.values()):
        notes.append(note("different_steps", steps=[median_low(side.steps.values()) for side in (base, new)]))
    if base.git and new.git and base.git == new.git and not base.git.get("dirty"):
        notes.append(note("same_revision"))
    return notes


def _in_turn(base: Measures, new: Measures) -> bool:
    """Whether the sides were measured in turn: in a session, or by their times, where these are known."""
    if base.interleaved and new.interleaved:
        return True
    orders = [[rep.order for rep in side.reps.values()] or [0] for side in (base, new)]
    begins, ends = [min(side) for side in orders], [max(side) for side in orders]
    return min(begins) > SOME_TIME_NS and max(begins) < min(ends)


def _other_command(base: Measures, new: Measures, policy: Policy) -> list[dict[str, Any]]:
    """A difference when the baseline is of another command; what started it (`/venv/bin/python`) does not count."""
    one, other = (started(side.command) for side in (base, new))
    if base.kind != "baseline" or not base.command or one == other:
        return []
    return [{"name": "command", "base": one, "new": other, "hard": "command" not in policy.ignore_fingerprint}]


def _arguments_apart(base: Measures, new: Measures) -> dict[str, list[str]]:
    """Arguments that one side's command has and the other's has not; empty without any, or where one is not known."""
    one, other = (Counter(_arguments(side.command)) for side in (base, new))
    if one == other or not base.command or not new.command:
        return {}
    return {"base": list((one - other).elements()), "new": list((other - one).elements())}


def _arguments(command: Sequence[str]) -> list[str]:
    """What stands behind the program, each option with the word behind it, which may be its value."""
    arguments: list[str] = []
    before = ""
    for word in command[1:]:
        is_value = before.startswith("-") and "=" not in before and not word.startswith("-")
        if is_value:
            arguments[-1] += f" {shlex.quote(word)}"
        else:
            arguments.append(shlex.quote(word))
        before = "" if is_value else word
    return arguments


def _about(side: Measures) -> dict[str, Any]:
    return {
        "label": side.label,
        "kind": side.kind,
        "workload": side.workload,
        "reps": len(side.reps),
        "git": side.git,
        "created_at": side.created_at,
        "seconds": side.seconds,
    }


_HINT = "compare with a run that was measured on its own"


def check_sides(base: Measures, new: Measures) -> None:
    """Raises UsageError when a repetition is on both sides, RunError for a value that is no finite number.

    A run compared with itself, or with a copy, is unchanged whatever the code does.
    """
    runs = set(base.run_ids) & set(new.run_ids)
    if runs:
        raise UsageError(f"both sides hold the run {min(runs)}: `{base.label}` and `{new.label}`", _HINT)
    if set(base.digests) & set(new.digests):
        raise UsageError(f"a repetition of `{new.label}` is a copy of one of `{base.label}`", _HINT)
    for side in (base, new):
        _check_numbers(side)


def _check_numbers(side: Measures) -> None:
    for metric, values in side.values.items():
        for rep, value in values.items():
            if not math.isfinite(value):
                raise RunError(
                    f"`{side.label}` is damaged: `{metric}` of repetition {rep} is {value}", "measure it again"
                )
