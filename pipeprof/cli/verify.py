"""The verb `verify`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pipeprof.cli.messages import opened
from pipeprof.cli.options import FORMS, RUN, format_option, report_file


@click.command()
@RUN
@format_option(*FORMS)
@report_file()
def verify(run: Path, form: str, output: Path | None) -> None:
    """Check by the checksums in its run.json that the files of a run are unchanged.

    \b
      pipeprof verify RUN
      pipeprof verify RUN --format json | jq '.changes[].file'

    Every file of every table is read. Exit codes: 0 unchanged, 3 a file was changed, added or removed, or the run has
    no checksums because an older pipeprof made it.
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    from pipeprof.record.run import UNFINISHED, load
    from pipeprof.report import document
    from pipeprof.report import verify as room

    source = load(run)
    if source.manifest.state == "running" or source.manifest.options.get(UNFINISHED):
        source = opened(run)
    content = room.build(source)
    document.show(content, room.document, form, output)
    sys.exit(content["exit_code"])
