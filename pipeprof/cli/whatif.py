"""The verbs `whatif` and `headspace`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.messages import say
from pipeprof.cli.options import (
    COMMAND,
    FORMS,
    RUN,
    LocalPath,
    budget_option,
    complete_runs,
    folder_option,
    format_option,
    newest_here,
    redact_option,
)
from pipeprof.errors import UsageError
from pipeprof.experiment.pairs import LEAST_RUN
from pipeprof.record.run import MANIFEST
from pipeprof.verdict.speedup import MOST_PAIRS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeprof.experiment.headspace import Part
    from pipeprof.experiment.pairs import Plan

WHATIF_PAIRS, HEADSPACE_PAIRS = 3, 2


class _Command(click.Command):
    """Takes what stands behind `--` as the command, also when no RUN stands before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args and not ctx.resilient_parsing:  # which is how the shell completes a word
            before = args[: args.index("--")]
            explains = {"-h", "--help"} & set(before)
            if not explains and not isinstance(self.make_parser(ctx).parse_args(list(before))[0].get("run"), str):
                args = [*before, str(newest_here()), *args[len(before) :]]
        return super().parse_args(ctx, args)


def pair_options(least: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`--pairs`, `--max-pairs`, `--budget` and `--steps`: how often both sides are run, and how long."""
    options: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
        click.option(
            "--pairs",
            "least",
            type=click.IntRange(1),
            metavar="N",
            help=f"At least this many pairs of runs, with and without the change.  [default: {least}]",
        ),
        click.option(
            "--max-pairs",
            "most",
            type=click.IntRange(1),
            metavar="M",
            help=f"At most this many pairs; they are added until the answer is clear.  [default: {MOST_PAIRS}]",
        ),
        budget_option("Start no further pair that would not end within this time"),
        click.option(
            "--steps",
            type=click.IntRange(LEAST_RUN),
            metavar="N",
            help="End each run after N training steps, as if the script called sys.exit().  [default: all steps]",
        ),
    ]

    def add(verb: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            verb = option(verb)
        return verb

    return add


@click.command(cls=_Command, context_settings={"ignore_unknown_options": False})
@RUN
@click.option("--op", required=True, metavar="NAME|ID", help="The dataset operator: its number, name or type.")
@click.option(
    "--workers",
    type=click.IntRange(0),
    metavar="K",
    help="New num_parallel_workers of the operator; num_workers of a DataLoader.  [default: as it is]",
)
@click.option(
    "--prefetch",
    type=click.IntRange(1),
    metavar="P",
    help="New prefetch size of every operator: rows, or batches, in its queue; prefetch_factor of a DataLoader.",
)
@click.option(
    "--persistent/--no-persistent",
    default=None,
    help="Let the workers of a DataLoader live on from epoch to epoch (persistent_workers).  [default: as it is]",
)
@click.option(
    "--processes/--threads",
    default=None,
    help="Run the operator's Python code in processes or in threads.  [default: as it is]",
)
@click.option(
    "--cache",
    is_flag=True,
    default=None,
    help="Keep the rows behind the operator in memory, which the first epoch fills; steps count from the second on.",
)
@pair_options(WHATIF_PAIRS)
@folder_option("path", "New folder for the runs.  [default: pipeprof-whatif-TIME]")
@redact_option
@format_option(*FORMS)
@COMMAND
def whatif(
    run: Path, path: Path | None, form: str, least: int | None, most: int | None, budget: float | None,
    steps: int | None, command: tuple[str, ...], **wish: Any,
) -> None:  # fmt: skip
    """Predict what other settings of a dataset operator or a DataLoader would gain, then measure it.

    \b
      pipeprof whatif RUN --op mask_from_storage --workers 2
      pipeprof whatif RUN --op 3 --workers 4 --processes -- python train.py
      pipeprof whatif RUN --op GeneratorOp --prefetch 64 --max-pairs 16
      pipeprof whatif RUN --op rotate --workers 2 --budget 10m
      pipeprof whatif RUN --op Collate --workers 2 --persistent
      pipeprof whatif RUN --op decode --cache

    Runs the command (by default that of RUN) alternately without and with the new settings, until it is clear whether
    they are faster. Without a setting it tries the one that promises most of those that `tune` would try at this
    operator. The script needs no change, and only step times are recorded. Each stage of a DataLoader stands for all of
    it; where an epoch starts its workers anew, that is part of the time.
    """  # noqa: D301
    from pipeprof.collect.session import default_name
    from pipeprof.experiment import whatif as room
    from pipeprof.report import document, speedup_text

    folder = path or default_name("pipeprof-whatif-")
    plan = plan_of(least, most, budget, steps, WHATIF_PAIRS)
    content = room.run_whatif(run, room.Wish(**wish), command, plan, folder, say)
    document.show(content, speedup_text.whatif, form)


@click.command(context_settings={"ignore_unknown_options": False})
@click.option("--op", metavar="NAME|ID", help="Only this dataset operator costs nothing; its input still flows.")
@click.option("--up-to", metavar="NAME|ID", help="This operator and everything before it cost nothing.")
@click.option(
    "--run",
    metavar="RUN",
    shell_complete=complete_runs,
    type=LocalPath(),
    help="The recorded run that the operator's number refers to; its command is the default.",
)
@pair_options(HEADSPACE_PAIRS)
@folder_option("path", "New folder for the runs.  [default: pipeprof-headspace-TIME]")
@redact_option
@format_option(*FORMS)
@COMMAND
def headspace(
    op: str | None,
    up_to: str | None,
    run: Path | None,
    path: Path | None,
    form: str,
    least: int | None,
    most: int | None,
    budget: float | None,
    steps: int | None,
    command: tuple[str, ...],
) -> None:
    """Measure how fast the training would be with a perfect data pipeline, or with one operator that costs nothing.

    \b
      pipeprof headspace -- python train.py --epochs 2
      pipeprof headspace -o bound --pairs 3 --format json -- python train.py
      pipeprof headspace --steps 200 --budget 30m -- python train.py
      pipeprof headspace --op augment -- python train.py
      pipeprof headspace --run RUN --up-to 3

    Runs the command alternately unchanged and with its first batch repeated, so that no step waits for data. No fix of
    the data pipeline can make the training faster than that. Pairs of runs are added until it is clear whether 5 % or
    more can be gained; if it never is, the answer is "undecided". With --op, one operator (a source, a map, a batch
    with a function) returns its first outputs again and again; with --up-to, nothing before it does any work, either.
    """  # noqa: D301
    from pipeprof.collect.session import default_name
    from pipeprof.experiment import headspace as room
    from pipeprof.report import document, speedup_text

    wanted = _part(op, up_to, run)
    if not command and run is None:
        raise UsageError("no command to run", "pipeprof headspace -- python train.py")
    if command and run is None and Path(command[0], MANIFEST).is_file():
        raise UsageError(f"`{command[0]}` is a recorded run, not a command", f"name it with --run {command[0]}")
    folder = path or default_name("pipeprof-headspace-")
    plan = plan_of(least, most, budget, steps, HEADSPACE_PAIRS)
    if wanted is None:
        content = room.run_headspace(command, plan, folder, say)
    else:
        content = room.run_part(wanted, command, plan, folder, say)
    document.show(content, speedup_text.headspace, form)


def _part(op: str | None, up_to: str | None, run: Path | None) -> Part | None:
    """The part of the pipeline that is meant; None for all of it."""
    from pipeprof.experiment.headspace import Part

    if op is not None and up_to is not None:
        raise UsageError("--op and --up-to exclude each other", "choose one of them")
    if op is None and up_to is None:
        if run is not None:
            raise UsageError("--run says which operator a number means, and none is named", "add --op or --up-to")
        return None
    return Part(op, "alone", run) if op is not None else Part(up_to or "", "up_to", run)


def plan_of(least: int | None, most: int | None, budget: float | None, steps: int | None, usual: int) -> Plan:
    """How many pairs to measure: what is not said follows from what is."""
    from pipeprof.experiment.pairs import Plan

    if least is not None and most is not None and most < least:
        raise UsageError(f"--pairs {least} is more than --max-pairs {most}", "give the least number with --pairs")
    fewest = least or min(usual, most or usual)
    return Plan(fewest, most or max(fewest, MOST_PAIRS), budget, steps)
