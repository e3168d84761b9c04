"""The verb `demo`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pipeprof.cli.local_path import LocalPath


@click.command()
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="FOLDER",
    type=LocalPath(),
    default=Path("pipeprof-demo"),
    show_default=True,
    help="Folder for the two runs.",
)
@click.option(
    "--seconds",
    metavar="S",
    type=click.IntRange(10),
    default=50,
    show_default=True,
    help="Seconds that it may take, about.",
)
def demo(folder: Path, seconds: int) -> None:  # fmt: skip
    """Profile a small real training with a planted bottleneck, name it, fix it, and confirm the fix.

    \b
      pipeprof demo
    """  # noqa: D301
    from pipeprof.experiment.demo import run_demo

    sys.exit(run_demo(folder, seconds))
