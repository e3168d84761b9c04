"""The verbs `report` and `sql`: what is in a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from pipeprof.cli.messages import opened, say
from pipeprof.cli.options import RUN, complete_runs, format_option, newest_here, report_file, run_place
from pipeprof.cli.streams import read_stdin
from pipeprof.errors import UsageError

_SQL = re.compile(  # what only reads, and what is refused with its reason
    r"\s*(?:\(|--|/\*|(?:select|with|from|describe|show|summarize|explain|values|pivot|unpivot|table|insert|update|delete|"
    r"create|drop|alter|copy|attach|pragma|set|call|load|install)\b\s*\S)",
    re.IGNORECASE,
)

SECTIONS = (
    "run",
    "diagnosis",
    "whole-run",
    "steps",
    "profiler-steps",
    "causes",
    "ranks",
    "stragglers",
    "pipeline",
    "queues",
    "storage",
    "operators",
    "communication",
    "cpu",
    "resources",
    "not-measured",
)  # of pipeprof.report.sections, whose import takes longer than `--help` may
OLD_SECTIONS = {"split": "profiler-steps", "across": "stragglers", "missing": "not-measured"}  # taken, but not shown


class SectionName(click.Choice[str]):
    """A name of SECTIONS, or what it was called before."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is now."""
        return super().convert(OLD_SECTIONS.get(value, value), param, ctx)


@click.command()
@RUN
@format_option("html", "markdown", "json")
@click.option(
    "--top", metavar="N", type=click.IntRange(1), default=10, show_default=True, help="At most N rows of a table."
)
@click.option("--full", is_flag=True, help="Everything: evidence, other programs' verdicts, all tables.")
@click.option(
    "--section",
    "names",
    type=SectionName(SECTIONS),
    metavar="NAME",
    multiple=True,
    help=f"Only this part; may be repeated: {', '.join(SECTIONS)}.",
)
@click.option(
    "--step", type=click.IntRange(0), metavar="N", help="Parts and operators of the Nth training step, counted from 0."
)
@report_file()
def report(
    run: Path, form: str, top: int, output: Path | None, *, full: bool, names: tuple[str, ...], step: int | None
) -> None:
    """What limits the training, why, and what to change; with --full all that was measured.

    HTML, Markdown and JSON hold everything.

    \b
      pipeprof report RUN
      pipeprof report RUN --full
      pipeprof report RUN -o report.txt
      pipeprof report RUN --section pipeline --section steps
      pipeprof report RUN --step 12
      pipeprof report RUN --format html -o report.html
      pipeprof report RUN --format markdown -o report.md
      pipeprof report RUN --format json | jq .diagnosis
    """  # noqa: D301
    from pipeprof.report import build, html, json_text, markdown, terminal
    from pipeprof.report.output import write_text

    if form != "terminal" and (full or names):
        given = "--full" if full else "--section"
        raise UsageError(f"{given} is for the terminal: {form} holds everything", f"leave {given} out")
    if full and names:
        raise UsageError("--full shows every section, --section only those that it names", "leave one of them out")
    source = opened(run)
    content = build.build(source, top=top, step=step)
    if form == "terminal":
        _tell_empty(content, names)
    if step is not None and not full:
        names = (*names, *(name for name in ("steps", "operators") if name not in names))
    if form == "terminal" and output is None:
        terminal.show(content, full=full, names=names)
        return
    if form == "terminal":
        write_text(terminal.text(content, full=not names, names=names), output)
        return
    if form == "html":
        write_text(html.of_run(source, content), output)
        return
    forms = {"markdown": markdown.text, "json": json_text.text}
    write_text(forms[form](content), output)


def _tell_empty(content: dict[str, Any], names: tuple[str, ...]) -> None:
    """A section that was asked for and has nothing to say is not shown; this says so."""
    from pipeprof.report.sections.of_run import chosen

    shown = {section.name for section in chosen(content, names)}
    for name in dict.fromkeys(names):
        if name not in shown:
            say(f"note: this run has nothing to show in the section `{name}`")


@click.command()
@click.argument("words", nargs=-1, metavar="[RUN] [SQL]", shell_complete=complete_runs)
@format_option("csv", "json")
def sql(words: tuple[str, ...], form: str) -> None:
    """Query the tables of a run in SQL (DuckDB, read-only). Without SQL, list its tables and views.

    \b
      pipeprof sql RUN
      pipeprof sql RUN "SELECT kind, count(*) FROM step GROUP BY kind"
      pipeprof sql "SELECT * FROM stage" --format csv
      echo "SELECT * FROM stage" | pipeprof sql RUN -

    Without RUN, the newest run of the current folder is used. Tables and their columns: docs/tables.md; views, and the
    queries behind the report: docs/queries.md.
    """  # noqa: D301
    from pipeprof.cli.hard_end import process_ends_late
    from pipeprof.report import rows

    run, query = _run_and_query(words)
    text = read_stdin() if query == "-" else query
    rows.show(opened(run), text, form, asking=process_ends_late())


def _run_and_query(words: tuple[str, ...]) -> tuple[Path, str | None]:
    """A word alone is SQL when it is `-`, or when it begins as SQL does and is no path."""
    if len(words) > 2:
        raise UsageError(f"expected RUN and SQL, found {len(words)} words", 'in quotes: pipeprof sql RUN "SELECT ..."')
    if len(words) == 1 and (words[0] == "-" or (_SQL.match(words[0]) and not Path(words[0]).exists())):
        return newest_here(), words[0]
    run, query = (*words, None, None)[:2]
    return newest_here() if run is None else run_place(run), query
