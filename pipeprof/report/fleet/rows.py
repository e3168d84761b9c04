"""A run as rows of the table `fleet_rank`: what its manifest says, beside its rollup."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeprof.errors import PipeprofError
from pipeprof.query.measure import fingerprint_of, seen_from, workload_of
from pipeprof.record.checksums import refuse_changed
from pipeprof.record.compact import schema_of
from pipeprof.record.launcher import is_running
from pipeprof.record.machine import fingerprint_hash, machine_class
from pipeprof.record.object_runs import HALF, add_rollup, glimpsed
from pipeprof.record.objects import StorageError
from pipeprof.record.run import load
from pipeprof.record.run_objects import copied
from pipeprof.record.text import printable
from pipeprof.report.rollup import make, rollup_of, stored
from pipeprof.report.runs import CUT_OFF

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.record.object_runs import Stored
    from pipeprof.record.objects import Objects
    from pipeprof.record.run import Manifest, Run

SCHEMA = schema_of("fleet_rank")
DAMAGED, RUNNING = "damaged", "running"
PLACES = ("call", "code")  # below the working directory: the same code lies elsewhere on each machine


def rows_of(path: Path, name: str) -> pa.Table:
    """The rows of the run in a folder, called `name`; a single one, without rank, when no rank of it is known.

    Never raises for what is wrong with the run: that is its `problem`.
    """
    try:
        run = load(path)
    except (PipeprofError, OSError) as error:
        return _without_ranks({"run": name, "state": DAMAGED, "problem": _said(error)})
    facts = {"run": name, **_facts(run.manifest)}
    if run.manifest.state == RUNNING:
        cut_off = not is_running(run)
        return _without_ranks(facts | ({"state": "partial", "problem": CUT_OFF} if cut_off else {}))
    try:
        refuse_changed(run, footers=False)
        rollup = rollup_of(run)
    except (PipeprofError, OSError) as error:
        return _without_ranks(facts | {"state": DAMAGED, "problem": _said(error)})
    return _beside(facts, rollup, run) if rollup.num_rows else _without_ranks(facts)


def rows_of_stored(root: Objects, stored_run: Stored, name: str) -> pa.Table:
    """As `rows_of`, of a run below `root` in object storage: by its manifest and rollup, else by a copy of it.

    Raises StorageError where the storage fails in a way that may pass: that says nothing about the run.
    """
    if stored_run.problem == HALF:
        return _without_ranks({"run": name, "state": "partial", "problem": HALF})
    facts: dict[str, Any] = {"run": name}
    try:
        with glimpsed(root, stored_run) as run:
            facts |= _facts(run.manifest)
            add_rollup(root, stored_run, run)
            rollup = stored(run)
        if rollup is None:
            with copied(stored_run.url) as copy:
                rollup = make(copy)
    except (PipeprofError, OSError) as error:
        if isinstance(error, StorageError) and error.passes:
            raise
        return _without_ranks(facts | {"state": DAMAGED, "problem": _said(error)})
    return _beside(facts, rollup, run) if rollup.num_rows else _without_ranks(facts)


def _said(error: PipeprofError | OSError) -> str:
    return printable(error.message if isinstance(error, PipeprofError) else str(error.strerror or error))


def _facts(manifest: Manifest) -> dict[str, Any]:
    conditions = fingerprint_of(manifest)
    revision = (manifest.git or {}).get("revision")
    versions = [rank.mindspore for rep in manifest.reps for rank in rep.ranks if rank.mindspore]
    began, week = _began(manifest.started_at)
    facts = {
        "run_id": manifest.run_id, "state": manifest.state, "problem": manifest.reason, "started_at": began,
        "week": week, "workload": workload_of(manifest), "source": manifest.source,
        "machine": machine_class(conditions), "conditions": fingerprint_hash(conditions), "revision": revision,
        "mindspore": versions[0] if versions else manifest.fingerprint.get("mindspore"),
    }  # fmt: skip
    return {name: printable(value) if isinstance(value, str) else None for name, value in facts.items()}


def _began(text: str) -> tuple[str, str | None]:
    """When a run began in UTC, and the Monday of that week; None for a text that is no time."""
    try:
        at = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
        at = at.astimezone(dt.timezone.utc)
        monday = (at - dt.timedelta(days=at.weekday())).date().isoformat()
    except (ValueError, OverflowError):
        return text, None
    return at.strftime("%Y-%m-%dT%H:%M:%SZ"), monday


def _beside(facts: dict[str, Any], rollup: pa.Table, run: Run) -> pa.Table:
    """The facts of a run in each row of its rollup."""
    hosts = {(rep.rep, one.rank): printable(one.host) for rep in run.manifest.reps for one in rep.ranks}
    usual = run.manifest.fingerprint.get("host")
    keys = zip(rollup.column("rep").to_pylist(), rollup.column("rank").to_pylist(), strict=True)
    host = [hosts.get(key) or (printable(usual) if isinstance(usual, str) else None) for key in keys]
    columns = []
    for field in SCHEMA:
        if field.name == "host":
            columns.append(pa.chunked_array([pa.array(host, field.type)]))
        elif field.name in PLACES:
            sites = [one and seen_from(run.manifest.workdir, one) for one in rollup.column(field.name).to_pylist()]
            columns.append(pa.chunked_array([pa.array(sites, field.type)]))
        elif field.name in rollup.column_names:
            columns.append(rollup.column(field.name))
        else:
            same = pa.repeat(pa.scalar(facts[field.name], field.type), rollup.num_rows)
            columns.append(pa.chunked_array([same]))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _without_ranks(facts: dict[str, Any]) -> pa.Table:
    return pa.Table.from_arrays([pa.array([facts.get(field.name)], field.type) for field in SCHEMA], schema=SCHEMA)
