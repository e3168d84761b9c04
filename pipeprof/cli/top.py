"""The verb `top`."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING

import click

from pipeprof.cli.format_option import format_option
from pipeprof.cli.run_argument import RUN

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@RUN
@click.option("--once", is_flag=True, help="Look once, then end.")
@format_option("json")
def top(run: Path, form: str, *, once: bool) -> None:
    """Watch a training while it runs: its pace, its queues, CPU, memory, and the verdict so far.

    \b
      pipeprof top RUN
      pipeprof top RUN --once
      pipeprof top RUN --format json | jq --unbuffered '.ranks[].pace'

    Start it in a second terminal. It looks once a second, less often where a look takes long, and ends with the
    recording; Ctrl-C ends only the view. With --format json each look is one line. The training and its run are
    only read. Exit code: 0.
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    from pipeprof.record.run import load
    from pipeprof.report import top as room

    looks = islice(room.Watch(load(run)).looks(), 1 if once else None)
    if form == "terminal" and not once and sys.stdout.isatty():
        room.watch(looks)
        return
    for content in looks:
        room.show(content, form)
        sys.stdout.flush()
