"""The verb `runs`, and the run that the other verbs take when none is named."""

from __future__ import annotations

from pathlib import Path

import click

from pipeprof.cli.messages import progress_line, say
from pipeprof.cli.options import FORMS, RunPath, format_option, report_file
from pipeprof.escape import as_argument, shell_word


@click.command()
@click.argument("folder", metavar="[FOLDER|URL]", type=RunPath(), default=Path())
@format_option(*FORMS, "csv")
@report_file()
def runs(folder: Path | str, form: str, output: Path | None) -> None:
    """List the runs in a folder, the newest first.

    \b
      pipeprof runs
      pipeprof runs --format csv > runs.csv
      pipeprof runs --format json | jq '.runs[0].path'
      pipeprof runs s3://bucket/runs

    FOLDER is the current folder if none is given. The step time is the median training step of the slowest process.
    Damaged runs are listed, too. Verbs without RUN use the newest run of the current folder.
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped
    from pipeprof.record.listing import folders_of_runs, runs_in
    from pipeprof.record.text import printable
    from pipeprof.report import document
    from pipeprof.report import runs as room
    from pipeprof.report.output import write_text
    from pipeprof.report.rows import csv_text

    shown = printable(str(folder))
    with progress_line("pipeprof: runs", quiet=False) as progress:
        if isinstance(folder, str):
            from pipeprof.record.objects import without_secrets
            from pipeprof.report.runs import rows_below

            rows, shown = rows_below(folder, progress), printable(without_secrets(folder))
        else:
            rows = room.rows_of(runs_in(folder), progress)
    if form == "csv":
        write_text(csv_text(room.COLUMNS, room.plain_rows(rows)), output)
    elif rows or form != "terminal" or output is not None:
        document.show(room.content_of(shown, rows), room.document, form, output)
    else:
        say(f"no runs in `{shown}`")
        for inside in folders_of_runs(folder) if isinstance(folder, Path) else ():
            say(f"hint: pipeprof runs {shell_word(as_argument(str(inside)))}")
