"""The verbs `report` and `sql`: what is in a run."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pipeprof.cli.format_option import format_option
from pipeprof.cli.told import RUN, opened


@click.command()
@RUN
@format_option("html", "markdown", "json")
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Rows of the longest tables.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to a file instead of stdout.")
def report(run: Path, form: str, top: int, output: Path | None) -> None:
    """Step phases, data pipeline, operators, memory, and what to change.

    \b
      pipeprof report RUN
      pipeprof report RUN --format html -o report.html
      pipeprof report RUN --format markdown -o report.md
      pipeprof report RUN --format json | jq .diagnosis
    """  # noqa: D301
    from pipeprof.report import build, html, json_text, markdown, terminal
    from pipeprof.report.output import write_text

    content = build.build(opened(run), top=top)
    if form == "terminal" and output is None:
        terminal.show(content)
        return
    forms = {"terminal": terminal.text, "html": html.text, "markdown": markdown.text, "json": json_text.text}
    text = forms[form](content)
    write_text(text, output)


@click.command()
@RUN
@click.argument("query", required=False)
@format_option("csv", "json")
def sql(run: Path, query: str | None, form: str) -> None:
    """Ask the tables of a run in SQL (DuckDB, read-only). Without a query: the tables and views there are.

    \b
      pipeprof sql RUN
      pipeprof sql RUN "SELECT kind, count(*) FROM step GROUP BY kind"
      echo "SELECT * FROM stage" | pipeprof sql RUN - --format csv
    """  # noqa: D301
    from pipeprof.report import rows

    text = sys.stdin.read() if query == "-" else query
    rows.show(opened(run), text, form)
