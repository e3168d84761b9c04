"""Why a table of operators is empty: a name, type or data type that no operator of the run has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.errors import did_you_mean
from pipeprof.query.engine import Engine
from pipeprof.report.ops.single import INFOS, listed

if TYPE_CHECKING:
    from pipeprof.record.run import Run
    from pipeprof.report.ops.content import Content
    from pipeprof.report.ops.question import Question


def why_empty(run: Run, question: Question, content: Content) -> list[str]:
    """What is asked for that no operator has, with near names; nothing when the table has rows.

    No error: profile_analyze prints its summary in this case, too.
    """
    filters = question.types or question.opr_name or question.input_dtype
    if not filters or not content.parts or any(part.count for part in content.parts):
        return []
    with Engine.open(run, lazily=True) as engine:
        rows = engine.rows(INFOS)
    types = sorted({row["type"] for row in rows if row["type"]})
    dtypes = sorted({str(dtype) for row in rows for dtype in listed(row["in_types"]) if dtype})
    pattern, dtype = question.pattern(), question.input_dtype
    found = [_unknown(f"--type {name}", name, types) for name in question.types if name not in types]
    if pattern is not None and not any(pattern.match(row["name"] or "") for row in rows):
        found.append(f"--opr-name {question.opr_name} matches the beginning of no operator's name")
    if dtype is not None and dtype not in dtypes:
        found.append(_unknown(f"--input-dtype {dtype}", dtype, dtypes))
    return found


def _unknown(option: str, name: str, known: list[str]) -> str:
    hint = did_you_mean(name, known, f"there are {len(known)} others")
    return f"{option} matches no operator" + (f"; {hint}" if hint else "")
