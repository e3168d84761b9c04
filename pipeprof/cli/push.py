"""The verb `push`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeprof.cli.compact import compacted
from pipeprof.cli.messages import progress_line, say_named
from pipeprof.cli.run_argument import RunPath, complete_runs

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("run", type=RunPath(changed=True), shell_complete=complete_runs)
@click.argument("url")
@click.option("--force", is_flag=True, help="Replace another run at URL.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def push(run: Path, url: str, *, force: bool, quiet: bool) -> None:
    """Upload a complete run to object storage, where every verb that takes RUN can read it.

    \b
      pipeprof push RUN s3://bucket/runs/RUN
      pipeprof push RUN "s3://bucket/RUN?endpoint_override=http://host:9000"
      pipeprof push RUN gs://bucket/runs/RUN
      pipeprof push RUN az://container/runs/RUN
      pipeprof push RUN file:///mnt/shared/runs/RUN
      pipeprof report s3://bucket/runs/RUN

    The run is compacted first, as pipeprof compact does. Its manifest is uploaded last, so that an upload that was cut
    off is no run: the same command goes on with it. Credentials come from the environment. Exit codes: 2 another run is
    at URL, 3 the run is not complete or was changed, or the storage failed.
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    from pipeprof.record.run import load
    from pipeprof.record.run_objects import push as pushed
    from pipeprof.report.rollup import keep

    with progress_line("pipeprof: push", quiet=quiet) as progress:
        compacted(run, progress)
        keep(load(run))  # else a question over many runs would have to copy this one
        done = pushed(load(run), url, force=force, progress=progress)
    if not quiet:
        there = f", {done.there:,} were there already" if done.there else ""
        say_named(f"`{done.where}` is whole: {done.written:,} files uploaded{there}")
