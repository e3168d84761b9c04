"""The verb `bisect`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import click

from pipeprof.cli.messages import say_named
from pipeprof.cli.options import COMMAND, FORMS, budget_option, folder_option, format_option, redact_option
from pipeprof.cli.streams import StdoutClosed


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("good")
@click.argument("bad")
@click.option(
    "--metric", default="step_time_median", show_default=True, metavar="NAME",
    help="The metric of `pipeprof compare` that became larger.",
)  # fmt: skip
@budget_option("Time limit for all runs")
@click.option(
    "--most-runs", metavar="N", type=click.IntRange(6), default=150, show_default=True,
    help="At most this many runs, not counting failed and discarded ones.",
)  # fmt: skip
@folder_option("folder", "Folder of the runs.  [default: pipeprof-bisect-HASH]")
@redact_option
@format_option(*FORMS)
@COMMAND
def bisect(
    good: str, bad: str, metric: str, budget: float | None, most_runs: int, folder: Path | None, form: str,
    command: tuple[str, ...],
) -> None:  # fmt: skip
    """Which commit made it slower? Always measures the most informative commit, until one is left.

    \b
      pipeprof bisect v1.2 HEAD -- python train.py
      pipeprof bisect v1.2 HEAD --budget 30m -- python train.py
      pipeprof bisect 3f2a91c main --metric peak_memory -- python train.py

    GOOD is an older commit of the same branch (first parents). Every run is a fresh process in a worktree of its
    commit; commits whose command fails are skipped. Because runs vary, each run updates a probability for every commit,
    and no single run rules one out. Repeat the command to continue after an interruption. Exit codes: 0 the commit was
    found, 3 there is no change or it could not be judged, 4 only a range is known, 5 the command failed at GOOD or BAD.
    """  # noqa: D301
    from pipeprof.experiment.bisect.search import BisectWish, run_bisect
    from pipeprof.report import bisect_text, document

    content = run_bisect(BisectWish(good, bad, command, metric, budget, most_runs, folder), say_named)
    with contextlib.suppress(StdoutClosed):
        document.show(content, bisect_text.document, form)
    sys.exit(content["exit_code"])
