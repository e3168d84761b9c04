"""Baselines and their history as rows, tables and JSON: what `pipeprof baseline` prints."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import PipeprofError
from pipeprof.record.baseline import document, names, read_history
from pipeprof.record.baseline_files import NewerBaselineError
from pipeprof.record.baseline_summary import format_value, spread, unit_of
from pipeprof.record.history import metrics, series
from pipeprof.units import format_change
from pipeprof.verdict.gate.changes import Point, change_points, drift

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.record.baseline import Saved
    from pipeprof.record.baseline_files import Document
    from pipeprof.record.measures import Measures

LISTING_VERSION = 1


def states(root: str, *, histories: bool = False) -> list[dict[str, Any]]:
    """One row per baseline under the root, with `state` ok | damaged | newer and the `problem` in words.

    Every file is read and checked; with `histories`, the history too.
    """
    rows = []
    for workload, machine in names(root):
        found: Document | None = None
        state, problem = "ok", None
        try:
            found = document(root, workload, machine)
            if histories:
                read_history(root, workload, machine)
        except PipeprofError as error:
            state, problem = "newer" if isinstance(error, NewerBaselineError) else "damaged", error.message
        rows.append({
            "workload": workload, "machine": machine, "state": state, "problem": problem,
            "label": found.label if found else None, "created_at": found.created_at if found else None,
            "revision": (found.git or {}).get("revision") if found else None, "reps": found.reps if found else None,
            "jobs": found.jobs if found else None, "metrics": found.metrics if found else None,
        })  # fmt: skip
    return rows


def states_table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows of `states` for people; empty for none."""
    head = ("workload", "machine class", "reps", "jobs", "metrics", "revision", "measured", "state")
    keys = ("workload", "machine", "reps", "jobs", "metrics", "revision", "created_at", "state")
    return _table(head, [[_cell(row[key]) for key in keys] for row in rows])


def history(root: str, workload: str, machine: str) -> dict[str, Any]:
    """`{schema_version, workload, machine, entries, metrics: [{name, unit, points, changes, drift}]}`.

    Raises RunError for a damaged history and UsageError when ruptures is not installed.
    """
    entries = read_history(root, workload, machine)
    found = []
    for metric in metrics(entries):
        marks = series(entries, metric)
        points = [Point(mark.value, mark.group, mark.created_at, mark.revision, mark.tag) for mark in marks]
        past = drift(points) if points else None
        found.append({
            "name": metric, "unit": unit_of(metric), "points": msgspec.to_builtins(points),
            "changes": [msgspec.to_builtins(change) | {"ratio": change.ratio} for change in change_points(points)],
            "drift": msgspec.to_builtins(past),
        })  # fmt: skip
    return {
        "schema_version": LISTING_VERSION, "workload": workload, "machine": machine,
        "entries": msgspec.to_builtins(entries), "metrics": found,
    }  # fmt: skip


def history_text(content: dict[str, Any]) -> str:
    """What `history` gives, for people: a table of medians, then changes of level and drift."""
    known = content["metrics"]
    head = ("measured", "revision", "tag", "reps", *(row["name"] for row in known))
    rows = [[_cell(entry[key]) for key in ("created_at", "revision", "tag", "reps")] for entry in content["entries"]]
    for cells, entry in zip(rows, content["entries"], strict=True):
        medians = entry["medians"]
        cells += [format_value(row["name"], medians[row["name"]]) if row["name"] in medians else "-" for row in known]
    return _table(head, rows) + "\n".join(_history_lines(known)) + "\n"


def one(about: Document, measures: Measures) -> dict[str, Any]:
    """A baseline as JSON: what its `baseline.json` says, and `metrics` with median, range and spread of each."""
    rows = [
        {
            "name": metric, "unit": unit_of(metric), "reps": len(values), "median": median(values.values()),
            "lowest": min(values.values()), "highest": max(values.values()), "spread": spread(values.values()),
        }
        for metric, values in sorted(measures.values.items())
    ]  # fmt: skip
    document: dict[str, Any] = msgspec.to_builtins(about)
    return {**document, "schema_version": LISTING_VERSION, "metrics": rows, "facts": len(measures.facts)}


def written(saved: Saved) -> dict[str, Any]:
    """What a write did, as JSON."""
    about = saved.document
    return {
        "schema_version": LISTING_VERSION, "where": saved.where, "workload": about.workload, "machine": about.machine,
        "reps": about.reps, "jobs": about.jobs, "metrics": about.metrics, "bytes": saved.bytes,
        "replaced": saved.replaced, "notes": saved.notes,
    }  # fmt: skip


def _history_lines(known: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    for row in known:
        lines += [
            f"{row['name']}: {format_change(change['ratio'])} from {_cell(change['revision'])} "
            f"({_cell(change['at'])}) on, {change['points_before']} writes before, {change['points_after']} after"
            for change in row["changes"]
        ]
        past = row["drift"]
        if past is not None:
            size = "not comparable" if past["ratio"] is None else format_change(past["ratio"])
            lines.append(f"{row['name']}: {size} since {past['tag']} ({past['note']})")
    return lines or ["no change of level was found, and no earlier write has a release tag to compare with"]


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)[:12] if _is_revision(value) else str(value)


def _is_revision(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 40 and all(letter in "0123456789abcdef" for letter in value)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    widths = [max(len(line[at]) for line in (head, *rows)) for at in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in (head, *rows)]
    return "\n".join(line.rstrip() for line in lines) + "\n"
