"""Why a table of operators is empty: a name, type or data type that no operator of the run has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.errors import UsageError, did_you_mean
from pipeprof.query.engine import Engine
from pipeprof.report.ops.single import INFOS, listed

if TYPE_CHECKING:
    from pipeprof.record.run import Run
    from pipeprof.report.ops.content import Content
    from pipeprof.report.ops.question import Question


def check_matched(run: Run, question: Question, content: Content) -> None:
    """Raise UsageError when the table is empty because a filter matches no operator of the run."""
    filters = question.types or question.opr_name or question.input_dtype
    if not filters or not content.parts or any(part.count for part in content.parts):
        return
    with Engine.open(run, lazily=True) as engine:
        rows = engine.rows(INFOS)
    types = sorted({row["type"] for row in rows if row["type"]})
    dtypes = sorted({str(dtype) for row in rows for dtype in listed(row["in_types"]) if dtype})
    pattern = question.pattern()
    wrong = next((name for name in question.types if name not in types), None)
    if rows and wrong is not None:
        raise UsageError(f"no operator has the type `{wrong}`", did_you_mean(wrong, types, "see --group-by type"))
    if rows and pattern is not None and not any(pattern.match(row["name"] or "") for row in rows):
        message = f"no operator has a name that begins with a match of `{question.opr_name}`"
        raise UsageError(message, "to match inside the name, write .* in front")
    if rows and question.input_dtype is not None and question.input_dtype not in dtypes:
        message = f"no operator has an input of the data type `{question.input_dtype}`"
        raise UsageError(message, did_you_mean(question.input_dtype, dtypes, "the source names no data types"))
