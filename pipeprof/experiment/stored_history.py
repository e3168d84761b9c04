"""Runs in object storage as the lines of a history. What each measured is kept, and asked once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pipeprof.errors import PipeprofError, RunError
from pipeprof.query.measure import measure
from pipeprof.record.history import Entry, entry_of
from pipeprof.record.machine import machine_class
from pipeprof.record.object_runs import HALF, each_run, runs_below
from pipeprof.record.objects import StorageError, without_secrets
from pipeprof.record.run_objects import copied, holds_baselines_alone

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeprof.record.object_runs import Stored
    from pipeprof.record.objects import Objects

TWICE = "the same run is there twice, and counts once"


class _Line(msgspec.Struct):
    """What a run measured, or why that cannot be said; `run_id` tells a run that is there twice."""

    entry: Entry | None = None
    problem: str = ""
    run_id: str | None = None


def stored_entries(url: str, say: Callable[[str], None]) -> tuple[list[Entry], list[dict[str, str]]] | None:
    """The runs directly below a URL, or the one that is there, oldest first, and those that cannot be read.

    None when there are none: baselines, perhaps. Raises RunError when the storage fails.
    """
    if holds_baselines_alone(url):
        return None
    try:
        runs = runs_below(url, 1)
    except StorageError:
        raise
    except RunError:
        return None
    if not runs:
        return None
    lines = each_run(url, runs, _line, _Line, what="measured", readers=1, progress=say)
    entries, left_out, seen = [], [], set()
    for one, line in zip(runs, lines, strict=True):
        if line.entry is not None and line.run_id in seen:
            line = _Line(problem=TWICE)  # noqa: PLW2901
        if line.entry is None:
            left_out.append({"path": without_secrets(one.url), "problem": line.problem})
            continue
        seen.add(line.run_id)
        entries.append(line.entry)
    return sorted(entries, key=lambda entry: entry.created_at or ""), left_out


def _line(_root: Objects, one: Stored) -> tuple[_Line, bool]:
    if one.problem:
        return _Line(problem=one.problem), one.problem != HALF
    try:
        with copied(one.url) as run:
            measures = measure(run)
    except PipeprofError as error:
        if isinstance(error, StorageError) and error.passes:
            raise
        return _Line(problem=error.message), False
    measures = msgspec.structs.replace(measures, label=without_secrets(one.url))
    entry = entry_of(measures, machine_class(measures.fingerprint), None, None)
    return _Line(entry, run_id=run.manifest.run_id), True
