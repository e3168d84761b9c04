"""The verb `tune`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from pipeprof.cli.messages import say_named
from pipeprof.cli.options import COMMAND, FORMS, budget_option, folder_option, format_option, redact_option
from pipeprof.experiment.pairs import LEAST_RUN

if TYPE_CHECKING:
    from pipeprof.verdict.tuning import Goal


def steps_or_all(ctx: click.Context, param: click.Parameter, text: str | None) -> int | Literal["all"] | None:
    """The number of steps, or `all`; None for none. Raises BadParameter."""
    if text is None or text == "all":
        return "all" if text else None
    if not text.lstrip("-").isdecimal():
        raise click.BadParameter(f"'{text}' is neither a whole number nor 'all'")
    return click.IntRange(LEAST_RUN)(text, param, ctx)


@click.command(context_settings={"ignore_unknown_options": False})
@budget_option("Time limit for all runs together", "10m")
@click.option(
    "--goal",
    type=click.Choice(["time", "memory", "cores"]),
    default="time",
    show_default=True,
    help="Make the training faster; or keep its speed with less memory, or with less CPU time per step.",
)
@click.option(
    "--allow-unchecked",
    is_flag=True,
    help="Also accept changes whose batches cannot be compared, because two unchanged runs already differ.",
)
@click.option(
    "--allow-order",
    is_flag=True,
    help="Also try changes that deliver the same rows in another order, compared over whole epochs.",
)
@click.option(
    "--allow-random",
    is_flag=True,
    help="Also accept changes that make random crops, flips and the like draw other numbers; labels must be the same.",
)
@click.option(
    "--steps",
    metavar="N|all",
    callback=steps_or_all,
    help="End each run after N training steps, a recording after 4 N, as if the script called sys.exit().  "
    "[default: all of a training that takes up to a twentieth of the budget, else a part]",
)
@folder_option("folder", "Folder of the tuning.  [default: pipeprof-tune-HASH]")
@redact_option
@format_option(*FORMS)
@COMMAND
def tune(
    budget: float,
    goal: Goal,
    allow_unchecked: bool,  # noqa: FBT001
    allow_order: bool,  # noqa: FBT001
    allow_random: bool,  # noqa: FBT001
    steps: int | Literal["all"] | None,
    folder: Path | None,
    form: str,
    command: tuple[str, ...],
) -> None:
    """Find settings of the data pipeline that make a training faster, prove them, and write the patch.

    \b
      pipeprof tune -- python train.py --epochs 1
      pipeprof tune --budget 30m --steps 200 -o tuned -- python train.py
      pipeprof tune --goal memory -- python train.py --epochs 1
      pipeprof collect --apply tuned/settings.json -- python train.py

    Records the training, tries the most promising settings (workers, worker processes, queues, rows kept in memory,
    threads of NumPy, OpenCV and MindSpore), each alternately with the best set so far, and finally compares the whole
    set with the original. Only proven settings are recommended, and only if the batches stay the same. The command is
    run many times; each run of a long training ends after a part of its steps. Repeat the command to continue an
    interrupted tuning. Exit codes: 0 judged, 3 could not be judged, 4 undecided, 5 the command failed.
    """  # noqa: D301
    from pipeprof.experiment.tune.bench import TuneBench, recorded_s
    from pipeprof.experiment.tune.patch import content_of, write_files
    from pipeprof.experiment.tune.search import TuneWish, run_tune
    from pipeprof.report import document, tune_text

    wish = TuneWish(command, Path.cwd(), folder, budget, allow_unchecked, goal, allow_order, allow_random, steps)
    needs_whole = steps == "all" or allow_order  # which compares whole epochs
    bench = TuneBench(command, goal, record_s=None if needs_whole else recorded_s(budget))
    state, result_folder = run_tune(wish, bench, say_named)
    content = content_of(state, wish.workdir, allow_unchecked=allow_unchecked)
    written = write_files(result_folder, content, tune_text.pull_request(content))
    shown = result_folder.name if folder is None else str(folder)
    document.show(content, lambda report: tune_text.document(report, written, shown), form)
    sys.exit(content["exit_code"])
