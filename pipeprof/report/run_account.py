"""The part `run_account` of a report: the whole run in parts, and the large ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.query.rows import RunAccount, typed
from pipeprof.verdict import run_account

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.query.engine import Engine
    from pipeprof.record.run import Run


def run_account_of(engine: Engine, run: Run, course: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`parts`: rows of run/account; `large`: verdicts on parts; `leading`, `slower`: what the verdict may name.

    `leading`: the largest part that recurs, or ends a run; `slower`: a costly drift, of `course`, verdicts of
    verdict/drift; null without one.
    """
    parts = engine.rows("run/account")
    if not parts and run.manifest.source == "collect":
        parts = [
            run_account.unrecorded(rep.rep, rank.rank, rep.dur_ns)
            for rep in run.manifest.reps
            for rank in rep.ranks
            if rep.dur_ns is not None
        ]
    rows = typed(RunAccount, parts)
    large = run_account.judge_run(rows, excerpt=run.manifest.source.startswith("import:"))
    return {
        "parts": parts,
        "large": large,
        "leading": next(iter(run_account.costly_parts(large)), None),
        "slower": run_account.costly_drift(course, run_account.training_ns(rows)),
    }
