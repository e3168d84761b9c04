"""The verb `fleet`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeprof.cli.messages import progress_line, say
from pipeprof.cli.options import RunPath, engine_option, format_option, report_file
from pipeprof.cli.streams import read_stdin
from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

TOP = 10


@click.command()
@click.argument("roots", metavar="FOLDER|URL...", nargs=-1, required=True, type=RunPath())
@click.option(
    "--sql", "query", metavar="SQL", help="Query the tables fleet_run and fleet_rank in SQL; - reads it from stdin."
)
@format_option("html", "markdown", "json", "csv")
@click.option("--top", metavar="N", type=click.IntRange(1), help=f"At most N rows of a table.  [default: {TOP}]")
@click.option("--fresh", is_flag=True, help="Read every run again, ignoring cached results.")
@engine_option
@report_file()
def fleet(
    roots: tuple[Path | str, ...],
    query: str | None,
    form: str,
    top: int | None,
    engine: str | None,
    output: Path | None,
    *,
    fresh: bool,
) -> None:
    """Across many runs: where the hours go, why, and which fix saves most.

    \b
      pipeprof fleet runs/
      pipeprof fleet team-a/ team-b/ --format html -o fleet.html
      pipeprof fleet s3://bucket/runs
      pipeprof fleet /shared/runs --engine tcp://head:8786
      pipeprof fleet runs/ --sql "SELECT run, verdict FROM fleet_run" --format csv

    Reads all runs in these folders and their subfolders, or below a URL of object storage (s3://, gs://, az://);
    damaged and running ones are listed. Results are cached, so that the next report is fast. Hours are rank-hours: one
    hour on eight accelerators is eight hours. The report only informs: the exit code is 0.
    """  # noqa: D301
    from pipeprof.cluster import connected
    from pipeprof.report import document
    from pipeprof.report.fleet import sections
    from pipeprof.report.fleet.content import content_of
    from pipeprof.report.fleet.gather import gather, once_each, root_of

    _refuse(query, form, top, output)
    unlisted: list[str] = []
    with progress_line("pipeprof: fleet", quiet=False) as progress, connected(engine):
        rows, twice = once_each(gather(roots, progress, fresh=fresh, unlisted=unlisted.append))
    if query is None:
        content = content_of(rows, [root_of(root).own for root in roots], top or TOP, twice, unlisted)
        document.show(content, sections.document, form, output)
        return
    for folder in unlisted:
        say(f"warning: cannot be listed: {folder}")
    _ask(rows, read_stdin() if query == "-" else query, form)


def _refuse(query: str | None, form: str, top: int | None, output: Path | None) -> None:
    if query is None and form == "csv":
        raise UsageError("csv is for --sql", "give --sql, or --format json for the whole report")
    if query is not None and form in ("html", "markdown"):
        raise UsageError(f"--sql prints rows, not {form}", "give --format csv or json")
    if query is not None and top is not None:
        raise UsageError("--sql prints all rows of its answer", "leave --top out, and write LIMIT into the SQL")
    if query is not None and output is not None:
        raise UsageError("--sql prints to stdout", "leave -o out, and send the output to a file")


def _ask(rows: pa.Table, text: str, form: str) -> None:
    from pipeprof.cli.hard_end import process_ends_late
    from pipeprof.query.engine import Engine
    from pipeprof.report.fleet.content import TABLE
    from pipeprof.report.rows import show_rows

    with Engine.of_tables({TABLE: rows}) as engine:
        with process_ends_late():
            answer = engine.sql(text)
        show_rows(answer, form)
