"""Cuts a recorded run off at the end of its first steps, as if the training had been stopped there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.record import checksums, store
from pipeprof.record.schema import BY_NAME

if TYPE_CHECKING:
    from pipeprof.record.run import Run

Row = dict[str, Any]

# A row is kept when this moment of it is not later than the cut; tables that are not listed have no time.
ENDS = {
    "step": lambda row: row["end_ns"],
    "fetch": lambda row: row["start_ns"] + row["wait_ns"],
    "queue": lambda row: row["t_ns"],
    "op_service": lambda row: row["t_ns"],
    "cpu": lambda row: row["t_ns"],
    "stage": lambda row: row["start_ns"],
    "pipeline": lambda row: row["created_ns"],
}
OF_PIPELINE = ("pipeline_op", "pipeline_edge")


def first_steps(run: Run, number: int) -> None:
    """Remove from every table what came after the end of training step `number`; the run is changed on disk."""
    training = [row["end_ns"] for row in _rows(run, "step") if row["kind"] in ("warmup", "train")]
    if len(training) <= number:
        return
    cut = sorted(training)[number - 1]
    for table, end in ENDS.items():
        _write(run, table, [_cut(table, row, cut) for row in _rows(run, table) if end(row) <= cut])
    kept = {row["pipeline_id"] for row in _rows(run, "pipeline")}
    for table in OF_PIPELINE:
        _write(run, table, [row for row in _rows(run, table) if row["pipeline_id"] in kept])
    checksums.seal(run)
    run.save()


def _cut(table: str, row: Row, cut: int) -> Row:
    if table == "stage":
        return row | {"dur_ns": min(row["dur_ns"], cut - row["start_ns"])}
    if table == "pipeline" and row["closed_ns"] is not None and row["closed_ns"] > cut:
        return row | {"closed_ns": None}
    return row


def _rows(run: Run, table: str) -> list[Row]:
    rows: list[Row] = store.read(run, table).to_pylist()
    if any(row["rep"] or row["rank"] for row in rows):
        raise ValueError("a labelled capture has one process")
    return rows


def _write(run: Run, table: str, rows: list[Row]) -> None:
    for path in run.files(table):
        path.unlink()
    columns = BY_NAME[table].column_names  # a capture may be older than a column
    store.write(run, table, 0, 0, [[row.get(name) for name in columns] for row in rows])
    run.manifest.tables[table] = len(rows)
