"""The verbs. Parse words, call a room, set the exit code; the one place that catches errors."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pipeprof import __version__
from pipeprof.cli_ab import ab, qualify
from pipeprof.cli_baseline import baseline
from pipeprof.cli_compare import compare
from pipeprof.cli_memory import memory
from pipeprof.cli_ops import ops
from pipeprof.cli_render import render
from pipeprof.cli_sweep import sweep
from pipeprof.cli_timeline import stacks, timeline
from pipeprof.errors import PipeprofError, RunError, UsageError

if TYPE_CHECKING:
    from pipeprof.record.run import Run

DEFECT = 70  # exit code of what should never happen, as in sysexits.h

# Options of `collect` that are written into the manifest.
KEPT_OPTIONS = ("ops", "queue_interval", "host_interval", "service", "memory", "fp_point", "bp_point", "keep_spool")

_RUN = click.argument("run", type=click.Path(path_type=Path))


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pipeprof")
@click.option("--no-color", is_flag=True, help="No colours (also: the NO_COLOR variable).")
def cli(*, no_color: bool) -> None:
    """Why is my MindSpore training slow, and did this change make it slower?

    \b
      pipeprof demo                                 the whole story on a small training
      pipeprof collect -o slow -- python train.py   profile an unchanged script
      pipeprof report slow                          phases, data pipeline, operators, diagnosis
      pipeprof compare base new                     did this change make it slower?
      pipeprof ab --base-ref main -- python train.py   both in turn, until it is sure
      pipeprof sql slow "SELECT * FROM step"        the tables behind it
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    if no_color:
        os.environ["NO_COLOR"] = "1"


@cli.command(context_settings={"ignore_unknown_options": False})
@click.option(
    "-o", "--output", "path", type=click.Path(path_type=Path), help="Folder of the run.  [default: pipeprof-run-TIME]"
)
@click.option(
    "--reps", type=click.IntRange(1), default=1, show_default=True, help="Repetitions, each in fresh processes."
)
@click.option(
    "--ops",
    type=click.Choice(["off", "window", "all"]),
    default="window",
    show_default=True,
    help="Record operator executions: never, in windows, or in every step.",
)
@click.option(
    "--schedule",
    metavar="SPEC",
    help="Windows as skip_first=,wait=,warmup=,active=,repeat= (steps).  "
    "[default: a few steps early on, then ever more rarely, at most 1 % of the time]",
)
@click.option(
    "--queue-interval",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    metavar="MS",
    help="Queue sampling interval; 0 switches it off.",
)
@click.option(
    "--host-interval",
    type=click.FloatRange(0.05),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Interval of host and process samples.",
)
@click.option("--service/--no-service", default=True, show_default=True, help="Service time of each dataset operator.")
@click.option("--memory/--no-memory", default=True, show_default=True, help="Memory pool samples inside op windows.")
@click.option(
    "--fp-point", metavar="OP", help="Full name of the operator that starts the forward pass (also: FP_POINT)."
)
@click.option(
    "--bp-point", metavar="OP", help="Full name of the operator that ends the backward pass (also: BP_POINT)."
)
@click.option("--force", is_flag=True, help="Replace the run if it exists.")
@click.option("--keep-spool", is_flag=True, help="Keep the raw files that the tables were made from.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def collect(path: Path | None, command: tuple[str, ...], **options: Any) -> None:  # fmt: skip
    """Profile an unchanged MindSpore script.

    \b
      pipeprof collect -- python train.py --epochs 3
      pipeprof collect -o base --reps 5 -- python -m mypkg.train
      pipeprof collect -- msrun --worker_num=2 --local_worker_num=2 train.py
      pipeprof collect --schedule skip_first=10,wait=5,warmup=1,active=3 -- bash run.sh

    Input, output, signals, working directory and exit code of the command pass through untouched.
    """  # noqa: D301
    from pipeprof.collect.launch import ProbeOptions, die_like
    from pipeprof.collect.session import create_run, default_name, parse_schedule, record

    if not command:
        raise UsageError("no command to run", "pipeprof collect -- python train.py")
    quiet, reps = options["quiet"], options["reps"]
    schedule = parse_schedule(options["schedule"]) if options["schedule"] is not None else None
    kept = {name: options[name] for name in KEPT_OPTIONS} | {"schedule": schedule, "reps": reps}
    run = create_run(path or default_name(), command, kept, force=options["force"])
    probe = ProbeOptions(options["queue_interval"], options["ops"], schedule, options["service"], options["memory"])

    def started(rep: int) -> None:
        if not quiet and (rep or reps > 1):
            _say(f"pipeprof: repetition {rep + 1} of {reps}")

    outcomes = record(run, command, probe, reps=reps, host_interval_s=options["host_interval"], started=started)
    from pipeprof.read.spool.finish import finish  # brings threads, which must not be there while signals are passed on

    try:
        with _progress("pipeprof: writing the tables", quiet=quiet) as progress:
            finish(run, keep_spool=options["keep_spool"], progress=progress)
        if not quiet:
            _summary(run)
    except PipeprofError as error:  # ours, not the command's: its exit code stands
        _error(error.message, error.hint)
    status = next((outcome.status for outcome in outcomes if outcome.status), 0)
    if status < 0:
        die_like(status)
    problem = next((warning for warning in run.manifest.warnings if warning.code == "point_not_found"), None)
    if problem is not None:
        text, _, hint = problem.message.partition("; ")
        _error(text, hint)
    sys.exit(status or (2 if problem else 0))


@cli.command()
@_RUN
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "html", "markdown", "json"]),
    default="terminal",
    show_default=True,
)
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Rows of the longest tables.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to a file instead of stdout.")
def report(run: Path, form: str, top: int, output: Path | None) -> None:
    """Step phases, data pipeline, operators, memory, and what to change.

    \b
      pipeprof report RUN
      pipeprof report RUN --format html -o report.html
      pipeprof report RUN --format markdown -o report.md
      pipeprof report RUN --format json | jq .diagnosis
    """  # noqa: D301
    from pipeprof.report import build, html, json_text, markdown, terminal
    from pipeprof.report.output import write_text

    content = build.build(_open(run), top=top)
    if form == "terminal" and output is None:
        terminal.show(content)
        return
    forms = {"terminal": terminal.text, "html": html.text, "markdown": markdown.text, "json": json_text.text}
    text = forms[form](content)
    write_text(text, output)


