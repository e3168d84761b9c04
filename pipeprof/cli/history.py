"""The verb `history`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from pipeprof.cli.command_argument import complete_files
from pipeprof.cli.format_option import FORMS, format_option
from pipeprof.cli.local_path import refuse_empty
from pipeprof.cli.messages import progress_line
from pipeprof.cli.output_option import report_file

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("source", metavar="WORKLOAD|FOLDER|URL", shell_complete=complete_files)
@click.option(
    "--root", metavar="FOLDER|URL", default="baselines", show_default=True, envvar="PIPEPROF_BASELINES",
    show_envvar=True, help="Where baselines are kept: a folder, or s3://, gs://, az:// or file:// URL.",
)  # fmt: skip
@click.option("--metric", "names", metavar="NAME", multiple=True, help="Only this metric; may be repeated.")
@format_option(*FORMS)
@report_file()
def history(source: str, root: str, names: tuple[str, ...], form: str, output: Path | None) -> None:
    """Since when is it slower? Changes of level over all measurements, their commits and causes.

    \b
      pipeprof history resnet
      pipeprof history resnet --root s3://bucket/baselines --metric peak_memory
      pipeprof history nightly-runs/ --format html -o history.html
      pipeprof history s3://bucket/nightly-runs

    WORKLOAD is the name under which baselines were written, one per commit or job (pipeprof baseline write --append).
    FOLDER, or a URL of object storage, contains runs. Where both have that name, the workload is read and the folder is
    named as left out: ./FOLDER reads it. With --root, a name without a slash is a workload.
    Measurements of another machine, or of other versions, form separate series. Commits are looked up in the git
    repository of the current folder. The history only informs: the exit code is 0.
    """  # noqa: D301
    from pipeprof.experiment.history import history_of
    from pipeprof.report import document
    from pipeprof.report.history import rows

    refuse_empty(source)
    with progress_line("pipeprof: history", quiet=False) as progress:
        chosen = click.get_current_context().get_parameter_source("root") is ParameterSource.COMMANDLINE
        content = rows.only(history_of(source, root, progress, chosen=chosen), names)
    document.show(content, rows.document, form, output)
