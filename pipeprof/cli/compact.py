"""The verb `compact`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeprof.cli.messages import progress_line, say_named
from pipeprof.cli.options import run_argument
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeprof.record.compact import Compacted


@click.command()
@run_argument(changed=True)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def compact(run: Path, *, quiet: bool) -> None:
    """Merge each table of a run into one file, so that reports on many ranks cost less.

    \b
      pipeprof compact RUN

    Every table keeps its rows, and every report its numbers. Only a complete run whose files are as they were written
    is compacted; any other is left as it is, and the exit code is 3. An interrupted compaction loses nothing: run the
    command again. An older pipeprof refuses to read a compacted run.
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    with progress_line("pipeprof: compact", quiet=quiet) as progress:
        files = compacted(run, progress)
    if not quiet:
        same = f"one file for each table already: {files.after:,}"
        say_named(
            same if files.before == files.after else f"{format_count(files.before, 'file')} became {files.after:,}"
        )


def compacted(run: Path, progress: Callable[[str], None]) -> Compacted:
    """Make one file of each table of a run, and what was made of them anew. Raises RunError as `record.compact`.

    The rows are the same, so that the answers kept for its report are, too; a run that has none gets them.
    """
    from pipeprof.record.compact import compact as one_file_each
    from pipeprof.record.run import load
    from pipeprof.report.build import keep_answers
    from pipeprof.report.kept import stored
    from pipeprof.report.rollup import TABLE, keep

    answers = stored(load(run))
    files = one_file_each(run, progress)
    compact_run = load(run)
    if compact_run.files(TABLE):
        keep(compact_run)  # it was made of other files
    keep_answers(load(run), answers)
    return files
