"""Baselines and their history as rows and documents: what `pipeprof baseline` prints."""

from __future__ import annotations

import contextlib
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import PipeprofError
from pipeprof.record.baseline import document, names, read_history
from pipeprof.record.baseline_files import NewerBaselineError
from pipeprof.record.baseline_summary import about_lines, flat, format_value, ordered, spread, unit_of
from pipeprof.record.history import metrics, series
from pipeprof.record.note import sentence as note_sentence
from pipeprof.record.objects import without_secrets
from pipeprof.report.document import Document
from pipeprof.report.sections import Block, Section
from pipeprof.report.words.gate import sentence
from pipeprof.units import format_change, format_count, format_minute, format_ratio
from pipeprof.verdict.gate.changes import LEAST_SIDE, Drift, Point, change_points, drift

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.record import baseline_files
    from pipeprof.record.baseline import Saved
    from pipeprof.record.measures import Measures

LISTING_VERSION = 1
LEAST_POINTS = 2 * LEAST_SIDE


def states(root: str, *, histories: bool = False) -> list[dict[str, Any]]:
    """One row per baseline under the root, with `state` ok | damaged | newer and the `problem` in words.

    Every file is read and checked; with `histories`, the history too.
    """
    rows = []
    for workload, machine in names(root):
        saved: baseline_files.Document | None = None
        state, problem = "ok", None
        try:
            saved = document(root, workload, machine)
            if histories:
                read_history(root, workload, machine)
        except PipeprofError as error:
            state, problem = "newer" if isinstance(error, NewerBaselineError) else "damaged", error.message
        rows.append({
            "workload": workload, "machine": machine, "state": state, "problem": problem,
            "label": saved.label if saved else None, "created_at": saved.created_at if saved else None,
            "revision": (saved.git or {}).get("revision") if saved else None, "reps": saved.reps if saved else None,
            "jobs": saved.jobs if saved else None, "metrics": saved.metrics if saved else None,
        })  # fmt: skip
    return rows


def listing(root: str, *, histories: bool = False) -> dict[str, Any]:
    """`{schema_version, root, baselines}`, with the rows of `states`; `root` is shown without its secrets."""
    shown = without_secrets(root) if "://" in root else root
    return {"schema_version": LISTING_VERSION, "root": shown, "baselines": states(root, histories=histories)}


def listing_document(content: dict[str, Any]) -> Document:
    """A table of the rows of `states`."""
    rows = content["baselines"]
    head = ("workload", "machine class", "reps", "jobs", "metrics", "revision", "measured", "state")
    keys = ("workload", "machine", "reps", "jobs", "metrics", "revision", "created_at", "state")
    cells = [[_cell(row[key], key) for key in keys] for row in rows]
    block = Block(head, cells, frozenset((2, 3, 4)), spare=(6, 4, 5, 3))
    return Document(f"{format_count(len(rows), 'baseline')} in {content['root']}", [Section("", blocks=[block])])


def checked_document(content: dict[str, Any]) -> Document:
    """Each baseline with what is wrong with it."""
    rows = content["baselines"]
    notes = [f"{row['workload']}/{row['machine']}: {row['problem'] or row['state']}" for row in rows]
    title = f"{format_count(len(rows), 'baseline')} in {content['root']}"
    return Document(title, [Section("", notes=notes, unbroken=True)])


def history(root: str, workload: str, machine: str) -> dict[str, Any]:
    """`{schema_version, workload, machine, entries, metrics: [{name, unit, points, changes, drift}]}`.

    Raises RunError for a damaged history and UsageError when ruptures is not installed.
    """
    entries = read_history(root, workload, machine)
    rows = []
    for metric in metrics(entries):
        marks = series(entries, metric)
        points = [Point(mark.value, mark.group, mark.created_at, mark.revision, mark.tag) for mark in marks]
        past = drift(points) if points else None
        rows.append({
            "name": metric, "unit": unit_of(metric), "points": msgspec.to_builtins(points),
            "changes": [msgspec.to_builtins(change) | {"ratio": change.ratio} for change in change_points(points)],
            "drift": None if past is None else _worded(past),
        })  # fmt: skip
    return {
        "schema_version": LISTING_VERSION, "workload": workload, "machine": machine,
        "entries": msgspec.to_builtins(entries), "metrics": rows,
    }  # fmt: skip


