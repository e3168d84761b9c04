"""The list of the runs below a URL of object storage: the rows of `report.runs`, by manifests and rollups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.errors import PipeprofError, RunError
from pipeprof.record.listing import began
from pipeprof.record.object_runs import HALF, add_rollup, each_run, glimpsed, runs_below
from pipeprof.record.objects import StorageError, without_secrets
from pipeprof.record.run_objects import copied
from pipeprof.record.text import printable
from pipeprof.report.overview import overview
from pipeprof.report.rollup import stored
from pipeprof.report.runs import COLUMNS
from pipeprof.units import utc_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeprof.record.object_runs import Stored
    from pipeprof.record.objects import Objects


def rows_below(url: str, progress: Callable[[str], None] = lambda _text: None) -> list[dict[str, Any]]:
    """A row with COLUMNS for each run directly below a URL, or for the one that is there; the newest first.

    Raises UsageError for a URL that cannot be opened, RunError when nothing is there or the storage fails.
    """
    rows = each_run(url, runs_below(url, 1), _row, dict[str, Any], what="listed", progress=progress)
    return sorted(rows, key=lambda row: str(row["started_at"]), reverse=True)


def _row(root: Objects, one: Stored) -> tuple[dict[str, Any], bool]:
    """The row of a run, and whether it holds as long as the run is as it was."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {"path": printable(without_secrets(one.url)), "started_at": utc_text(one.began_s)}
    if one.problem == HALF:
        return row | {"state": "partial", "problem": HALF}, False
    try:
        with glimpsed(root, one) as run:
            manifest = run.manifest
            row |= {name: getattr(manifest, name) for name in ("state", "command", "source", "run_id")}
            row["started_at"] = utc_text(began(run, one.began_s))
            add_rollup(root, one, run)
            summary = overview(run, all_here=False) if stored(run) is not None else None
        if summary is None:
            with copied(one.url) as copy:
                summary = overview(copy)
        if summary.problem:
            raise RunError(summary.problem)
    except PipeprofError as error:
        if isinstance(error, StorageError) and error.passes:
            raise
        return row | {"state": "damaged", "problem": error.message}, False
    return row | summary.facts | {"problem": manifest.reason}, True
