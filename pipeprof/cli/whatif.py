"""The verbs `whatif` and `headspace`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pipeprof.cli.format_option import format_option
from pipeprof.cli.told import RUN, say
from pipeprof.errors import UsageError


@click.command(context_settings={"ignore_unknown_options": False})
@RUN
@click.option("--op", required=True, metavar="NAME|ID", help="The dataset operator: its number, name, or type.")
@click.option("--workers", type=click.IntRange(1), metavar="K", help="num_parallel_workers of the operator.")
@click.option("--prefetch", type=click.IntRange(1), metavar="P", help="Prefetch size (of every operator).")
@click.option("--processes/--threads", default=None, help="Run its Python in worker processes, or in threads.")
@click.option("--pairs", type=click.IntRange(1), default=3, show_default=True, help="Pairs of runs.")
@click.option(
    "-o", "--output", "path", type=click.Path(path_type=Path), help="Folder.  [default: pipeprof-whatif-TIME]"
)
@format_option("json")
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
    content = room.run_whatif(run, room.Wish(**wish), command, pairs, folder, say)
    click.echo(runs.json_text(content) if form == "json" else room.text(content), nl=False)


@click.command(context_settings={"ignore_unknown_options": False})
@click.option("--pairs", type=click.IntRange(1), default=2, show_default=True, help="Pairs of runs.")
@click.option(
    "-o", "--output", "path", type=click.Path(path_type=Path), help="Folder.  [default: pipeprof-headspace-TIME]"
)
@format_option("json")
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
    content = room.run_headspace(command, pairs, path or default_name("pipeprof-headspace-"), say)
    click.echo(runs.json_text(content) if form == "json" else room.text(content), nl=False)
