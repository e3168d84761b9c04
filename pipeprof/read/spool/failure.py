"""Which exception ended a repetition: the first one of a process that used MindSpore, else the command's own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pipeprof.record.run import Failure
from pipeprof.record.text import printable_all

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

FILE = "failed.jsonl"


def failure_of(spool: Path, recorded: Collection[int]) -> Failure | None:
    """None when no watched process ended with an exception. `recorded`: process ids that used MindSpore.

    In a job of several ranks the others fail because one did, so the first counts; without any of them the last: a
    program fails after its helpers.
    """
    found = sorted(_read(spool / FILE), key=lambda facts: facts["t"])
    training = [facts for facts in found if facts["pid"] in recorded]
    chosen = training[0] if training else found[-1] if found else None
    if chosen is None:
        return None
    return Failure(
        pid=chosen["pid"], error=chosen["error"], place=chosen["place"], code=chosen["code"], lines=chosen["lines"]
    )


def _read(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_bytes().splitlines() if path.is_file() else []:
        try:
            facts = printable_all(json.loads(line))
            found.append({name: facts[name] for name in ("pid", "t", "error", "place", "code", "lines")})
        except (ValueError, KeyError, TypeError):
            continue  # the process died while writing it
    return found
