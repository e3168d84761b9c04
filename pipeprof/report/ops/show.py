"""Prints an operator table, or writes it to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipeprof import escape
from pipeprof.errors import UsageError
from pipeprof.report import document, json_text
from pipeprof.report.ops import cells, sections, texts
from pipeprof.report.ops.answer import answer
from pipeprof.report.ops.unmatched import why_empty
from pipeprof.report.output import write_text, written_whole

if TYPE_CHECKING:
    from pathlib import Path

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
        write_text(texts.csv_text(content), output)
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
        pq.write_table(texts.arrow(content), temporary, compression="zstd")
