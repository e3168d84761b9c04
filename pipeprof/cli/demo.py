"""The verb `demo`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pipeprof.cli.options import folder_option


@click.command()
@folder_option("folder", "Folder for the two runs.", Path("pipeprof-demo"))
@click.option(
    "--seconds",
    metavar="S",
    type=click.IntRange(10),
    default=50,
    show_default=True,
    help="Approximate time limit in seconds.",
)
def demo(folder: Path, seconds: int) -> None:  # fmt: skip
    """Profile a small real training with a planted bottleneck, name it, fix it, and confirm the fix.

    \b
      pipeprof demo
    """  # noqa: D301
    from pipeprof.experiment.demo import run_demo

    sys.exit(run_demo(folder, seconds))
