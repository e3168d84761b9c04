"""The verb `top`."""

from __future__ import annotations

import contextlib
import sys
from itertools import islice
from pathlib import Path

import click

from pipeprof.cli.messages import say
from pipeprof.cli.options import RUN, LocalPath, format_option, keeps_files, none_for_stdout
from pipeprof.errors import UsageError


@click.command()
@RUN
@click.option("--once", is_flag=True, help="Print once, then end.")
@click.option(
    "--listen",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve the numbers to Prometheus at 127.0.0.1:PORT/metrics instead of showing them; 0 takes any free port.",
)
@click.option(
    "-o",
    "--output",
    type=LocalPath(),
    metavar="FILE",
    callback=none_for_stdout,
    help="Keep FILE up to date with what it shows, for `watch cat FILE`.",
)
@keeps_files("output")
@format_option("json")
def top(run: Path, form: str, listen: int | None, output: Path | None, *, once: bool) -> None:
    """Watch a training while it runs: its speed, its queues, CPU, memory, and the verdict so far.

    \b
      pipeprof top RUN
      pipeprof top RUN --once
      pipeprof top RUN --format json | jq --unbuffered '.ranks[].pace'
      pipeprof top RUN --listen 9417
      pipeprof top RUN -o now.txt

    Start it in a second terminal. It refreshes once a second, less often if that takes long, and ends with the
    recording; Ctrl-C ends only the view. With --format json each refresh is one line. The remaining time is shown if
    `Model.train` was given the number of epochs. The training and its run are only read. Whatever it shows, the exit
    code is 0.
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    from pipeprof.record.run import load
    from pipeprof.report import top as room
    from pipeprof.report.output import write_text

    if listen is not None and output is not None:
        raise UsageError("--listen shows nothing that could be written to a file", "leave -o or --listen out")
    looks = islice(room.Watch(load(run)).looks(), 1 if once else None)
    if listen is not None:
        from pipeprof.report.prometheus import serve

        serve(looks, listen, lambda address: say(f"pipeprof: metrics at {address}; Ctrl-C ends them"))
        return
    if output is None and form == "terminal" and not once and sys.stdout.isatty():
        room.watch(looks)
        return
    with contextlib.suppress(KeyboardInterrupt):
        for content in looks:
            if output is not None:
                write_text(room.text(content, form), output)
                continue
            room.show(content, form)
            sys.stdout.flush()
