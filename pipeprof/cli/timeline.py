"""The verbs `timeline` and `stacks`."""

from __future__ import annotations

from pathlib import Path

import click

from pipeprof.cli.messages import opened, say
from pipeprof.cli.options import RUN, STDOUT, LocalPath, keeps_files
from pipeprof.errors import UsageError
from pipeprof.units import format_count


@click.command()
@RUN
@click.option(
    "-o", "--output", metavar="FILE", type=LocalPath(), default=Path("trace.json.gz"), show_default=True,
    help="File of the trace; compressed when it ends in .gz.",
)  # fmt: skip
@click.option("--steps", metavar="A:B", help="Only steps from A to B, B not included.")
@click.option("--ranks", metavar="LIST", help="Only these ranks, for example 0,2,4-7.")
@click.option("--rep", type=click.IntRange(0), metavar="N", help="Only this repetition.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@keeps_files("output")
def timeline(run: Path, output: Path, steps: str | None, ranks: str | None, rep: int | None, *, quiet: bool) -> None:
    """Write all events of all ranks, on one clock, as a trace for ui.perfetto.dev or chrome://tracing.

    \b
      pipeprof timeline RUN
      pipeprof timeline RUN -o trace.json.gz --steps 100:110 --ranks 0,1
    """  # noqa: D301
    from pipeprof.report.output import status_line
    from pipeprof.report.timeline.clock import parse_ranks, parse_steps
    from pipeprof.report.timeline.trace import Choice, write

    if output == STDOUT:
        raise UsageError("a trace is not written to standard output", "give the name of a file with -o")
    choice = Choice(
        steps=None if steps is None else parse_steps(steps),
        ranks=None if ranks is None else parse_ranks(ranks),
        rep=rep,
    )
    opened_run = opened(run)
    with status_line("pipeprof: timeline", quiet=quiet) as progress:
        written = write(opened_run, output, choice, progress)
    if quiet:
        return
    of = format_count(written.ranks, "rank")
    if written.reps > 1:
        of += f" ({written.reps} repetitions)"
    say(f"{written.events:,} events of {of} in `{output}`")
    if written.left_out:
        say(f"note: left out {format_count(written.left_out, 'row')} without a time or a duration")


@click.command()
@RUN
@click.option(
    "-o", "--output", metavar="FILE", type=LocalPath(), required=True,
    help="File: *.json for speedscope, any other name for folded text; - is standard output.",
)  # fmt: skip
@click.option(
    "--by", "way", type=click.Choice(["stack", "call", "scope"]),
    help="By source lines, operators that call operators, or modules.  [default: the first that the run has]",
)  # fmt: skip
@click.option(
    "--weight", type=click.Choice(["host", "device", "count", "memory"]), default="host", show_default=True,
    help="What counts: own time on the host, time on the device, executions, or bytes allocated.",
)  # fmt: skip
@click.option("--depth", type=click.IntRange(1), metavar="N", help="Keep only the N innermost source lines of a stack.")
@click.option("--steps", metavar="A:B", help="Only steps from A to B, B not included.")
@keeps_files("output")
def stacks(run: Path, output: Path, way: str | None, weight: str, depth: int | None, steps: str | None) -> None:
    """Write the call stacks of operators for flame graphs.

    \b
      pipeprof stacks RUN -o run.folded
      pipeprof stacks RUN -o run.speedscope.json --weight device
      pipeprof stacks RUN -o run.folded --by stack --depth 5
    """  # noqa: D301
    from pipeprof.report.output import write_text
    from pipeprof.report.stacks import folded as room
    from pipeprof.report.timeline.clock import parse_steps

    question = room.Question(way, weight, depth, None if steps is None else parse_steps(steps))
    taken, profiles = room.stacks(opened(run), question)
    name = str(run)
    text = room.speedscope(profiles, name, weight) if output.name.endswith(".json") else room.folded(profiles)
    write_text(text, None if output == STDOUT else output)
    count = sum(len(profile) for profile in profiles.values())
    say(f"{format_count(count, 'stack')} by {taken}" + ("" if output == STDOUT else f" in `{output}`"))
