"""`pipeprof baseline`: write, list, show, check and drop baselines. What they are: docs/baselines.md."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from pipeprof import escape
from pipeprof.cli.messages import say, say_named
from pipeprof.cli.options import FORMS, ROOT, complete_runs, format_option, report_file
from pipeprof.cli.streams import StdoutClosed
from pipeprof.errors import RunError, UsageError
from pipeprof.units import format_count

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.record.measures import Measures

_FORMAT = format_option(*FORMS)


@click.group()
def baseline() -> None:
    """Save runs as baselines for later comparisons.

    \b
      pipeprof baseline write RUN --workload resnet
      pipeprof baseline list
      pipeprof compare baselines/resnet/MACHINE NEW
    """  # noqa: D301 - \b is click's mark for text that must not be wrapped


@baseline.command()
@click.argument("source", metavar="RUN_OR_MEASURES", shell_complete=complete_runs)
@click.option("--workload", required=True, metavar="NAME", help="Name of the baseline.")
@ROOT
@click.option("--append", is_flag=True, help="Add the repetitions to those that the baseline has of other jobs.")
@click.option("--force", is_flag=True, help="Replace the baseline if there is one.")
@click.option("--restart", is_flag=True, help="With --append: start over when the environment or the workload changed.")
@click.option("--keep-jobs", type=click.IntRange(1), metavar="N", help="With --append: keep the latest N jobs.")
@click.option("--keep-days", type=click.IntRange(1), metavar="N", help="With --append: keep jobs of the last N days.")
@click.option(
    "--drop",
    multiple=True,
    metavar="METRIC",
    help="Leave out this metric or fact, or a pattern such as 'op/*'; may be repeated.",
)
@click.option("--tag", metavar="NAME", help="Release tag of the measured revision.  [default: git's, if it has one]")
@click.option(
    "--anchor",
    metavar="RUN",
    help="Run of the old code, measured alternately with RUN; the history keeps their ratio.",
)
@format_option("json")
def write(source: str, workload: str, root: str, form: str, **options: Any) -> None:
    """Save a run as the baseline of a workload for machines like this one.

    \b
      pipeprof baseline write RUN --workload resnet
      pipeprof baseline write RUN --workload resnet --force    # replaces one
      pipeprof baseline write RUN --workload resnet --append   # one more job
      pipeprof baseline write RUN --workload resnet --append --keep-jobs 20
      pipeprof baseline write RUN --workload resnet --root s3://bucket/baselines
      pipeprof baseline write RUN --workload resnet --drop 'op/*'
    """  # noqa: D301
    from pipeprof.record.baseline import save
    from pipeprof.report import baselines, json_text

    if not options["append"] and (options["restart"] or options["keep_jobs"] or options["keep_days"]):
        raise UsageError("--restart, --keep-jobs and --keep-days belong to --append", "add --append")
    measures = _measures(source)
    anchor = _measures(options["anchor"]) if options["anchor"] else None
    tag = options["tag"] or _tag(measures.git)
    saved = save(
        measures, root, workload, append=options["append"], replace=options["force"], drop=options["drop"], tag=tag,
        anchor=anchor, restart=options["restart"], keep_jobs=options["keep_jobs"], keep_days=options["keep_days"],
    )  # fmt: skip
    for note in saved.notes:
        say_named(note)
    if form == "json":
        click.echo(json_text.text(baselines.written(saved)), nl=False)
        return
    about = saved.document
    jobs = format_count(about.jobs, "job") if about.jobs else "unknown jobs"
    click.echo(
        f"pipeprof: {'appended:' if saved.appended else 'wrote'} "
        f"{format_count(about.reps, 'repetition')} of {jobs}, {format_count(about.metrics, 'metric')}, "
        f"{saved.bytes / 1000:.1f} kB",
        err=True,
    )
    click.echo(escape.line(saved.where))


@baseline.command("list")
@ROOT
@_FORMAT
@report_file()
def list_all(root: str, form: str, output: Path | None) -> None:
    """List all baselines, including damaged ones. Exit code 3: there is no such place.

    \b
      pipeprof baseline list
      pipeprof baseline list --root s3://bucket/baselines --format json
    """  # noqa: D301
    from pipeprof.record.baseline import refuse_missing
    from pipeprof.report import baselines, document

    refuse_missing(root)
    content = baselines.listing(root)
    if content["baselines"] or form != "terminal" or output is not None:
        document.show(content, baselines.listing_document, form, output)
    else:
        say(f"no baselines in {content['root']}")


@baseline.command()
@click.argument("source", metavar="[BASELINE|RUN]", required=False, shell_complete=complete_runs)
@click.option("--workload", metavar="NAME", help="Name of the baseline; not needed when there is only one.")
@click.option("--machine", metavar="CLASS", help="Machine class; not needed when there is only one.")
@ROOT
@click.option(
    "--history", "past", is_flag=True, help="Show past writes, changes of level, and the change since the last release."
)
@_FORMAT
@report_file()
def show(
    source: str | None, workload: str | None, machine: str | None, root: str, form: str, output: Path | None, *,
    past: bool,
) -> None:  # fmt: skip
    """Show metrics, machine and revision of a baseline, or its history. For a run: what its baseline would contain.

    \b
      pipeprof baseline show --workload resnet
      pipeprof baseline show baselines/resnet --history
      pipeprof baseline show RUN

    BASELINE is a folder or a URL, as `pipeprof compare` takes it.
    """  # noqa: D301
    if source and (workload or machine):
        raise UsageError("the baseline is named twice", "leave --workload and --machine out")
    where = _baseline_at(source) if source else _named(root, workload, machine)
    if past:
        _show_history(where, source or "", form, output)
    else:
        _show_one(where, source or "", form, output)


@baseline.command()
@ROOT
@_FORMAT
@report_file()
def check(root: str, form: str, output: Path | None) -> None:
    """Check that every baseline and its history can be read. Exit code 3: one is damaged, or there is none.

    \b
      pipeprof baseline check
    """  # noqa: D301
    from pipeprof.report import baselines, document

    content = baselines.listing(root, histories=True)
    rows = content["baselines"]
    with contextlib.suppress(StdoutClosed):
        if rows or form != "terminal" or output is not None:
            document.show(content, baselines.checked_document, form, output)
    bad = [f"`{row['workload']}/{row['machine']}`" for row in rows if row["state"] != "ok"]
    if bad:
        raise RunError(
            f"{len(bad)} of {format_count(len(rows), 'baseline')} in `{_shown(root)}` cannot be used: {', '.join(bad)}"
        )
    if not rows:
        raise RunError(f"no baselines in `{_shown(root)}`", "pipeprof baseline write RUN --workload NAME")


@baseline.command()
@click.option("--workload", required=True, metavar="NAME", help="Name of the baseline.")
@click.option("--machine", metavar="CLASS", help="Machine class.  [default: all of the workload]")
@ROOT
def drop(workload: str, machine: str | None, root: str) -> None:
    """Remove baselines of a workload together with their history.

    \b
      pipeprof baseline drop --workload resnet --machine amd-epyc-2c-24g-cpu-5d0c
    """  # noqa: D301
    from pipeprof.record.baseline import remove

    for name, inner in remove(root, workload, machine):
        say_named(f"removed {name}/{inner}")


def _measures(source: str) -> Measures:
    from pipeprof.query.side import open_measures

    return open_measures(source)


def _tag(git: dict[str, Any] | None) -> str | None:
    """The tag of the measured revision in the repository of this folder; None for a changed tree."""
    if not git or not git.get("revision") or git.get("dirty"):
        return None
    from pathlib import Path

    from pipeprof.record.git import git_or_none

    tags = git_or_none(Path(), "tag", "--points-at", str(git["revision"]), "--sort=-creatordate")
    return next(iter((tags or "").split()), None)


def _show_history(where: str | None, source: str, form: str, output: Path | None) -> None:
    from pipeprof.record.baseline import parts_of
    from pipeprof.report import baselines, document

    if where is None:
        hint = "name the folder of one, or leave --history out; `pipeprof history` shows all of a workload"
        raise UsageError(f"`{source}` is not one baseline, so it has no history of its own", hint)
    document.show(baselines.history(*parts_of(where)), baselines.history_document, form, output)


def _show_one(where: str | None, source: str, form: str, output: Path | None) -> None:
    from pipeprof.record.baseline import load_whole
    from pipeprof.record.baseline_files import described
    from pipeprof.report import baselines, document

    if where is None:
        measures = _measures(source)
        about = described(measures)
    else:
        about, measures = load_whole(where)
    kind = "Run" if where is None else "Baseline"
    document.show(baselines.one(about, measures), lambda _: baselines.one_document(about, measures, kind), form, output)


def _baseline_at(source: str) -> str | None:
    """The baseline that a folder or URL is, or the only one of a workload's folder; None for something else."""
    from pathlib import Path

    from pipeprof.record.baseline import MANIFEST, is_baseline

    if "://" in source or is_baseline(Path(source)):
        return source
    machines = list(Path(source).glob(f"*/{MANIFEST}"))
    return str(machines[0].parent) if len(machines) == 1 else None


def _named(root: str, workload: str | None, machine: str | None) -> str:
    """Folder or URL of the only baseline of these names. Raises UsageError for several, RunError for none."""
    from pipeprof.record.baseline import names

    matches = [name for name in names(root, workload) if machine in (None, name[1])]
    if len(matches) == 1:
        path, mark, query = root.partition("?") if "://" in root else (root, "", "")
        return "/".join([path.rstrip("/"), *matches[0]]) + mark + query
    wanted = "/".join(filter(None, (workload, machine)))
    if not matches and not wanted:
        hint = "save one with `pipeprof baseline write RUN --workload NAME`"
        raise RunError(f"there is no baseline in `{_shown(root)}`", hint)
    if not matches:
        raise RunError(f"no baseline of `{wanted}` in `{_shown(root)}`", "pipeprof baseline list")
    listed = ", ".join(f"{name}/{inner}" for name, inner in matches[:5]) + (", ..." if len(matches) > 5 else "")
    raise UsageError(f"{len(matches)} baselines to choose from: {listed}", "name one with --workload and --machine")


def _shown(root: str) -> str:
    from pipeprof.record.objects import without_secrets

    return without_secrets(root) if "://" in root else root
