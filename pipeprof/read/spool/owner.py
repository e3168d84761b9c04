"""Whose a spool is: a run's folder may be deleted, replaced or put together by hand while something records into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.errors import RunError
from pipeprof.read.spool import lines
from pipeprof.read.spool.lines import SpoolNotes, content, shown
from pipeprof.read.spool.lines import records as records_of
from pipeprof.record.document import BAD_JSON
from pipeprof.record.run import Failure, load

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run


def facts(path: Path, notes: SpoolNotes) -> dict[str, Any]:
    """What the launcher wrote when a repetition began, or ended; empty when that is not there, or damaged."""
    text = content(path, notes)
    try:
        noted: dict[str, Any] = lines.launch(text) if text else {}
    except BAD_JSON as error:
        notes.damaged(f"{shown(path)} was left out: {error}")
        return {}
    return noted


def is_of(run: Run, noted: Mapping[str, Any]) -> bool:
    """Whether something in a spool was noted for this run; older versions do not say."""
    return noted.get("run_id") in (None, run.manifest.run_id)


def refuse_another_run(run: Run) -> Run | None:
    """The run as it lies on disk, None when it cannot be read.

    Raises RunError when the folder was given to another run while this one was recorded.
    """
    try:
        there = load(run.path)
    except (RunError, OSError):
        return None
    if there.manifest.run_id != run.manifest.run_id:
        raise RunError(
            f"`{run.path}` holds another run: found run_id {there.manifest.run_id}, expected {run.manifest.run_id}; "
            "the folder was replaced while it was recorded into",
            "record again with another name after -o",
        )
    return there


def refuse_anothers_spool(run: Run, reps: Sequence[int]) -> None:
    """Raises RunError when a repetition of the spool was begun for another run."""
    for rep in reps:
        folder = run.spool / f"rep={rep}"
        noted = facts(folder / "launch.json", SpoolNotes())
        if not is_of(run, noted):
            raise RunError(
                f"`{folder}` is of another run: found run_id {noted['run_id']}, expected {run.manifest.run_id}",
                "remove the folder `spool`, or restore the `run.json` that belongs to it",
            )


FILE = "failed.jsonl"


def failure_of(spool: Path, recorded: Collection[int], notes: SpoolNotes) -> Failure | None:
    """None when no watched process ended with an exception. `recorded`: process ids that used MindSpore.

    In a job of several ranks the others fail because one did, so the first counts; without any of them the last: a
    program fails after its helpers.
    """
    read: list[dict[str, Any]] = records_of(spool / FILE, lines.failure, notes)
    failures = sorted(read, key=lambda facts: facts["t"])
    training = [facts for facts in failures if facts["pid"] in recorded]
    chosen = training[0] if training else failures[-1] if failures else None
    if chosen is None:
        return None
    return Failure(
        pid=chosen["pid"], error=chosen["error"], place=chosen["place"], code=chosen["code"], lines=chosen["lines"]
    )
