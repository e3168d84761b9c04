"""A list of runs: when each began, its command and state, the verdict and the time of a step.

The list of the runs below a URL of object storage: the rows of `report.runs`, by manifests and rollups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.errors import PipeprofError
from pipeprof.escape import command
from pipeprof.record.listing import began
from pipeprof.record.lock import is_running
from pipeprof.record.object_runs import HALF, add_rollup, each_run, glimpsed, runs_below
from pipeprof.record.objects import StorageError, without_secrets
from pipeprof.record.run_objects import copied
from pipeprof.record.text import printable
from pipeprof.report.document import Document
from pipeprof.report.overview import asked, of_rollup, overview
from pipeprof.report.rollup import stored
from pipeprof.report.sections.block import Block, Section
from pipeprof.units import format_count, format_minute, format_ns, utc_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeprof.record.listing import Listed
    from pipeprof.record.object_runs import Stored
    from pipeprof.record.objects import Objects


RUNS_VERSION = 1
COLUMNS = (
    "path", "started_at", "state", "verdict", "op_name", "step_ns", "command", "source", "run_id", "problem", "cause",
    "cause_text", "cause_share",
)  # fmt: skip
HEAD = ("run", "started", "state", "step", "verdict", "command")
CUT_OFF = "the recording was cut off; the next command that opens the run recovers it"
LONGEST_COMMAND = 60  # characters; the whole command is in CSV and JSON


def rows_of(listed: Sequence[Listed], progress: Callable[[str], None] = lambda _text: None) -> list[dict[str, Any]]:
    """A row with COLUMNS for each run."""
    rows = []
    for number, one in enumerate(listed, 1):
        progress(f"{number} of {len(listed)}")
        rows.append(_row(one))
    return rows


def _row(one: Listed) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {"path": printable(str(one.path)), "started_at": utc_text(one.began)}
    if one.run is None:
        return row | {"state": "damaged", "problem": one.problem}
    manifest = one.run.manifest
    row |= {"state": manifest.state, "command": manifest.command, "source": manifest.source, "run_id": manifest.run_id}
    if manifest.state == "running":
        return row if is_running(one.run) else row | {"state": "partial", "problem": CUT_OFF}
    summary = overview(one.run)
    if summary.problem:
        return row | {"state": "damaged", "problem": summary.problem}
    return row | summary.facts | {"problem": manifest.reason}


def content_of(folder: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Everything that `runs` says of a folder; `rows` as `rows_of` gives them."""
    return {"schema_version": RUNS_VERSION, "folder": folder, "runs": list(rows)}


def document(content: dict[str, Any]) -> Document:
    """The table of the runs, and what is wrong with those that are damaged or not whole."""
    rows = content["runs"]
    blocks = [Block(HEAD, [cells(row) for row in rows], frozenset({3}))] if rows else []
    title = f"{format_count(len(rows), 'run') if rows else 'no runs'} in `{content['folder']}`"
    return Document(
        title, [Section("", blocks=blocks), Section("Damaged or not whole", notes=problems(rows), unbroken=True)]
    )


def problems(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What is wrong with each run of which therefore nothing can be said."""
    return [f"{row['path']}: {row['problem']}" for row in rows if row["problem"] and row["verdict"] is None]


def plain_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows for CSV: the command as one text."""
    return [row | {"command": command(row["command"] or [])} for row in rows]


def cells(row: dict[str, Any]) -> list[str]:
    """A row below HEAD, as text."""
    began = format_minute(row["started_at"])
    said = " ".join(command(row["command"] or []).split())
    if len(said) > LONGEST_COMMAND:
        said = said[: LONGEST_COMMAND - 3] + "..."
    step = "" if row["step_ns"] is None else format_ns(row["step_ns"])
    return [row["path"], began, row["state"], step, row["cause_text"] or "", said]


def rows_below(url: str, progress: Callable[[str], None] = lambda _text: None) -> list[dict[str, Any]]:
    """A row with COLUMNS for each run directly below a URL, or for the one that is there; the newest first.

    Raises UsageError for a URL that cannot be opened, RunError when nothing is there or the storage fails.
    """
    rows = each_run(url, runs_below(url, 1), _stored_row, dict[str, Any], what="listed", progress=progress)
    return sorted(rows, key=lambda row: str(row["started_at"]), reverse=True)


def _stored_row(root: Objects, one: Stored) -> tuple[dict[str, Any], bool]:
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
            rollup = stored(run)
        if rollup is not None:
            summary = of_rollup(rollup)
        else:
            with copied(one.url) as copy:
                summary = asked(copy)
    except PipeprofError as error:
        if isinstance(error, StorageError) and error.passes:
            raise
        return row | {"state": "damaged", "problem": error.message}, False
    return row | summary.facts | {"problem": manifest.reason}, True
