"""The verb `history`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pipeprof.cli.messages import progress_line
from pipeprof.cli.options import FORMS, ROOT, LocalPath, complete_files, format_option, refuse_empty, report_file
from pipeprof.errors import UsageError

MOST_LOG = 1 << 24  # bytes of a weekly log


@click.command()
@click.argument("source", metavar="WORKLOAD|FOLDER|URL", shell_complete=complete_files)
@ROOT
@click.option("--metric", "names", metavar="NAME", multiple=True, help="Only this metric; may be repeated.")
@click.option("--alerts", is_flag=True, help="What became worse: commit, file, owner, and what was decided about it.")
@click.option("--base-ref", metavar="REF", help="With --alerts: settings and decisions as this revision has them.")
@click.option(
    "--told", metavar="FILE", multiple=True, type=LocalPath(), help="With --alerts: a text that tells earlier ones."
)
@click.option("--weekly", metavar="FILE", type=LocalPath(), help="With --alerts: keep a Markdown log, week by week.")
@click.option("--decide", metavar="ALERT=STATE", help="With --alerts: acknowledged, wrong, fixed or new; needs --why.")
@click.option("--why", metavar="REASON", help="The reason for --decide.")
@click.option("--by", metavar="NAME", help="Who decides; by default git's user.name.")
@format_option(*FORMS)
@report_file()
def history(
    source: str, root: str, names: tuple[str, ...], form: str, output: Path | None, *, alerts: bool, **about: Any
) -> None:
    """Since when is it slower? Changes of level over all measurements, their commits and causes.

    \b
      pipeprof history resnet
      pipeprof history resnet --root s3://bucket/baselines --metric peak_memory
      pipeprof history nightly-runs/ --format html -o history.html
      pipeprof history s3://bucket/nightly-runs
      pipeprof history resnet --alerts
      pipeprof history net --alerts --decide net-0123456789=wrong --why noise

    WORKLOAD is the name under which baselines were written, one per commit or job (pipeprof baseline write --append).
    FOLDER, or a URL of object storage, contains runs. Where both have that name, the workload is read and the folder is
    named as left out: ./FOLDER reads it. With --root, a name without a slash is a workload.
    Measurements of another machine, or of other versions, form separate series. Commits are looked up in the git
    repository of the current folder. The history only informs: the exit code is 0.

    --alerts lists changes for the worse of metrics that decide, as large as the gate asks for: one for each place in
    the code, whatever metrics and machines show it. Decisions are kept in pipeprof-alerts.jsonl, to be committed.
    """  # noqa: D301
    from pipeprof.experiment.history import history_of
    from pipeprof.report import document
    from pipeprof.report import history as rows

    refuse_empty(source)
    with progress_line("pipeprof: history", quiet=False) as progress:
        chosen = click.get_current_context().get_parameter_source("root") is ParameterSource.COMMANDLINE
        content = rows.only(history_of(source, root, progress, chosen=chosen), names)
    if alerts:
        _show_alerts(content, form, output, **about)
        return
    if any(about.values()):
        given = next(name for name, value in about.items() if value).replace("_", "-")
        raise UsageError(f"--{given} is an option of alerts", f"pipeprof history {source} --alerts --{given} ...")
    document.show(content, rows.document, form, output)


def _show_alerts(
    content: dict[str, Any], form: str, output: Path | None, *, base_ref: str | None, told: tuple[Path, ...],
    weekly: Path | None, decide: str | None, why: str | None, by: str | None,
) -> None:  # fmt: skip
    import datetime as dt

    from pipeprof.experiment import alerts
    from pipeprof.record.plain_file import read_file
    from pipeprof.report import alerts as rows
    from pipeprof.report import document
    from pipeprof.report.output import write_text

    today = dt.date.today().isoformat()  # noqa: DTZ011 - the user's day
    earlier = [*told, weekly] if weekly else list(told)
    found = alerts.alerts_of(content, alerts.judged_by(base_ref, earlier))
    if decide:
        path = alerts.decide(found, decide, by or alerts.user(), why, today)
        click.echo(f"pipeprof: wrote {path}; commit it", err=True)
        found = alerts.alerts_of(content, alerts.judged_by(base_ref, earlier))
    if weekly:
        log = read_file(weekly, MOST_LOG).decode() if weekly.exists() else ""
        write_text(rows.weekly(found, log, today), weekly)
    document.show(rows.with_issues(found) if form == "json" else found, rows.document, form, output)
