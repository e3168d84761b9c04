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
    from collections.abc import Callable, Iterable

    from pipeprof.record.object_runs import Stored
    from pipeprof.record.objects import Objects

TWICE = "the same run is there twice, and counts once"


class Line(msgspec.Struct):
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
    lines = each_run(url, runs, _line, Line, what="measured", readers=1, progress=say)
    entries, left_out = told((without_secrets(one.url), line) for one, line in zip(runs, lines, strict=True))
    return sorted(entries, key=lambda entry: entry.created_at or ""), left_out


def told(lines: Iterable[tuple[str, Line]]) -> tuple[list[Entry], list[dict[str, str]]]:
    """The measurements by their places, and those that are left out; a run that is there twice counts once."""
    entries, left_out, seen = [], [], set()
    for path, line in lines:
        if line.entry is None or line.run_id in seen:
            left_out.append({"path": path, "problem": line.problem if line.entry is None else TWICE})
            continue
        seen.add(line.run_id)
        entries.append(line.entry)
    return entries, left_out


def _line(_root: Objects, one: Stored) -> tuple[Line, bool]:
    if one.problem:
        return Line(problem=one.problem), one.problem != HALF
    try:
        with copied(one.url) as run:
            measures = measure(run)
    except PipeprofError as error:
        if isinstance(error, StorageError) and error.passes:
            raise
        return Line(problem=error.message), False
    measures = msgspec.structs.replace(measures, label=without_secrets(one.url))
    entry = entry_of(measures, machine_class(measures.fingerprint), None, None)
    return Line(entry, run_id=run.manifest.run_id), True
