"""What several verbs have in common: opening a run, and what is said on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from pipeprof import escape
from pipeprof.errors import RunError
from pipeprof.report.output import has_colours

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.record.run import Run


def opened(path: Path) -> Run:
    """The run in a folder, recovered first when its recording was cut off.

    Raises RunError; of a folder with another profiler's files the hint is the import.
    """
    from pipeprof.record.checksums import refuse_changed
    from pipeprof.record.run import load

    try:
        run = load(path)
        if run.is_settled():
            refuse_changed(run)
            return run  # nothing to recover; what could recover it is slow to import
        from pipeprof.read.spool.finish import open_run

        with progress_line("pipeprof: recovering the run", quiet=False) as progress:
            return open_run(path, progress=progress)
    except RunError as error:
        from pipeprof.read.foreign import import_hint

        raise import_hint(error, path) from error


def progress_line(title: str, *, quiet: bool) -> Any:
    """A status line on stderr while something takes long; as a context it gives the callable that updates it."""
    from pipeprof.report.output import status_line

    return status_line(title, quiet=quiet)


def sum_up(run: Run, *, quiet: bool) -> None:
    """Write what the report of a new run asks, and its rollup, into it; tell three lines about it.

    `pipeprof runs` and `fleet` will know it without asking its tables.
    """
    from pipeprof.report.build import keep_answers
    from pipeprof.report.overview import overview
    from pipeprof.report.rollup import keep
    from pipeprof.report.summary import three_lines

    for line in () if quiet else three_lines(run):
        say(line)
    keep_answers(run)
    if not keep(run) and not quiet:
        overview(run)


def say(line: str) -> None:
    """A line on stderr."""
    click.echo(escape.line(line), err=True)


def tell_error(message: str, hint: str) -> None:
    """`error:` and `hint:` on stderr."""
    styled = click.style("error:", fg="red", bold=True) if sys.stderr.isatty() and has_colours() else "error:"
    click.echo(f"{styled} {escape.terminal(message)}", err=True)
    if hint:
        click.echo(f"hint: {escape.terminal(hint)}", err=True)


def say_named(line: str) -> None:
    """A line on stderr, with our name in front: the command's own output is around it."""
    say(f"pipeprof: {line}")
