"""The verb `sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pipeprof.cli.messages import say_named
from pipeprof.cli.options import (
    COMMAND,
    TERMINAL,
    LocalPath,
    budget_option,
    folder_option,
    format_option,
    redact_option,
)
from pipeprof.errors import UsageError

EXPORTS = ("env", "args")
MOST_STEPS = 10**12


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("file", type=LocalPath(), required=False)
@click.option(
    "--table",
    "table",
    type=LocalPath(),
    metavar="CSV",
    help="Show a published table of option sets; nothing is run.",
)
@click.option(
    "--steps",
    metavar="N",
    type=click.IntRange(0, MOST_STEPS),
    help="Recommend for a training of N steps after warm-up, set-up included.  [default: by the step time alone]",
)
@budget_option("Time limit for all repetitions", "that of the file, or no limit")
@folder_option("folder", "Folder of the sweep.  [default: pipeprof-sweep-HASH]")
@redact_option
@format_option("html", "markdown", "json", "csv")
@click.option("--export", "export", type=click.Choice(EXPORTS), help="Print only the recommended option set.")
@COMMAND
def sweep(
    file: Path | None, table: Path | None, steps: int | None, budget: float | None, folder: Path | None, form: str,
    export: str | None, command: tuple[str, ...],
) -> None:  # fmt: skip
    """Measure which options make a command faster, and after how many steps they pay off.

    \b
      pipeprof sweep sweep.toml -- python train.py
      pipeprof sweep sweep.toml --steps 2000 --budget 30m -- python train.py
      pipeprof sweep sweep.toml --export env -- python train.py
      pipeprof sweep sweep.toml --format html > sweep.html
      pipeprof sweep --table option_tables.csv

    FILE holds the option sets (docs/sweep.md, examples/sweeps). Each is run alternately with the base, in fresh
    processes, until its verdict is clear or the time is over. Repeat the command to continue an interrupted sweep, or
    to see the result of a finished one. Exit codes: 0 measured, 3 could not be measured, 5 the base failed.
    """  # noqa: D301
    if (file is None) == (table is None):
        raise UsageError("give a sweep file, or a table with --table", "pipeprof sweep sweep.toml -- python train.py")
    if export is not None and form != TERMINAL:
        raise UsageError(f"--export is a form of text of its own, not {form}", "leave --export or --format out")
    if table is not None:
        if command or folder or budget:
            raise UsageError(
                "--table shows published figures and runs nothing", "leave out -o, --budget and the command"
            )
        from pipeprof.experiment.sweep.table import table_content

        show(table_content(table, steps), form, export)
        return
    from pipeprof.experiment.sweep.run import SweepWish, run_sweep
    from pipeprof.experiment.sweep.spec import load_spec

    spec = load_spec(Path(file or ""))
    wish = SweepWish(spec, Path.cwd(), command, folder, budget, steps)
    show(run_sweep(wish, say_named), form, export)


def show(content: dict[str, Any], form: str, export: str | None = None) -> None:
    """Print a result in one of the formats, or its recommendation in one of EXPORTS."""
    from pipeprof.report import document
    from pipeprof.report import sweep as rows
    from pipeprof.report.rows import csv_text

    if export is not None:
        click.echo(rows.export(content, export), nl=False)
    elif form == "csv":
        click.echo(csv_text(rows.COLUMNS, rows.plain_rows(content)), nl=False)
    else:
        document.show(content, rows.document, form)
