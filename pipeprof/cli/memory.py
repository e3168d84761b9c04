"""The verb `memory`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pipeprof.cli.messages import opened
from pipeprof.cli.options import FORMS, RUN, STDOUT, LocalPath, format_option, report_file
from pipeprof.errors import UsageError

_ALL = 1 << 40
_BLOCKS = 2000


@click.command()
@RUN
@click.option(
    "-t",
    "--top",
    metavar="N",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="At most N rows of a table; 0: all.",
)
@format_option(*FORMS)
@report_file("svg")
@click.option(
    "--svg",
    metavar="FILE",
    type=LocalPath(),
    help="Draw the lifetime of each block of memory into this file: time to the right, address upwards.",
)
@click.option("--rank", type=click.IntRange(0), metavar="N", help="Rank to draw with --svg.  [default: the first]")
@click.option(
    "--blocks",
    type=click.IntRange(0),
    metavar="N",
    help="At most N blocks in --svg and JSON, largest first; 0: all.  [default: 2000]",
)
@click.option(
    "--rep",
    type=click.IntRange(0),
    metavar="N",
    help="Show repetition N, from 0.  [default: of several the least disturbed]",
)
@click.option(
    "--skip-steps",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Leave out the first N training steps when growth is judged.",
)
def memory(run: Path, form: str, output: Path | None, svg: Path | None, rank: int | None, **asked: Any) -> None:
    """Memory over time: its peak, what was alive then, what each operator took, and whether it keeps growing.

    \b
      pipeprof memory RUN
      pipeprof memory RUN --svg lifetimes.svg
      pipeprof memory RUN --format json | jq .growth
    """  # noqa: D301
    from pipeprof.report import document
    from pipeprof.report.memory import content as room
    from pipeprof.report.memory import text as memory_text
    from pipeprof.report.memory.svg import chart_of
    from pipeprof.report.output import write_text
    from pipeprof.report.timeline.clock import check_stored

    if svg is None and rank is not None:
        raise UsageError("--rank chooses the rank that --svg draws, and there is no --svg", "add --svg lifetimes.svg")
    if svg is None and form != "json" and asked["blocks"] is not None:
        raise UsageError("--blocks is for --svg and JSON", "add --svg lifetimes.svg, or --format json")
    if svg == STDOUT:
        raise UsageError("a chart is not written to standard output", "give the name of a file with --svg")
    if svg is not None and svg == output:
        raise UsageError("-o and --svg name the same file", "give each its own")
    source = opened(run)
    blocks = _BLOCKS if asked["blocks"] is None else asked["blocks"] or _ALL
    content = room.build(
        source, top=asked["top"] or _ALL, lifetimes=blocks, skip_steps=asked["skip_steps"], rep=asked["rep"]
    )
    if svg is not None:
        check_stored("rank", () if rank is None else (rank,), room.ranks(source))
        write_text(chart_of(content, rank), svg)
    document.show(content, memory_text.document, form, output)
