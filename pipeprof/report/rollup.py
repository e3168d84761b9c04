"""The rollup of a run: a row for each rank with what questions over many runs ask, in place of its tables.

It is the table `rollup`, written when a run is recorded or imported, and anew when it is compacted. `made_of` says
from what: where the tables, or the rules that judge them, are others now, it is made anew in memory. Nothing that asks
a run writes to it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from pipeprof.errors import PipeprofError
from pipeprof.query.engine import Engine
from pipeprof.record import compact, store
from pipeprof.record.checksums import ANSWERS
from pipeprof.report.diagnosis import data_verdict
from pipeprof.version import __version__

if TYPE_CHECKING:
    from pipeprof.record.run import Run

TABLE = "rollup"
VERSION = 1  # of what the columns mean; the version of pipeprof stands for the rules
BOUND = "bound"  # the suggestion that says what no cure of an operator exceeds


def rollup_of(run: Run) -> pa.Table:
    """The rows of the table `rollup` with `rep` and `rank`: as written, if they are of these tables, else made now.

    Raises RunError, naming the file, for a run with a damaged one.
    """
    rollup = stored(run)
    return make(run) if rollup is None else rollup


def stored(run: Run) -> pa.Table | None:
    """The rollup that was written with the run; None without one, and when it was made of something else."""
    return stored_as(run, TABLE, made_of(run)) if run.has(TABLE) else None


def stored_as(run: Run, table: str, wanted: str | None) -> pa.Table | None:
    """The rows of a table that is written with a run; None where it is of another form, or not made of `wanted`."""
    rows = store.read(run, table)
    fits = rows.schema.equals(compact.schema_of(table)) and rows.column("made_of").unique().to_pylist() == [wanted]
    return rows if fits and wanted is not None else None


def make(run: Run) -> pa.Table:
    """As `rollup_of`, from the other tables."""
    with Engine.open(run, lazily=True) as engine:
        ranks = engine.ask("rollup/rank")
        diagnosis = data_verdict(engine, run, engine.rows("step/data_wait"), engine.rows("queue/pipelines"))
    schema = compact.schema_of(TABLE)
    same = _judged(diagnosis) | {"made_of": made_of(run)}
    columns = [
        ranks.column(field.name).cast(field.type)
        if field.name in ranks.column_names
        else pa.repeat(pa.scalar(same[field.name], field.type), ranks.num_rows)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def keep(run: Run) -> bool:
    """Write the rollup of a complete run into it, if it is not there; whether it is there now.

    A run that cannot be asked, or may not be written to, is left as it is.
    """
    try:
        if run.manifest.parts is None or run.manifest.state != "complete":
            return False
        if stored(run) is None:
            rows = make(run)
            if not rows.num_rows:
                return False
            run.manifest = compact.put(run.path, TABLE, rows).manifest
    except (PipeprofError, OSError):
        return False
    return True


def made_of(run: Run) -> str | None:
    """32 digits that differ when the tables, what the verdict asks of the manifest, or the rules do.

    None for a run without checksums, which an older pipeprof wrote.
    """
    manifest = run.manifest
    if manifest.parts is None:
        return None
    parts = {name: part for name, part in manifest.parts.items() if name.partition("/")[0] not in (TABLE, ANSWERS)}
    asked = [VERSION, __version__, manifest.source, manifest.fingerprint.get("cpu_cores"), parts]
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()[:32]


def _judged(diagnosis: dict[str, Any]) -> dict[str, Any]:
    """The columns of the verdict; what it does not say is None."""
    advice = [one for one in diagnosis["suggestions"] if one["code"] != BOUND]
    first = next((one for one in advice if one["gain"] is not None), advice[0] if advice else {})
    most: dict[str, Any] = next((one for one in diagnosis["suggestions"] if one["code"] == BOUND), {})
    place = diagnosis["place"] or {}
    return {
        "verdict": diagnosis["verdict"], "verdict_rank": diagnosis["rank"], "op_type": diagnosis["op_type"],
        "op_name": diagnosis["op_name"], "op_kind": diagnosis["kind"],
        "call": place.get("call"), "code": place.get("code"), "advice": first.get("code"),
        "parameter": first.get("parameter"), "gain": first.get("gain"), "gain_low": first.get("gain_low"),
        "gain_high": first.get("gain_high"), "gain_most": most.get("gain_high"),
    }  # fmt: skip
