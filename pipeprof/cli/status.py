"""The verb `status`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pipeprof.cli.options import FORMS, RUN, format_option, report_file


@click.command()
@RUN
@click.option("--stacks", is_flag=True, help="Show the whole Python stacks.")
@format_option(*FORMS)
@report_file()
def status(run: Path, form: str, output: Path | None, *, stacks: bool) -> None:
    """What each rank of a running training is waiting for: does it hang, and where?

    \b
      pipeprof status RUN
      pipeprof status RUN --stacks
      pipeprof status RUN --format json | jq '.ranks[].code'

    It only reads what the recording has written, which is at most a few seconds old; the training and the run are not
    touched. Whatever it shows, the exit code is 0.
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    from pipeprof.record.run import load
    from pipeprof.report import document
    from pipeprof.report import status as room

    shown = partial(room.document, stacks=stacks)
    document.show(room.build(load(run)), shown, form, output)
