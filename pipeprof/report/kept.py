"""What a report asks of a run with very many steps, written down with it, so that the next report reads only that.

It is the table `kept_answer`. As with the rollup, `made_of` says from what it was made: where the tables or the queries
are others now, the tables are asked; so they are where its file was damaged, which the report says. Nothing that asks a
run writes to it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING

from pipeprof.query.answers import Answers
from pipeprof.query.catalog import queries_root
from pipeprof.record import checksums

if TYPE_CHECKING:
    from pipeprof.record.run import Run

TABLE = checksums.ANSWERS
DAMAGED = "damaged_answers"
_INSTEAD = "The report was made from the tables instead, which takes longer; `pipeprof compact` writes that file anew"
_COLUMNS = ("query", "asked", "place", "row_text")


def stored(run: Run) -> Answers | None:
    """The answers that were written with a run; None without any, and for those of another form or of other tables.

    None also when they are damaged, of which the manifest (which is not saved) then has a warning.
    """
    problem = checksums.problem_of(run, TABLE)
    if problem is not None:
        run.manifest.warn(DAMAGED, f"{problem}. {_INSTEAD}")
        return None
    if not run.has(TABLE):
        return None
    from pipeprof.report import rollup  # noqa: PLC0415 - Arrow is slow to import; most runs have no answers

    rows = rollup.stored_as(run, TABLE, _made_of(run))
    if rows is None:
        return None
    answers = Answers()
    columns = [rows.column(name).to_pylist() for name in _COLUMNS]
    answers.read(zip(*columns, strict=True))
    return answers


def put(run: Run, answers: Answers) -> None:
    """Write answers into a run. Raises RunError as `compact.put`, and OSError when its folder cannot be written."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    from pipeprof.record import compact  # noqa: PLC0415

    rep = min(run.manifest.reps, key=lambda one: one.rep, default=None)
    first = {"rep": rep.rep if rep else 0, "rank": min((one.rank for one in rep.ranks), default=0) if rep else 0}
    rows = list(answers.written())
    same = {**first, "made_of": _made_of(run)}
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


def _made_of(run: Run) -> str | None:
    """As `rollup.made_of`, and with the texts of all queries."""
    from pipeprof.report import rollup  # noqa: PLC0415 - slow to import

    made_of = rollup.made_of(run)
    return None if made_of is None else hashlib.sha256((made_of + _texts()).encode()).hexdigest()[:32]


@cache
def _texts() -> str:
    digest = hashlib.sha256()
    for path in sorted(queries_root().rglob("*.sql")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
