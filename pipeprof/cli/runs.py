"""The verb `runs`, and the run that the other verbs take when none is named."""

from __future__ import annotations

from pathlib import Path

import click

from pipeprof.cli.format_option import format_option
from pipeprof.cli.messages import progress_line, say


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@format_option("csv", "json")
def runs(folder: Path, form: str) -> None:
    """List the runs in a folder, the newest first.

    \b
      pipeprof runs
      pipeprof runs --format csv > runs.csv
      pipeprof runs --format json | jq '.runs[0].path'

    FOLDER is the current folder if none is given. The step time is the median training step of the slowest process.
    Damaged runs are listed, too. Verbs without RUN take the newest run of the current folder.
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    from pipeprof.record.listing import folders_of_runs, runs_in
    from pipeprof.report import runs as room

    listed = runs_in(folder)
    with progress_line("pipeprof: runs", quiet=False) as progress:
        rows = room.rows_of(listed, progress)
    if rows or form != "terminal":
        room.show(rows, form)
        for row in rows if form == "terminal" else ():
            if row["state"] == "damaged":
                say(f"note: {row['problem']}")
        return
    say(f"no runs in `{folder}`")
    for inside in folders_of_runs(folder):
        say(f"hint: pipeprof runs {inside}")
