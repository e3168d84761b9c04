"""The rollup of a run: a row for each rank with what questions over many runs ask, in place of its tables.

It is the table `rollup`, written when a run is recorded or imported, and anew when it is compacted. `made_of` says
from what: where the tables, or the rules that judge them, are others now, it is made anew in memory. Nothing that asks
a run writes to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from pipeprof.errors import PipeprofError
from pipeprof.query.engine import Engine
from pipeprof.record import checksums, compact, store
from pipeprof.report import kept
from pipeprof.report.kept import of_rollup
from pipeprof.report.run_verdict import find
from pipeprof.verdict.data_cause import CODES, bound_of

if TYPE_CHECKING:
    from pipeprof.record.run import Run
    from pipeprof.report.run_verdict import Findings

TABLE = checksums.ROLLUP


def rollup_of(run: Run) -> pa.Table:
    """The rows of the table `rollup` with `rep` and `rank`: as written, if they are of these tables, else made now.

    Raises RunError, naming the file, for a run with a damaged one.
    """
    rollup = stored(run)
    return make(run) if rollup is None else rollup


def stored(run: Run) -> pa.Table | None:
    """The rollup that was written with the run; None without one, and when it was made of something else."""
    if not run.has(TABLE):
        return None
    rows, wanted = store.read(run, TABLE), of_rollup(run)
    fits = rows.schema.equals(compact.schema_of(TABLE)) and rows.column("made_of").unique().to_pylist() == [wanted]
    return rows if fits and wanted is not None else None


def make(run: Run) -> pa.Table:
    """As `rollup_of`, from the other tables."""
    with Engine.open(run, lazily=True) as engine:
        ranks = engine.ask("rollup/rank")
        engine.answers = kept.stored(run, engine)
        found = find(engine, run)
    schema = compact.schema_of(TABLE)
    same = _judged(found) | {"made_of": of_rollup(run)}
    columns = [
        _typed(ranks.column(field.name), field.type)
        if field.name in ranks.column_names
        else pa.repeat(pa.scalar(same[field.name], field.type), ranks.num_rows)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _typed(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """The column as that type; Arrow's casts are slow to import, and most columns need none."""
    return column if column.type.equals(wanted) else column.cast(wanted)


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


def _judged(found: Findings) -> dict[str, Any]:
    """The columns of the verdict; what it does not say is None. Stage, advice and gain are of the data pipeline."""
    diagnosis, lead = found.diagnosis, found.verdict.lead
    cause = found.verdict.find(CODES)
    stage, advice = (cause.stage, cause.advice) if cause else (None, None)
    gain = advice.gain if advice and advice.gain and advice.gain.origin in ("predicted", "measured") else None
    bound, place = (bound_of(diagnosis), diagnosis["place"] or {}) if stage else (None, {})
    return {
        "verdict": diagnosis["verdict"], "verdict_rank": diagnosis["rank"], "op_type": stage and stage.op_type,
        "op_name": stage and stage.name, "op_kind": diagnosis["kind"] if stage else None,
        "call": place.get("call"), "code": place.get("code"), "advice": advice and advice.code,
        "parameter": advice and advice.parameter, "gain": gain and gain.times, "gain_low": gain and gain.low,
        "gain_high": gain and gain.high, "gain_most": bound and bound["gain_high"],
        "cause": lead.code, "cause_detail": lead.detail or None, "cause_share": lead.share,
        "causes": msgspec.json.encode(found.verdict).decode(),
    }  # fmt: skip