@cli.command()
@_RUN
@click.argument("query", required=False)
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
def sql(run: Path, query: str | None, form: str) -> None:
    """Ask the tables of a run in SQL (DuckDB, read-only). Without a query: the tables and views there are.

    \b
      pipeprof sql RUN
      pipeprof sql RUN "SELECT kind, count(*) FROM step GROUP BY kind"
      echo "SELECT * FROM stage" | pipeprof sql RUN - --format csv
    """  # noqa: D301
    from pipeprof.report import rows

    opened = _open(run)
    text = sys.stdin.read() if query == "-" else query
    rows.show(opened, text, form)


@cli.command()
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("pipeprof-demo"),
    show_default=True,
    help="Folder for the two runs.",
)
@click.option("--seconds", type=click.IntRange(10), default=50, show_default=True, help="Time to stay within.")
def demo(folder: Path, seconds: int) -> None:  # fmt: skip
    """Profile a small real training with a planted bottleneck, name it, fix it, and confirm the fix.

    \b
      pipeprof demo
    """  # noqa: D301
    from pipeprof.experiment.demo import run_demo

    sys.exit(run_demo(folder, seconds))


@cli.command(context_settings={"ignore_unknown_options": False})
@_RUN
@click.option("--op", required=True, metavar="NAME|ID", help="The dataset operator: its number, name, or type.")
@click.option("--workers", type=click.IntRange(1), metavar="K", help="num_parallel_workers of the operator.")
@click.option("--prefetch", type=click.IntRange(1), metavar="P", help="Prefetch size (of every operator).")
@click.option("--processes/--threads", default=None, help="Run its Python in worker processes, or in threads.")
@click.option("--pairs", type=click.IntRange(1), default=3, show_default=True, help="Pairs of runs.")
@click.option(
    "-o", "--output", "path", type=click.Path(path_type=Path), help="Folder.  [default: pipeprof-whatif-TIME]"
)
@click.option("--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def whatif(run: Path, path: Path | None, form: str, pairs: int, command: tuple[str, ...], **wish: Any) -> None:
    """Predict what another setting of a dataset operator would buy, then measure it.

    \b
      pipeprof whatif RUN --op mask_from_storage --workers 2
      pipeprof whatif RUN --op 3 --workers 4 --processes --pairs 5 -- python train.py --epochs 2
      pipeprof whatif RUN --op GeneratorOp --prefetch 64

    Runs the command (that of RUN, if none is given) unchanged and unprofiled, in turn without and with the change.
    """  # noqa: D301
    from pipeprof.collect.session import default_name
    from pipeprof.experiment import runs
    from pipeprof.experiment import whatif as room

    folder = path or default_name("pipeprof-whatif-")
    content = room.run_whatif(run, room.Wish(**wish), command, pairs, folder, _say)
    click.echo(runs.json_text(content) if form == "json" else room.text(content), nl=False)


@cli.command(context_settings={"ignore_unknown_options": False})
@click.option("--pairs", type=click.IntRange(1), default=2, show_default=True, help="Pairs of runs.")
@click.option(
    "-o", "--output", "path", type=click.Path(path_type=Path), help="Folder.  [default: pipeprof-headspace-TIME]"
)
@click.option("--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def headspace(path: Path | None, form: str, pairs: int, command: tuple[str, ...]) -> None:
    """Measure how fast the training would be with a perfect data pipeline.

    \b
      pipeprof headspace -- python train.py --epochs 2
      pipeprof headspace -o bound --pairs 3 --format json -- python train.py

    Runs the command unchanged, and with training iterators that hand out one cached batch for ever, in turn.
    """  # noqa: D301
    from pipeprof.collect.session import default_name
    from pipeprof.experiment import headspace as room
    from pipeprof.experiment import runs

    if not command:
        raise UsageError("no command to run", "pipeprof headspace -- python train.py")
    content = room.run_headspace(command, pairs, path or default_name("pipeprof-headspace-"), _say)
    click.echo(runs.json_text(content) if form == "json" else room.text(content), nl=False)


@cli.command("import")
@click.argument("source", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "path", type=click.Path(path_type=Path), help="Folder of the run.  [default: pipeprof-run-TIME]"
)
@click.option(
    "--kind",
    type=click.Choice(["ascend", "minddata", "megengine", "kineto"]),
    help="Read only files of this kind.  [default: all known]",
)
@click.option("--force", is_flag=True, help="Replace the run if it exists.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def import_files(source: Path, path: Path | None, kind: str | None, *, force: bool, quiet: bool) -> None:
    """Read another profiler's files into a run: MindInsight, Ascend, MindSpore, MegEngine, PyTorch (Kineto).

    \b
      pipeprof import profiler/ -o old
      pipeprof import resnet.pt.trace.json.gz -o torch
      pipeprof report old
    """  # noqa: D301
    from pipeprof.collect.session import default_name
    from pipeprof.read.foreign import import_path

    with _progress("pipeprof: import", quiet=quiet) as progress:
        run = import_path(source, path or default_name(), kind=kind, force=force, progress=progress)
    if not quiet:
        _summary(run)


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the shell's completion script.

    \b
      eval "$(pipeprof completion bash)"
    """  # noqa: D301
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(cli, {}, "pipeprof", "_PIPEPROF_COMPLETE").source())


for verb in (ops, timeline, memory, stacks, compare, ab, sweep, baseline, qualify, render):
    cli.add_command(verb)


def main() -> NoReturn:
    """Entry point: run a verb; every expected error ends as `error:` and `hint:` on stderr and an exit code."""
    try:
        cli.main(standalone_mode=False, prog_name="pipeprof")
    except PipeprofError as error:
        _error(error.message, error.hint)
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else str(error))
        sys.exit(0)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        _error(error.format_message().rstrip("."), f"see `{context.command_path} --help`" if context else "")
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)
    except Exception:  # noqa: BLE001 - whatever it is, it must not look like "regressed", which is 1
        traceback.print_exc()
        _error("pipeprof failed where it should not", "report the lines above")
        sys.exit(DEFECT)
    sys.exit(0)


def _open(path: Path) -> Run:
    from pipeprof.read.spool.finish import open_run

    try:
        with _progress("pipeprof: recovering the run", quiet=False) as progress:
            return open_run(path, progress=progress)
    except RunError as error:
        from pipeprof.read.foreign import holds_known

        if not holds_known(path):
            raise
        raise RunError(error.message, f"pipeprof import {shlex.quote(str(path))} -o RUN") from error


def _progress(title: str, *, quiet: bool) -> Any:
    from pipeprof.report.progress import status_line

    return status_line(title, quiet=quiet)


def _summary(run: Run) -> None:
    from pipeprof.report.summary import three_lines

    for line in three_lines(run):
        _say(line)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _error(message: str, hint: str) -> None:
    styled = (
        click.style("error:", fg="red", bold=True)
        if sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        else "error:"
    )
    click.echo(f"{styled} {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
