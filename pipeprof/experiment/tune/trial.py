"""The two sides of a tuning's comparisons: what is run, what they hand out, and what of it may be recommended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.errors import MeasureError, WorkloadError
from pipeprof.experiment.runs import TOO_FEW_LATER
from pipeprof.experiment.tune.bench import GRACE_S, SLOWER
from pipeprof.experiment.tune.facts import changes_of, prediction_facts, what_of
from pipeprof.experiment.tune.rows import acceptable, compared_columns, compared_epochs
from pipeprof.experiment.tune.state import Trial
from pipeprof.record.settings_file import CHANGEABLE, OperatorSetting, Settings, merged
from pipeprof.verdict.loader import STAGES

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.experiment.tune.bench import Recording, RunResult, TuneBench
    from pipeprof.experiment.tune.rows import Batches
    from pipeprof.experiment.tune.state import TuneState
    from pipeprof.verdict.candidate import Candidate
    from pipeprof.verdict.capacity import Change


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
