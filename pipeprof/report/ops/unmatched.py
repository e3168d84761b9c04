"""Why a table of operators is empty: filters that no operator of the run passes, alone or together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeprof.errors import did_you_mean
from pipeprof.query.engine import Engine
from pipeprof.report.ops.single import INFOS, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeprof.record.run import Run
    from pipeprof.report.ops.content import Content
    from pipeprof.report.ops.question import Question


def why_empty(run: Run, question: Question, content: Content) -> list[str]:
    """What is asked for that no operator has, with near names; nothing when the table has rows.

    No error: profile_analyze prints its summary in this case, too.
    """
    filters = _filters(question)
    if not filters or not content.parts or any(part.count for part in content.parts):
        return []
    with Engine.open(run, lazily=True) as engine:
        rows = engine.rows(INFOS)
    return [*_names(question, rows), *_types(question, rows), *_dtypes(question, rows)] or [
        f"no operator that was timed passes {' and '.join(filters)}"
    ]


def _filters(question: Question) -> list[str]:
    """The filters as they are written on the command line."""
    named = [
        ("--opr-name", question.opr_name),
        ("--search", question.search),
        *(("--type", name) for name in question.types),
        *(("--exclude-type", name) for name in question.exclude_types),
        ("--input-dtype", question.input_dtype),
        ("--min-time", question.min_time),
        ("--max-time", question.max_time),
    ]
    return [f"{option} {value}" for option, value in named if value not in (None, "")]


def _names(question: Question, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    names = sorted({row["name"] for row in rows if row["name"]})
    pattern = question.pattern()
    if pattern is not None and not any(pattern.match(name) for name in names):
        asked = question.opr_name or ""
        yield _unknown(f"--opr-name {asked}", asked, names, "matches the beginning of no operator's name")
    if question.search:
        anywhere = replace(question, opr_name=None, types=(), exclude_types=()).matcher()
        if not any(anywhere(row["name"], row["type"]) for row in rows):
            types = {row["type"] for row in rows if row["type"]}
            words = sorted({*names, *types})
            yield _unknown(f"--search {question.search}", question.search, words, "is in no operator's name or type")


def _types(question: Question, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    types = sorted({row["type"] for row in rows if row["type"]})
    for name in question.types:
        if name not in types:
            yield _unknown(f"--type {name}", name, types)
    if types and not {row["type"] for row in rows} - set(question.exclude_types):
        yield f"--exclude-type leaves out all {len(types)} types"


def _dtypes(question: Question, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    dtype = question.input_dtype
    dtypes = sorted({str(dtype) for row in rows for dtype in listed(row["in_types"]) if dtype})
    if dtype is not None and dtype not in dtypes:
        yield _unknown(f"--input-dtype {dtype}", dtype, dtypes)


def _unknown(option: str, name: str, words: list[str], what: str = "matches no operator") -> str:
    hint = did_you_mean(name, words, f"there are {len(words)} others")
    return f"{option} {what}" + (f"; {hint}" if hint else "")
