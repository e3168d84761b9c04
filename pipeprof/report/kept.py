"""What a report asks of a run, written down with it, so that the next report reads only that.

It is the table `kept_answer`. As with the rollup, `made_of` says from what it was made: where the tables or the queries
are others now, the tables are asked; so they are where its file was damaged, which the report says. Nothing that asks a
run writes to it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from pipeprof.errors import RunError
from pipeprof.query.answers import Answers
from pipeprof.query.catalog import queries_root
from pipeprof.query.engine import Engine
from pipeprof.record import checksums, limits
from pipeprof.record.checksums import ANSWERS, ROLLUP
from pipeprof.version import __version__

if TYPE_CHECKING:
    from pipeprof.record.run import Run

TABLE = checksums.ANSWERS
DAMAGED = "damaged_answers"
_INSTEAD = "The report was made from the tables instead, which takes longer; `pipeprof compact` writes that file anew"
_COLUMNS = ("query", "asked", "place", "row_text")


def stored(run: Run, engine: Engine | None = None) -> Answers | None:
    """The answers that were written with a run; None without any, and for those of another form or of other tables.

    None also when they are damaged, of which the manifest (which is not saved) then has a warning. They are read with
    `engine`, if there is one on the run: DuckDB is loaded for a report in any case, and Arrow is slow to import.
    """
    if engine is None:
        with Engine.open(run, lazily=True) as own:
            return stored(run, own)
    problem = checksums.problem_of(run, TABLE)
    if problem is not None:
        run.manifest.warn(DAMAGED, f"{problem}. {_INSTEAD}")
        return None
    made_of = of_answers(run)
    if made_of is None or not run.has(TABLE):
        return None
    answers = Answers()
    try:
        rows = engine.rows("kept/rows", made_of=made_of, most_bytes=limits.most_memory())
    except RunError:  # of another form
        return None
    answers.read((row["query"], row["asked"], row["place"], row["row_text"]) for row in rows)
    return answers or None


def put(run: Run, answers: Answers) -> None:
    """Write answers into a run. Raises RunError as `compact.put`, and OSError when its folder cannot be written."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    from pipeprof.record import compact  # noqa: PLC0415

    rep = min(run.manifest.reps, key=lambda one: one.rep, default=None)
    first = {"rep": rep.rep if rep else 0, "rank": min((one.rank for one in rep.ranks), default=0) if rep else 0}
    rows = list(answers.written())
    same = {**first, "made_of": of_answers(run)}
    columns = dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True))
    table = pa.table(
        {
            field.name: pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.repeat(pa.scalar(same[field.name], field.type), len(rows))
            for field in compact.schema_of(TABLE)
        }
    )
    run.manifest = compact.put(run.path, TABLE, table).manifest


VERSION = 3  # of what the columns of the rollup mean; the version of pipeprof stands for the rules


def of_rollup(run: Run) -> str | None:
    """32 digits that differ when the tables, what the verdict asks of the manifest, or the rules do.

    None for a run without checksums, which an older pipeprof wrote.
    """
    manifest = run.manifest
    if manifest.parts is None:
        return None
    parts = {name: part for name, part in manifest.parts.items() if name.partition("/")[0] not in (ROLLUP, ANSWERS)}
    asked = [VERSION, __version__, manifest.source, manifest.fingerprint.get("cpu_cores"), parts]
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()[:32]


def of_answers(run: Run) -> str | None:
    """As `of_rollup`, and with the texts of all queries."""
    rollup = of_rollup(run)
    return None if rollup is None else hashlib.sha256((rollup + _query_texts()).encode()).hexdigest()[:32]


@cache
def _query_texts() -> str:
    digest = hashlib.sha256()
    for path in sorted(queries_root().rglob("*.sql")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
