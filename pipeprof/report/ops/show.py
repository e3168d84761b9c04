"""Prints an operator table, or writes it to a file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from pipeprof import escape
from pipeprof.errors import UsageError, did_you_mean
from pipeprof.query.engine import Engine
from pipeprof.report import document, json_text
from pipeprof.report.ops import content as cells
from pipeprof.report.ops import sections
from pipeprof.report.ops.answer import answer
from pipeprof.report.ops.content import with_integers
from pipeprof.report.ops.single import INFOS, listed
from pipeprof.report.output import write_text, written_whole
from pipeprof.report.rows import csv_text as rows_as_csv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pipeprof.record.run import Run
    from pipeprof.report.ops.content import Content
    from pipeprof.report.ops.question import Question


def show(run: Run, question: Question, form: str, output: Path | None, name: str) -> None:
    """Print or write the operator table of a run, which the user calls `name`, in one of the formats of the verb."""
    if form == "parquet" and output is None:
        raise UsageError("Parquet is not text for a terminal", "give a file: -o ops.parquet")
    if question.dump_only_opr and form != "terminal":
        raise UsageError(
            f"--dump-only-opr is a form of text of its own, not {form}", "leave --dump-only-opr or --format out"
        )
    content = answer(run, question)
    for note in [*content.notes, *why_empty(run, question, content)]:
        click.echo(escape.line(f"note: {note}"), err=True)
    if question.dump_only_opr:
        write_text(_names(content), output)
    elif form == "parquet" and output is not None:
        _parquet(content, output)
    elif form == "json":
        write_text(json_text.text(content.document()), output)
    elif form == "csv":
        write_text(csv_text(content), output)
    else:
        why = next((item.why for item in run.manifest.not_measured if item.what == "op"), "no operator was recorded")
        document.show({}, lambda _: sections.document(content, name, why, torch=question.torch), form, output)


def _names(content: Content) -> str:
    """`name type id` of each row; `type count` when they are added up."""
    rows = [row for part in content.parts for row in part.rows]
    named: list[tuple[Any, ...]]
    if content.aggregated:
        named = [(row["type"], row["count"]) for row in rows]
    else:
        named = [(row["name"], row["type"], row["op_id"] if row["opr_id"] is None else row["opr_id"]) for row in rows]
    lines = (" ".join(cells.NOT_KNOWN if word is None else str(word) for word in words) for words in named)
    return "".join(f"{escape.line(text)}\n" for text in lines)


def _parquet(content: Content, output: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import; other formats do without

    with written_whole(output) as temporary:
        pq.write_table(arrow(content), temporary, compression="zstd")


_HIDDEN = ("side_ns", "all_ns")


def csv_text(content: Content) -> str:
    """One line per row; of all parts, one below the other, told apart by the column `side`."""
    rows = _flat(content)
    return rows_as_csv(_columns(rows), rows)


def arrow(content: Content) -> pa.Table:
    """The rows as an Arrow table."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import; texts do without

    rows = _flat(content)
    return pa.table({name: _column([row.get(name) for row in rows]) for name in _columns(rows)})


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _column(values: list[Any]) -> pa.Array:
    import pyarrow as pa  # noqa: PLC0415

    if any(isinstance(value, float) for value in values):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array(values)


def _flat(content: Content) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in with_integers(row).items() if name not in _HIDDEN}
        for part in content.parts
        for row in part.rows
    ]


def why_empty(run: Run, question: Question, content: Content) -> list[str]:
    """What is asked for that no operator has, with near names; nothing when the table has rows.

    No error: profile_analyze prints its summary in this case, too.
    """
    filters = _filters(question)
    if not filters or not content.parts or any(part.count for part in content.parts):
        return []
    with Engine.open(run, lazily=True) as engine:
        rows = engine.rows(INFOS)
    return [*_chosen_names(question, rows), *_types(question, rows), *_dtypes(question, rows)] or [
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


def _chosen_names(question: Question, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
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
