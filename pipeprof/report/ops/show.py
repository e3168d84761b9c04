"""Prints an operator table, or writes it to a file."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click
import pyarrow.parquet as pq
from rich.console import Console

from pipeprof.errors import UsageError
from pipeprof.query.engine import Engine
from pipeprof.report.ops import groups, single, terminal, texts
from pipeprof.report.output import write_text
from pipeprof.report.terminal import PLAIN_WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeprof.record.run import Run
    from pipeprof.report.ops.content import Content
    from pipeprof.report.ops.question import Question

TRACES = ("import:kineto", "import:megengine")
FORMATS = ("terminal", "json", "csv", "markdown", "parquet")
_TEXTS: dict[str, Callable[[Content], str]] = {
    "json": texts.json_text, "csv": texts.csv_text, "markdown": texts.markdown_text, "wiki": texts.wiki_text,
}  # fmt: skip


def answer(run: Run, question: Question) -> Content:
    """The operator table of a run. Raises UsageError for a question that cannot be answered."""
    question.check()
    if question.top is None:
        question = replace(question, top=groups.usual_top(run, question))
    with Engine.open(run) as engine:
        if groups.is_single(run, question):
            return single.build(engine, question)
        return groups.build(engine, question, training=not run.manifest.source.startswith(TRACES))


def show(run: Run, question: Question, form: str, output: Path | None) -> None:
    """Print or write the operator table of a run in one of FORMATS."""
    if form == "parquet" and output is None:
        raise UsageError("Parquet is no text for a terminal", "give a file: -o ops.parquet")
    content = answer(run, question)
    for note in content.notes:
        click.echo(f"note: {note}", err=True)
    if question.dump_only_opr:
        write_text(_names(content), output)
    elif form == "parquet" and output is not None:
        _parquet(content, output)
    elif form == "terminal" and not question.confluence:
        _terminal(run, content, output)
    else:
        write_text(_TEXTS["wiki" if form == "terminal" else form](content), output)


def _names(content: Content) -> str:
    """`name type id` of each row; `type count` when they are added up."""
    names = ("type", "count") if content.aggregated else ("name", "type", "opr_id")
    rows = [row for part in content.parts for row in part.rows]
    return "".join(" ".join(str(row[name]) for name in names) + "\n" for row in rows)


def _terminal(run: Run, content: Content, output: Path | None) -> None:
    if not content.total.get("count"):
        why = next((item.why for item in run.manifest.not_measured if item.what == "op"), "no operator was recorded")
        write_text(f"no operators: {why}\n", output)
        return
    if output is None:
        terminal.show(Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False), content)
        return
    buffer = io.StringIO()
    terminal.show(Console(file=buffer, width=PLAIN_WIDTH, highlight=False, no_color=True), content)
    write_text(buffer.getvalue(), output)


def _parquet(content: Content, output: Path) -> None:
    temporary = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        pq.write_table(texts.arrow(content), temporary, compression="zstd")
        temporary.replace(output)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(f"cannot write `{output}`: {error.strerror}", "choose another file with -o") from error
