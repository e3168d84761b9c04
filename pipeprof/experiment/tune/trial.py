"""The two sides of a tuning's comparisons: what is run, what they hand out, and what of it may be recommended.

Its changes as facts for the state and the report, and in the short words of its progress.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pipeprof.errors import MeasureError, WorkloadError
from pipeprof.experiment.runs import TOO_FEW_LATER
from pipeprof.experiment.tune import RECORDED
from pipeprof.experiment.tune.bench import GRACE_S, SLOWER, environment
from pipeprof.experiment.tune.rows import acceptable, compared_columns, compared_epochs
from pipeprof.experiment.tune.state import Trial
from pipeprof.record.settings_file import CHANGEABLE, OperatorSetting, Settings, merged
from pipeprof.units import NS_PER_S, format_count, format_ns
from pipeprof.verdict.candidate import WORTH, kept_rows
from pipeprof.verdict.capacity import as_predicted, settings_now
from pipeprof.verdict.loader import STAGES
from pipeprof.verdict.suggest import by_number
from pipeprof.verdict.tuning import candidates

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeprof.experiment.tune.bench import Recording, RunResult, TuneBench
    from pipeprof.experiment.tune.rows import Batches
    from pipeprof.experiment.tune.state import TuneState
    from pipeprof.verdict.candidate import Candidate, Recorded
    from pipeprof.verdict.capacity import Change, Loop, Stage
    from pipeprof.verdict.tuning import Goal

OPERATOR = ("op_id", "op_type", "name", "node", "site", "callers", "workers", "uses_processes")


class ChangedSideError(Exception):
    """The changed run failed, or said nothing; the unchanged one did not."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def rates_of_sides(plain: RunResult, changed: RunResult, after: Settings) -> tuple[float, float]:
    """Steps/s of both; with a cache, which the first epoch fills, from the second epoch on."""
    if not after.keeps_rows:
        return plain.rate, changed.rate
    if plain.later is None or changed.later is None:
        raise ChangedSideError(TOO_FEW_LATER)
    return plain.later, changed.later


def new_trial(candidate: Candidate, seen: Recording, state: TuneState) -> Trial:
    """The trial of a candidate, before its first pair."""
    ops = {row["op_id"]: row for row in seen.ops}
    operators = [
        OperatorSetting(
            node=row["node"], op_type=row["op_type"], name=row["name"] or "", place=row["site"] or "", **values,
        )
        for change in changes_of(candidate, ops)
        if (row := ops.get(change.op_id)) and (values := _values(change, str(row.get("op_type"))))
    ]  # fmt: skip
    prefetch = next((one.prefetch for one in candidate.changes if one.prefetch is not None), None)
    if any(one.of_loader for one in operators):
        prefetch = None
    change = {
        "operators": operators, "prefetch": prefetch, "environment": candidate.environment, "site": seen.site,
        "runtime_threads": candidate.runtime_threads, "cpus": candidate.cpus,
    }  # fmt: skip
    return Trial(
        key=candidate.key,
        what=what_of(candidate, ops, seen.loop),
        prediction=prediction_facts(candidate),
        permutes=candidate.permutes or any(one.permutes and one.verdict == "accepted" for one in state.trials),
        settings=merged(state.settings, change),
    )


def _values(change: Change, op_type: str) -> dict[str, Any]:
    """What is set at an operator itself: the prefetch size is of all of them, but for that of a DataLoader."""
    values = {name: getattr(change, name, None) for name in CHANGEABLE}
    if op_type in STAGES:
        values |= {"of_loader": True, "prefetch_factor": change.prefetch}
    return {name: value for name, value in values.items() if value is not None}


def whole_epochs(
    bench: TuneBench, state: TuneState, settings: Settings, folders: tuple[Path, Path]
) -> tuple[Batches, str]:
    """What whole epochs with the settings hand out, against the original's; why, where that is something else.

    `folders`: of the runs of the original, and of those with the settings. Raises ChangedSideError when these fail.
    """
    unchanged = Settings(site=settings.site)
    if state.reproducible == "other" and not state.allow_random:
        return "not_reproducible", ""
    if not state.original:
        began = bench.now()
        state.original = bench.rows(unchanged, folders[0], None)
        state.rows_s = bench.now() - began
    longest = SLOWER * state.rows_run_s + GRACE_S
    try:
        changed = bench.rows(settings, folders[1], longest)
    except (WorkloadError, MeasureError) as error:
        raise ChangedSideError(error.message) from error
    word, why = compared_epochs(state.original, changed, order=state.allow_order)
    if word not in ("permuted", "other"):
        return word, why
    if word == "other" and state.allow_random and not settings.must_be_same:
        state.reseeded = state.reseeded or bench.rows(unchanged, folders[0], longest, other_seed=True)
        return compared_columns(state.original, state.reseeded, changed, order=state.allow_order)
    if state.reproducible is None:  # a second unchanged run says whether it is the change that does it
        again = bench.rows(unchanged, folders[0], longest)
        state.reproducible = compared_epochs(state.original, again, order=state.allow_order)[0]
    by_itself = acceptable(state.reproducible, order=state.allow_order or word == "other")
    return (word, why) if by_itself else ("not_reproducible", "")


def is_proven(state: TuneState, *, allow_unchecked: bool = False) -> bool:
    """Whether the accepted set is recommended: improved by the gate's statistics, with the same batches.

    With --allow-order also with the same rows in another order, with --allow-random with other random numbers.
    """
    final = state.final
    if final is None or final.verdict != "improved" or final.error:
        return False
    return state.may_take(final.batches, unchecked=allow_unchecked)


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
    around = {
        "environment": candidate.environment,
        "MindSpore": {"threads of operators": candidate.runtime_threads},
        "command": {"cores": candidate.cpus},
    }
    for op, values in around.items():
        changed = {name: [None, value] for name, value in values.items() if value is not None}
        if changed:
            items.append({"op": op, "op_id": None, "name": None, "place": None, "change": changed})
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
