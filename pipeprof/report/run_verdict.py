"""The one verdict on a run, which every screen reads: asks what the candidates come from, and has them ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeprof.query.engine import Engine
from pipeprof.query.rows import Course, HostAccount, HostRoom, RunAccount, StorageUse, typed
from pipeprof.record.run import UNFINISHED
from pipeprof.report import kept
from pipeprof.report.diagnosis import judged
from pipeprof.report.ranks import rank_verdicts
from pipeprof.report.words import waiting as words
from pipeprof.verdict import run_account
from pipeprof.verdict.account import find_contention, loop_cores
from pipeprof.verdict.drift import BLOCKS, judge_course
from pipeprof.verdict.hang import hang_of, has_failed, is_bad, was_an_error
from pipeprof.verdict.ranking import rank
from pipeprof.verdict.run_account import training_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.record.run import Run
    from pipeprof.verdict.cause import RunVerdict

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Findings:
    """What was found of a run, part by part, and the verdict on all of it.

    `summary`, `waits`, `pipelines`, `split`: rows of step/summary, step/data_wait, queue/pipelines, step/split;
    `drift`: of judge_course; `account`, `diagnosis`, `run_account`, `ranks`: as the report has them, without words;
    `hang`: of hang_facts; `storage`: of diagnose/storage.
    """

    summary: Rows
    waits: Rows
    pipelines: Rows
    split: Rows
    drift: Rows
    account: dict[str, Any]
    diagnosis: dict[str, Any]
    run_account: dict[str, Any]
    ranks: dict[str, Any]
    hang: dict[str, Any] | None
    verdict: RunVerdict
    storage: list[StorageUse]

    @property
    def several_ranks(self) -> bool:
        """Whether more than one rank was recorded."""
        return len({row["rank"] for row in (*self.summary, *self.split)}) > 1


def find(engine: Engine, run: Run) -> Findings:
    """Ask everything that a candidate comes from, and rank the candidates."""
    summary, split = engine.rows("step/summary"), engine.rows("step/split")
    waits, pipelines = engine.rows("step/data_wait"), engine.rows("queue/pipelines")
    drift = judge_course(engine.typed(Course, blocks=BLOCKS))
    account = account_of(engine)
    storage = engine.typed(StorageUse) if pipelines else []
    whole = run_account_of(engine, run, drift)
    training = training_share(typed(RunAccount, whole["parts"]))
    cores = loop_cores(typed(HostAccount, account["parts"]), training)
    diagnosis = judged(engine, run, waits, pipelines, account["contention"], storage, cores)
    several = len({row["rank"] for row in (*summary, *split)}) > 1
    ranks = rank_verdicts(engine, several=several)
    hang = hang_facts(run)
    failed = has_failed(run.manifest.state, [rep.exit_code for rep in run.manifest.reps])
    stood = None if hang is None or was_an_error(_failure(run)) else hang["ranks"][0]
    verdict = rank(
        diagnosis, whole, training=training, straggler=ranks["straggler"], replay=ranks["causes"], failed=failed,
        hang=stood,
    )  # fmt: skip
    return Findings(summary, waits, pipelines, split, drift, account, diagnosis, whole, ranks, hang, verdict, storage)


def _failure(run: Run) -> str | None:
    """The error of the first repetition that did not end well; None where none was told."""
    rep = next((rep for rep in run.manifest.reps if is_bad(rep.exit_code)), None)
    return rep.failure.error if rep is not None and rep.failure is not None else None


def verdict_of(run: Run) -> Findings:
    """The findings of a stored run."""
    with Engine.open(run, lazily=True) as engine:
        engine.answers = kept.stored(run, engine)
        return find(engine, run)


def account_of(engine: Engine) -> dict[str, Any]:
    """`parts` and `room` are rows of the queries; `contention` is the verdict, null when nobody is named."""
    parts, room = engine.rows("host/account"), engine.rows("host/room")
    contention = find_contention(typed(HostAccount, parts), typed(HostRoom, room))
    return {"parts": parts, "room": room, "contention": contention}


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


def hang_facts(run: Run) -> dict[str, Any] | None:
    """`rep`, `for_s`, `stepped` and `ranks` of verdict/hang.Hang, each rank with `text`, a sentence; None without one.

    Also None of a run that is not over, of which the live record tells.
    """
    is_over = run.manifest.state != "running" and not run.manifest.options.get(UNFINISHED)
    hang = hang_of(run.manifest.reps) if is_over else None
    if hang is None:
        return None
    ranks = [{**row, "text": words.sentence(row, words.THEN)} for row in hang.rows]
    return {"rep": hang.rep, "for_s": hang.for_s, "stepped": hang.stepped, "ranks": ranks}
