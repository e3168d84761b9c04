"""The verb `ops`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from pipeprof.cli.messages import opened, say
from pipeprof.cli.options import FORMS, format_option, report_file, run_argument
from pipeprof.errors import UsageError

_CONTEXT = {"ignore_unknown_options": False}


class _Command(click.Command):
    """Takes `--group-by stack 3`, too: the number of frames as a word of its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for at, (word, depth) in enumerate(pairwise(args)):
            asked = word == "--group-by=stack" or args[max(at - 1, 0) : at + 1] == ["--group-by", "stack"]
            if asked and depth.isdecimal():
                return super().parse_args(ctx, [*args[:at], f"{word} {depth}", *args[at + 2 :]])
        return super().parse_args(ctx, args)


@click.command(cls=_Command, context_settings=_CONTEXT)
@run_argument("RUN|FILE")
@click.option(
    "-t",
    "--top",
    type=int,
    metavar="N",
    help="Rows to show; 0: all; -N: all but the last N.  [default: 20; of a MegEngine profile 3, as in its own tool]",
)
@click.option("--row-limit", type=int, metavar="N", help="Same as --top, -1: all; prints groups as torch does.")
@click.option(
    "--group-by",
    metavar="name|shape|stack [N]|type|scope|phase",
    help="What executions are grouped by.  [default: type; name for a trace of another profiler]",
)
@click.option("--step", type=click.IntRange(0), metavar="N", help="Only executions of the Nth training step, from 0.")
@click.option("--rep", type=click.IntRange(0), metavar="N", help="Only repetition N, from 0.  [default: all, added up]")
@click.option("--stack-depth", type=click.IntRange(1), metavar="N", help="Frames of --group-by stack.  [default: 5]")
@click.option(
    "--python-functions/--no-python-functions",
    default=None,
    help="Show calls of Python functions in a PyTorch trace, or leave them out.  [default: as the torch that wrote it]",
)
@click.option(
    "--order-by",
    "--sort-by",
    metavar="COL",
    help="Sort by a column, such as count or max_ns, largest first; +COL: smallest first.  [default: own time]",
)
@click.option(
    "--opr-name", metavar="REGEX", help="Only operators whose name matches this regular expression, from its start."
)
@click.option("--search", metavar="WORD", help="Only operators whose name or type contains this, ignoring case.")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only operators of exactly this type; may be repeated."
)
@click.option(
    "--exclude-type",
    "exclude_types",
    multiple=True,
    metavar="TYPE",
    help="No operators of exactly this type; may be repeated.",
)
@click.option("--input-dtype", metavar="TYPE", help="Only operators with an input of exactly this data type.")
@click.option("--aggregate-by", type=click.Choice(["type"]), help="Combine operators of one type; needs --aggregate.")
@click.option("--aggregate", type=click.Choice(["max", "min", "sum", "mean"]), help="How operators are combined.")
@click.option(
    "--top-end-key",
    type=click.Choice(["end", "kern", "total", "wait", "exec"]),
    default="end",
    show_default=True,
    help="Time to use: end or total, start to end; kern or wait, until the kernel starts; exec, from then on.",
)
@click.option("--min-time", type=float, metavar="S", help="Only operators of at least this many seconds.")
@click.option("--max-time", type=float, metavar="S", help="Only operators of at most this many seconds.")
@click.option("--copy-time", is_flag=True, help="Include the time of operators of type Copy.")
@click.option("--show-host", is_flag=True, help="Show the operators of the host as well.")
@click.option("--print-only", type=click.Choice(["summary", "device", "host"]), help="Print only this part.")
@click.option("--dump-only-opr", is_flag=True, help="Print name, type and id, one operator per line.")
@format_option(*FORMS, "csv", "parquet")
@report_file()
def ops(run: Path, form: str, output: Path | None, row_limit: int | None, group_by: str | None, **asked: Any) -> None:
    """Operator table of a run, or of another program's profile: filtered, ordered, added up or grouped.

    \b
      pipeprof ops RUN
      pipeprof ops RUN --group-by name --top 50 --order-by count
      pipeprof ops profile.json -t 5 --opr-name "conv.*" --order-by FLOPS
      pipeprof ops profile.json --aggregate-by type --aggregate sum
      pipeprof ops RUN --step 12 --group-by name
      pipeprof ops RUN --search conv --exclude-type Variable
      pipeprof ops RUN --format csv > ops.csv
    """  # noqa: D301
    from pipeprof.record.text import printable
    from pipeprof.report.ops import show
    from pipeprof.report.ops.question import Question, is_torchs

    if row_limit is not None and asked["top"] is not None:
        raise UsageError("--top and --row-limit both say how many rows are shown", "give one of them")
    if row_limit is not None:
        asked["top"] = max(row_limit, 0)
    asked["torch"] = row_limit is not None or is_torchs(asked["order_by"] or "")
    depth = asked.pop("stack_depth")
    if depth is not None and (group_by or "").split()[:1] != ["stack"]:
        raise UsageError("--stack-depth is for stacks", f"add --group-by stack: --group-by stack --stack-depth {depth}")
    question = Question(**asked) if depth is None else Question(**asked, stack_depth=depth)
    if group_by is not None:
        question = question.grouped(group_by)
    question.check()
    show.show(_opened(run), question, form, output, printable(str(run)))


def _opened(path: Path) -> Any:
    """The run, or the run that a foreign file is read into (kept, so that the next question is fast)."""
    if not path.is_file():
        return opened(path)
    from pipeprof.read.imported import imported
    from pipeprof.report.output import status_line

    with status_line("pipeprof: reading", quiet=False) as progress:
        run = imported(path, progress)
    for text in dict.fromkeys(warning.message for warning in run.manifest.warnings):
        say(f"note: {text}")
    return run