def _worded(past: Drift) -> dict[str, Any]:
    """The drift with `note` as a sentence; its code and numbers are `note_facts`."""
    return {**msgspec.to_builtins(past), "note": sentence(past.note), "note_facts": past.note}


def history_document(content: dict[str, Any]) -> Document:
    """What `history` gives: changes of level and drift, and a table of medians."""
    measured = [row["name"] for row in content["metrics"]]
    head = ("measured", "revision", "tag", "reps", *measured)
    keys = ("created_at", "revision", "tag", "reps")
    rows = [[_cell(entry[key], key) for key in keys] for entry in content["entries"]]
    for cells, entry in zip(rows, content["entries"], strict=True):
        medians = entry["medians"]
        cells += [format_value(name, medians[name]) if name in medians else "-" for name in measured]
    block = Block(head, rows, frozenset(range(3, len(head))))
    title = f"History of {content['workload']} on {content['machine']}"
    return Document(title, [Section("", notes=_history_lines(content["metrics"]), blocks=[block])])


def one_document(about: baseline_files.Document, measures: Measures, kind: str) -> Document:
    """A baseline, or a run: what it is of, its metrics, the primary ones first, and its machine."""
    rows = []
    for metric in ordered(measures):
        values = list(measures.values[metric].values())
        numbers = (format_value(metric, value) for value in (median(values), min(values), max(values)))
        rows.append([metric, *numbers, format_ratio(spread(values)), str(len(values))])
    head = ("metric", "median", "lowest", "highest", "spread", "reps")
    caption = ["Spread: 1.4826 x median absolute deviation / median, over repetitions."]
    metrics_block = Block(head, rows, frozenset(range(1, 6)), caption=caption)
    return Document(f"{kind} of {about.workload}" if about.workload else kind, [
        Section("", notes=about_lines(measures, msgspec.to_builtins(about)), blocks=[metrics_block]),
        Section("Machine", notes=[f"{name}: {value}" for name, value in flat(measures.fingerprint)]),
    ])  # fmt: skip


def one(about: baseline_files.Document, measures: Measures) -> dict[str, Any]:
    """A baseline as JSON: what its `baseline.json` says, and `metrics` with median, range and spread of each."""
    rows = [
        {
            "name": metric, "unit": unit_of(metric), "reps": len(values), "median": median(values.values()),
            "lowest": min(values.values()), "highest": max(values.values()), "spread": spread(values.values()),
        }
        for metric, values in sorted(measures.values.items())
    ]  # fmt: skip
    document: dict[str, Any] = msgspec.to_builtins(about)
    said = [note_sentence(one) for one in measures.notes]
    return {
        **document, "notes": said, "schema_version": LISTING_VERSION, "metrics": rows, "facts": len(measures.facts),
    }  # fmt: skip


def written(saved: Saved) -> dict[str, Any]:
    """What a write did, as JSON."""
    about = saved.document
    return {
        "schema_version": LISTING_VERSION, "where": saved.where, "workload": about.workload, "machine": about.machine,
        "reps": about.reps, "jobs": about.jobs, "metrics": about.metrics, "bytes": saved.bytes,
        "replaced": saved.replaced, "notes": saved.notes,
    }  # fmt: skip


def _history_lines(histories: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    for row in histories:
        lines += [
            f"{row['name']}: {format_change(change['ratio'])} from {_cell(change['revision'])} "
            f"({_cell(change['at'], 'at')}) on, {change['points_before']} writes before, {change['points_after']} after"
            for change in row["changes"]
        ]
        past = row["drift"]
        if past is not None:
            size = "not comparable" if past["ratio"] is None else format_change(past["ratio"])
            lines.append(f"{row['name']}: {size} since {past['tag']} ({past['note']})")
    groups = (Counter(point["group"] for point in row["points"]) for row in histories)
    found = "no change of level was found"
    if max((most for one in groups for most in one.values()), default=0) < LEAST_POINTS:
        found = f"changes of level are looked for from {LEAST_POINTS} writes on"
    return lines or [f"{found}, and no earlier write has a release tag to compare with"]


def _cell(value: Any, key: str = "") -> str:
    if key in ("created_at", "at") and value is not None:
        with contextlib.suppress(ValueError):  # anybody may have written the file
            return format_minute(value)
    return "-" if value is None else str(value)[:12] if _is_revision(value) else str(value)


def _is_revision(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 40 and all(letter in "0123456789abcdef" for letter in value)
