"""Which exception ended a repetition: the first one of a process that used MindSpore, else the command's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.read.spool import records
from pipeprof.read.spool.lines import records as records_of
from pipeprof.record.run import Failure

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from pipeprof.read.spool.lines import SpoolNotes

FILE = "failed.jsonl"


def failure_of(spool: Path, recorded: Collection[int], notes: SpoolNotes) -> Failure | None:
    """None when no watched process ended with an exception. `recorded`: process ids that used MindSpore.

    In a job of several ranks the others fail because one did, so the first counts; without any of them the last: a
    program fails after its helpers.
    """
    read: list[dict[str, Any]] = records_of(spool / FILE, records.failure, notes)
    failures = sorted(read, key=lambda facts: facts["t"])
    training = [facts for facts in failures if facts["pid"] in recorded]
    chosen = training[0] if training else failures[-1] if failures else None
    if chosen is None:
        return None
    return Failure(
        pid=chosen["pid"], error=chosen["error"], place=chosen["place"], code=chosen["code"], lines=chosen["lines"]
    )
