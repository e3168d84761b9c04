"""The verb `compare`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from pipeprof.cli.options import POLICY, complete_runs, format_option, report_file
from pipeprof.cli.streams import StdoutClosed

comparison_format = format_option("html", "markdown", "json", "junit")


@click.command()
@click.argument("base", type=str, shell_complete=complete_runs)
@click.argument("new", type=str, shell_complete=complete_runs)
@POLICY
@click.option(
    "--base-ref",
    metavar="REV",
    help="Git revision that judges the change: settings, and a BASE inside the repository, are read from it, whatever "
    "is checked out.",
)
@comparison_format
@click.option(
    "--allow-cross-machine",
    is_flag=True,
    help="Compare for information although machine or versions differ; the exit code is then 0, whatever is found.",
)
@report_file()
def compare(
    base: str, new: str, policy_file: Path | None, base_ref: str | None, form: str, output: Path | None, *,
    allow_cross_machine: bool,
) -> None:  # fmt: skip
    """Did this change make it slower? A verdict per metric, and why.

    \b
      pipeprof collect -o base --reps 8 -- python train.py
      pipeprof collect -o new --reps 8 -- python train.py   # after the change
      pipeprof compare base new
      pipeprof compare base new --format html -o compare.html
      pipeprof compare baselines/mnist new --format markdown
      pipeprof compare base/ new/   # folders of pytest-benchmark files
      pipeprof compare baselines/mnist new --base-ref main   # as main has it

    BASE and NEW are runs, baselines (a folder or a URL; ROOT/WORKLOAD is the one for this machine), or JSON files of
    pytest-benchmark; a folder of them has one repetition for each file. Exit codes: 0 nothing worse, 1 regressed,
    3 could not be judged, 4 inconclusive.
    """  # noqa: D301
    from pipeprof.experiment.compare import compare_places
    from pipeprof.report.compare.limits import with_limits

    content = compare_places(
        base, new, base_ref=base_ref, policy_file=policy_file, allow_cross_machine=allow_cross_machine
    )
    answer(with_limits(content, new), form, output)


def answer(content: dict[str, Any], form: str, output: Path | None = None) -> NoReturn:
    """Show a comparison and exit with its code, also when nobody reads it to the end (`| head`)."""
    with contextlib.suppress(StdoutClosed):
        show(content, form, output)
        sys.stdout.flush()
    sys.exit(content["exit_code"])


def show(content: dict[str, Any], form: str, output: Path | None = None) -> None:
    """Print a comparison in one of the formats, or write it to a file."""
    from pipeprof.report import document
    from pipeprof.report.compare import junit, sections
    from pipeprof.report.output import write_text

    if form in ("json", "terminal"):
        document.show(content, sections.document, form, output)
    else:
        write_text(junit.text(content) if form == "junit" else sections.text(content, form), output)
