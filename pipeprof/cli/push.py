"""The verb `push`."""

from __future__ import annotations

from pathlib import Path

import click

from pipeprof.cli.compact import compacted
from pipeprof.cli.messages import progress_line, say, say_named
from pipeprof.cli.options import RunPath, complete_runs
from pipeprof.collect.launch import signals_held
from pipeprof.errors import PipeprofError, RunError
from pipeprof.escape import as_argument, shell_word
from pipeprof.units import format_count


@click.command()
@click.argument("run", type=RunPath(changed=True), shell_complete=complete_runs)
@click.argument("url")
@click.option("--force", is_flag=True, help="Replace another run at URL, and what is damaged there.")
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

    The run is compacted first, as pipeprof compact does. Its manifest is uploaded last, so that an interrupted upload
    does not count as a run: repeat the command to continue it. Credentials come from the environment. `collect -o URL`
    and `import -o URL` upload their run when it is done. Of two runs that are pushed to one URL at once, one wins. With
    --force every file that is there is read, and replaced if damaged. Exit codes: 2 another run is at URL, 3 the run is
    not complete or was changed, or the storage failed.
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    upload(run, url, force=force, quiet=quiet)


def upload(run: Path, url: str, *, force: bool, quiet: bool) -> None:
    """Compact a run and upload it. Raises as `record.run_objects.push`."""
    from pipeprof.record.run import load
    from pipeprof.record.run_objects import push as pushed
    from pipeprof.record.run_objects import storage_of
    from pipeprof.report.rollup import keep

    storage_of(url)  # one that cannot be opened leaves the run as it is
    with progress_line("pipeprof: push", quiet=quiet) as progress:
        compacted(run, progress)
        keep(load(run))  # else a question over many runs would have to copy this one
        done = pushed(load(run), url, force=force, progress=progress)
    if not quiet:
        how = "by their checksums" if force else "by their sizes: --force reads them"
        there = f", {done.there:,} there already ({how})" if done.there else ""
        say_named(f"`{done.where}` is whole: {format_count(done.written, 'file')} uploaded{there}")


def free_place(target: Path | str | None, *, force: bool) -> tuple[Path | None, str | None]:
    """The folder that -o names, or its URL. Raises UsageError or RunError for a URL where no run can be put."""
    if not isinstance(target, str):
        return target, None
    with signals_held():  # its libraries start threads, which must not take signals that are for a command
        from pipeprof.record.run_objects import refuse_taken

        refuse_taken(target, force=force)
    return None, target


def upload_to(url: str | None, run: Path, *, force: bool, quiet: bool) -> None:
    """Upload a run that was just written, if there is a URL; the error of a failure says that nothing is lost."""
    if url is None:
        return
    from pipeprof.record.run import load

    state = load(run).manifest.state
    if state != "complete":
        say(f"pipeprof: not uploaded, for the run is {state}: it is kept in `{run}`")
        return
    try:
        upload(run, url, force=force, quiet=quiet)
    except PipeprofError as error:
        hint = f"the run is kept in `{run}`; to upload it: pipeprof push {shell_word(as_argument(str(run)))} URL"
        raise RunError(error.message, f"{error.hint}; {hint}" if error.hint else hint) from error
