"""A tuning's changes as facts for its state and its report, and in the short words of its progress. Pure."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pipeprof.experiment.tune import RECORDED
from pipeprof.experiment.tune.bench import environment
from pipeprof.units import NS_PER_S, format_count, format_ns
from pipeprof.verdict.candidate import WORTH, kept_rows
from pipeprof.verdict.capacity import as_predicted, settings_now
from pipeprof.verdict.suggest import by_number
from pipeprof.verdict.tuning import candidates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeprof.experiment.tune.bench import Recording
    from pipeprof.experiment.tune.state import Trial
    from pipeprof.verdict.candidate import Candidate, Recorded
    from pipeprof.verdict.capacity import Change, Loop, Stage
    from pipeprof.verdict.tuning import Goal

OPERATOR = ("op_id", "op_type", "name", "node", "site", "callers", "workers", "uses_processes")


def changes_of(candidate: Candidate, ops: Mapping[int, Mapping[str, Any]]) -> list[Change]:
    """The changes of a candidate as they are made; `ops`: the recorded operators by op_id."""
    return [as_predicted(one, ops.get(one.op_id, {})) for one in candidate.changes]


def what_of(candidate: Candidate, ops: Mapping[int, Mapping[str, Any]], loop: Loop) -> list[dict[str, Any]]:
    """The changes of a candidate: each operator, or DataLoader, what it is, and its settings before and after."""
    items: list[dict[str, Any]] = []
    turn = {stage.op_id: stage for stage in loop.stages if stage.chained}
    for change in changes_of(candidate, ops):
        row = ops.get(change.op_id, {})
        old = {
            "workers": row.get("workers"),
            "prefetch": row.get("capacity"),
            "processes": bool(row.get("uses_processes")),
            "maps_after": 0,
            "cache": None,
            "max_rowsize": None,
        }
        if change.op_id in turn:
            old = settings_now(loop, turn[change.op_id])
        new = {name: getattr(change, name) for name in old}
        changed = {name: [old[name], value] for name, value in new.items() if value is not None}
        op = "DataLoader" if change.op_id in turn else f"{row.get('op_type') or 'operator'} {change.op_id}"
        known = {"op": op, "op_id": change.op_id, "node": row.get("node"), "name": row.get("name")}
        items.append(known | {"place": row.get("site"), "change": changed})
    if candidate.environment:
        changed = {name: [None, value] for name, value in candidate.environment.items()}
        items.append({"op": "environment", "op_id": None, "name": None, "place": None, "change": changed})
    if candidate.runtime_threads:
        changed = {"threads of operators": [None, candidate.runtime_threads]}
        items.append({"op": "MindSpore", "op_id": None, "name": None, "place": None, "change": changed})
    if candidate.cpus:
        items.append(
            {"op": "command", "op_id": None, "name": None, "place": None, "change": {"cores": [None, candidate.cpus]}}
        )
    return items


def recorded_of(seen: Recording) -> Recorded:
    """What candidates are made from; caches where a trial can show them: one that fills in one epoch helps the next.

    The runs of a training that is ended early take a part of the epochs of its recording.
    """
    least = 1.5 * RECORDED if seen.ended_after else 1
    return seen.recorded if seen.epochs - 1 >= least else replace(seen.recorded, caches=())


def seen_facts(seen: Recording, goal: Goal) -> dict[str, Any]:
    """What a report says of a recording."""
    loop = seen.loop
    ops = {row["op_id"]: row for row in seen.ops}
    ranked = candidates(loop, environment(), goal, recorded_of(seen))
    return {
        "rate": loop.rate,
        "consumer": loop.consumer,
        "site": seen.site,
        "other_sites": sorted(seen.others),
        "operators": [{name: row.get(name) for name in OPERATOR} for row in seen.ops],
        "not_worth": [
            {"what": what_of(one, ops, loop), "ratio": one.prediction.ratio} for one in ranked if not one.may_pay
        ],
        "permuting": [what_of(one, ops, loop) for one in ranked if one.permutes and one.may_pay],
        "epochs": seen.epochs,
        "caches": [
            asdict(one)
            | {"tried": one in kept_rows(recorded_of(seen).caches), "could_be": one in kept_rows(seen.recorded.caches)}
            for one in seen.recorded.caches
            if one.ratio >= WORTH
        ],
        "small_files": seen.small_files and dict(seen.small_files),
        "iterated": [one for stage in loop.stages if stage.iterated and (one := _iterated(stage, loop, ops))],
        "process": seen.process and dict(seen.process),
        "outside": [dict(one) for one in seen.outside],
    }


def _iterated(stage: Stage, loop: Loop, ops: Mapping[int, Mapping[str, Any]]) -> dict[str, Any] | None:
    """What a source would gain that has one worker because it is iterated; None for nothing."""
    workers, prediction = by_number(loop, stage.op_id)
    if workers < 2:
        return None
    about = {name: ops.get(stage.op_id, {}).get(name) for name in ("op_type", "name", "site")}
    return about | {"op_id": stage.op_id, "workers": workers, "low": prediction.low, "high": prediction.high}


def prediction_facts(candidate: Candidate) -> dict[str, Any]:
    """A prediction as the state keeps it; `learned`: it was corrected by what an earlier trial showed."""
    facts = asdict(candidate.prediction)
    basis = facts.pop("basis")
    return facts | {"learned": any(one["code"] == "learned" for one in basis)}


def promised(prediction: Mapping[str, Any]) -> str:
    """What a candidate should bring, behind its words."""
    if prediction.get("trial"):
        return f" (x{prediction['ratio']:.2f} as `{prediction['trial']}` measured)"
    if prediction["low"] is None or prediction["high"] is None:
        return " (no prediction)"
    return f" (predicted x{prediction['low']:.2f} to x{prediction['high']:.2f})"


def outcome(trial: Trial) -> str:
    """What came of a trial, in one line."""
    if trial.ratio is None:
        return f"{trial.verdict}: {trial.error}" if trial.error else trial.verdict
    took = format_ns(trial.seconds * NS_PER_S)
    needs = "" if trial.saved is None else f", needs x{1 / trial.saved:.2f}"
    pairs = format_count(len(trial.a), "pair")
    return f"x{trial.ratio:.2f}{needs} in {pairs}, {took}: {trial.verdict.replace('_', ' ')}"
