"""The verb `memory`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pipeprof.cli.format_option import format_option
from pipeprof.cli.told import opened

_ALL = 1 << 40


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("-t", "--top", type=click.IntRange(0), default=10, show_default=True, help="Operators; 0 shows all.")
@format_option("json")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to a file instead of stdout.")
@click.option("--svg", type=click.Path(path_type=Path), help="Draw the lifetimes of blocks: time x address.")
@click.option("--rank", type=click.IntRange(0), metavar="N", help="Rank that --svg draws.  [default: the first]")
@click.option(
    "--blocks",
    type=click.IntRange(0),
    default=2000,
    show_default=True,
    help="Largest blocks in --svg and JSON; 0: all.",
)
@click.option("--skip-steps", type=click.IntRange(0), default=0, help="Training steps that growth leaves out.")
def memory(run: Path, form: str, output: Path | None, svg: Path | None, rank: int | None, **asked: Any) -> None:
    """Memory over time, its peak and what was alive then, operators, and whether it grows from step to step.

    \b
      pipeprof memory RUN
      pipeprof memory RUN --svg lifetimes.svg
      pipeprof memory RUN --format json | jq .growth
    """  # noqa: D301
    from pipeprof.report import json_text, memory_text
    from pipeprof.report import memory as room
    from pipeprof.report.output import write_text

    content = room.build(
        opened(run), top=asked["top"] or _ALL, lifetimes=asked["blocks"] or _ALL, skip_steps=asked["skip_steps"]
    )
    if svg is not None:
        write_text(_chart(content, rank), svg)
    if form == "terminal" and output is None:
        memory_text.show(content)
        return
    write_text(json_text.text(content) if form == "json" else memory_text.text(content), output)


def _chart(content: dict[str, Any], rank: int | None) -> str:
    from pipeprof.report.memory_svg import svg as chart

    rows = [row for row in content["lifetimes"] if rank in (None, row["rank"])]
    first = min(((row["rep"], row["rank"]) for row in rows), default=(0, rank or 0))
    chosen = [row for row in rows if (row["rep"], row["rank"]) == first]
    peak = next((row for row in content["peaks"] if (row["rep"], row["rank"]) == first), None)
    return chart(chosen, peak, f"repetition {first[0]}, rank {first[1]}")
