"""Prints an operator table, or writes it to a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from pipeprof import escape
from pipeprof.errors import UsageError
from pipeprof.report.ops.answer import answer
from pipeprof.report.ops.unmatched import why_empty
from pipeprof.report.output import write_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeprof.record.run import Run
    from pipeprof.report.ops.content import Content
    from pipeprof.report.ops.question import Question

FORMATS = ("terminal", "json", "csv", "markdown", "parquet")


def show(run: Run, question: Question, form: str, output: Path | None) -> None:
    """Print or write the operator table of a run in one of FORMATS."""
    if form == "parquet" and output is None:
        raise UsageError("Parquet is no text for a terminal", "give a file: -o ops.parquet")
    content = answer(run, question)
    for note in [*content.notes, *why_empty(run, question, content)]:
        click.echo(escape.line(f"note: {note}"), err=True)
    if question.dump_only_opr:
        write_text(_names(content), output)
    elif form == "parquet" and output is not None:
        _parquet(content, output)
    elif form == "terminal" and not question.confluence:
        _terminal(run, content, output)
    else:
        write_text(_text(content, "wiki" if form == "terminal" else form), output)


def _text(content: Content, form: str) -> str:
    from pipeprof.report.ops import texts  # noqa: PLC0415 - slow to import; a terminal does without

    forms: dict[str, Callable[[Content], str]] = {
        "json": texts.json_text, "csv": texts.csv_text, "markdown": texts.markdown_text, "wiki": texts.wiki_text,
    }  # fmt: skip
    return forms[form](content)


def _names(content: Content) -> str:
    """`name type id` of each row; `type count` when they are added up."""
    names = ("type", "count") if content.aggregated else ("name", "type", "opr_id")
    rows = [row for part in content.parts for row in part.rows]
    return "".join(escape.line(" ".join(str(row[name]) for name in names)) + "\n" for row in rows)


def _terminal(run: Run, content: Content, output: Path | None) -> None:
    if not content.total.get("count"):
        why = next((item.why for item in run.manifest.not_measured if item.what == "op"), "no operator was recorded")
        write_text(escape.line(f"no operators: {why}") + "\n", output)
        return
    from pipeprof.report.ops import terminal  # noqa: PLC0415 - slow to import; other formats do without
    from pipeprof.report.screen import plain_text, print_drawn  # noqa: PLC0415

    if output is None:
        print_drawn(lambda console: terminal.show(console, content))
    else:
        write_text(plain_text(lambda console: terminal.show(console, content)), output)


def _parquet(content: Content, output: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import; other formats do without

    from pipeprof.report.ops import texts  # noqa: PLC0415

    temporary = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        pq.write_table(texts.arrow(content), temporary, compression="zstd")
        temporary.replace(output)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(f"cannot write `{output}`: {error.strerror}", "choose another file with -o") from error
