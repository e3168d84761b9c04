"""The verb `collect`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.messages import progress_line, say, sum_up, tell_error
from pipeprof.cli.options import COMMAND, TARGET, FiniteRange, LocalPath, redact_option
from pipeprof.cli.push import free_place, upload_to
from pipeprof.collect import LONGEST_MS
from pipeprof.errors import PipeprofError, UsageError
from pipeprof.escape import as_argument, shell_word

if TYPE_CHECKING:
    from pipeprof.record.run import Run
    from pipeprof.record.settings_file import Settings

# Options of `collect` that are written into the manifest.
KEPT_OPTIONS = (
    "ops",
    "queue_interval",
    "host_interval",
    "service",
    "memory",
    "patches",
    "graph_lines",
    "fp_point",
    "bp_point",
    "keep_spool",
)

NO_FILE = ""  # --live alone
LONGEST_S = 3600  # between two samples of CPU and memory


@click.command(context_settings={"ignore_unknown_options": False})
@TARGET
@click.option(
    "--reps", metavar="N", type=click.IntRange(1), default=1, show_default=True,
    help="Number of repetitions, each in fresh processes.",
)  # fmt: skip
@click.option(
    "--ops",
    type=click.Choice(["off", "window", "all"]),
    default="window",
    show_default=True,
    help="Record operators: never, in windows of a few steps, or in every step.",
)
@click.option(
    "--schedule",
    metavar="SPEC",
    help="Steps in which operators are recorded, such as skip_first=10,wait=5,warmup=1,active=3,repeat=2.  "
    "[default: a few steps early on, then more and more rarely, in at most 1 % of the time]",
)
@click.option(
    "--queue-interval",
    type=click.IntRange(0, LONGEST_MS),
    default=100,
    show_default=True,
    metavar="MS",
    help="Milliseconds between two samples of the dataset's queues; 0: no samples.",
)
@click.option(
    "--host-interval",
    type=FiniteRange(0.05, LONGEST_S),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds between two samples of CPU and memory.",
)
@click.option(
    "--service/--no-service", default=True, show_default=True, help="Measure the service time of dataset operators."
)
@click.option(
    "--memory/--no-memory",
    default=True,
    show_default=True,
    help="Sample MindSpore's memory pool while operators are recorded.",
)
@click.option(
    "--patches/--no-patches", default=True, show_default=True,
    help="Change values in MindSpore's own memory, which makes samples cheap and service times possible.",
)  # fmt: skip
@click.option(
    "--graph-lines", is_flag=True, help="Record the source lines of operators in graphs, too; compiling takes longer."
)
@click.option(
    "--fp-point", metavar="OP", help="Full name of the first operator of the forward pass (or variable FP_POINT)."
)
@click.option(
    "--bp-point", metavar="OP", help="Full name of the last operator of the backward pass (or variable BP_POINT)."
)
@click.option(
    "--apply",
    "apply_file",
    type=LocalPath(),
    metavar="FILE",
    help="Run with the settings that `pipeprof tune` found (its settings.json); the script is not touched.",
)
@click.option(
    "--live",
    is_flag=False,
    flag_value=NO_FILE,
    metavar="[FILE]",
    help="Keep in FILE what `pipeprof top` shows now, for `watch cat FILE`; without FILE, print how to watch the run.",
)
@click.option("--force", is_flag=True, help="Replace the run if the folder holds one, and the file of --live.")
@redact_option
@click.option("--keep-spool", is_flag=True, help="Keep the raw files that the tables are made from.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but warnings and errors.")
@COMMAND
def collect(
    target: Path | str | None, apply_file: Path | None, live: str | None, command: tuple[str, ...], **options: Any
) -> None:
    """Profile a MindSpore training without changing its script.

    \b
      pipeprof collect -- python train.py --epochs 3
      pipeprof collect -o base --reps 5 -- python -m mypkg.train
      pipeprof collect -- msrun --join=True --worker_num=8 train.py
      pipeprof collect -o s3://bucket/runs/base -- python train.py
      pipeprof collect --schedule skip_first=10,wait=5,active=3 -- bash run.sh
      pipeprof collect --live now.txt -- python train.py

    Put it in front of your usual command, which keeps its input, output, signals, working directory and exit code.
    `pipeprof report` and other verbs use the newest run unless you name one.
    """  # noqa: D301
    from pipeprof.collect.launch import ProbeOptions, command_path, die_like
    from pipeprof.collect.live import watched
    from pipeprof.collect.session import create_run, parse_schedule, record

    if not command:
        raise UsageError("no command to run", "pipeprof collect -- python train.py")
    if options["schedule"] is not None and options["ops"] != "window":
        raise UsageError(
            f"--schedule says when windows are, and --ops {options['ops']} has none", "leave out one of them"
        )
    quiet, reps = options["quiet"], options["reps"]
    schedule = parse_schedule(options["schedule"]) if options["schedule"] is not None else None
    stored_options = {name: options[name] for name in KEPT_OPTIONS} | {"schedule": schedule, "reps": reps}
    settings = _settings(apply_file)
    if settings is not None:
        command_path(command)  # refused as without settings: `taskset` and `env`, put in front of it, are there
        stored_options["override"] = settings.override()
        command = tuple(settings.command(command))
    file = _live_file(live, force=options["force"])
    path, url = free_place(target, force=options["force"])
    run = create_run(path, command, stored_options, force=options["force"])
    if live == NO_FILE:
        say(f"pipeprof: to watch it: pipeprof top {shell_word(as_argument(str(run.path)))}")
    probe = ProbeOptions(
        options["queue_interval"],
        options["ops"],
        schedule,
        options["service"],
        options["memory"],
        stored_options.get("override"),
        graph_lines=options["graph_lines"],
        patches=options["patches"],
        instructions=reps > 1,  # they are made to be compared
    )

    def started(rep: int) -> None:
        if not quiet and (rep or reps > 1):
            say(f"pipeprof: repetition {rep + 1} of {reps}")

    with watched(run.path, file):
        outcomes = record(run, command, probe, reps=reps, host_interval_s=options["host_interval"], started=started)
        _finish(run, url, options)
    _tell_warnings(run)
    status = next((outcome.status for outcome in outcomes if outcome.status), 0)
    if status < 0:
        die_like(status)
        status = 128 - status  # process 1 of a container cannot end itself by a signal
    sys.exit(status)


def _live_file(live: str | None, *, force: bool) -> Path | None:
    """The file of --live. Raises UsageError for one that is there already, or that cannot be written."""
    from pipeprof.report.output import check_free

    if not live:
        return None
    file = Path(live)
    check_free(file, force=force)
    parent = file.absolute().parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise UsageError(f"cannot write `{file}`", "give another name behind --live, and -- before the command")
    return file


def _finish(run: Run, url: str | None, options: dict[str, Any]) -> None:
    """Make the tables of a run, sum it up, and upload it where that is wanted."""
    quiet = options["quiet"]
    try:
        from pipeprof.read.spool.finish import finish  # brings threads: not while signals are passed on

        with progress_line("pipeprof: writing the tables", quiet=quiet) as progress:
            finish(run, keep_spool=options["keep_spool"], progress=progress)
        sum_up(run, quiet=quiet)
        upload_to(url, run.path, force=options["force"], quiet=quiet)
    except PipeprofError as error:  # ours, not the command's: its exit code stands
        tell_error(error.message, error.hint)
    except ImportError as error:  # Arrow that refuses the NumPy of the training, say
        again = f"mend the installation, then: pipeprof report {shell_word(str(run.path))}"
        tell_error(f"cannot make the tables of `{run.path}`: {error}", again)


def _settings(path: Path | None) -> Settings | None:
    """The settings of --apply. Raises UsageError."""
    if path is None:
        return None
    from pipeprof.record.settings_file import load_settings

    return load_settings(path)


def _tell_warnings(run: Run) -> None:
    """Those that are to be known at once: the others stand in the report."""
    from pipeprof.record.run import CURES, LAUNCHER

    warnings = run.manifest.warnings
    cure = next((warning.message for warning in warnings if warning.code in CURES), None)
    if cure is not None:
        say(f"hint: {cure}")
    now = ("point_not_found", "not_applied", LAUNCHER)
    for message in dict.fromkeys(item.message for item in warnings if item.code in now):
        say(f"warning: {message}")
