"""A list of runs: when each began, its command and state, the verdict and the time of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import command
from pipeprof.record.lock import is_running
from pipeprof.record.text import printable
from pipeprof.report.document import Document
from pipeprof.report.overview import overview
from pipeprof.report.sections.block import Block, Section
from pipeprof.units import format_count, format_minute, format_ns, utc_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeprof.record.listing import Listed

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
