"""`pipeprof render`: a saved comparison in another form, for the GitHub check, which keeps the JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from pipeprof.cli.options import LocalPath, folder_option
from pipeprof.errors import UsageError, did_you_mean

MOST_BYTES = 64 * 1024 * 1024


def forms() -> dict[str, tuple[str, Callable[[dict[str, Any]], str]]]:
    """Each form's file name and function."""
    from pipeprof.report.compare import github as compare_github
    from pipeprof.report.compare import junit as compare_junit
    from pipeprof.report.compare import sections as compare_sections

    return {
        "markdown": ("compare.md", partial(compare_sections.text, form="markdown")),
        "html": ("compare.html", partial(compare_sections.text, form="html")),
        "junit": ("junit.xml", compare_junit.text),
        "github-summary": ("summary.md", compare_github.summary),
        "github-comment": ("comment.md", compare_github.comment),
        "github-annotations": ("annotations.txt", _annotations),
    }


@click.command("render", hidden=True)
@click.argument("source", metavar="FILE", type=LocalPath())
@click.option(
    "--to",
    "form",
    metavar="FORM",
    help="Form to print: markdown, html, junit, github-summary, github-comment, github-annotations.",
)
@folder_option("folder", "Write every form into this folder.")
@click.option("--force", is_flag=True, help="Replace the files if they exist.")
def render(source: Path, form: str | None, folder: Path | None, *, force: bool) -> None:
    """Show a saved comparison (`pipeprof compare --format json`) in another form.

    \b
      pipeprof render compare.json --to html > compare.html
      pipeprof render compare.json -o folder
    """  # noqa: D301
    from pipeprof.report.output import check_free, written_whole

    all_forms = forms()
    if (form is None) == (folder is None):
        raise UsageError("render needs one of --to and -o", "pipeprof render compare.json --to markdown")
    if form is not None and form not in all_forms:
        raise UsageError(f"unknown form `{form}`", did_you_mean(form, all_forms))
    content = _read(source)
    if folder is None:
        click.echo(all_forms[str(form)][1](content), nl=False)
        return
    for name, _ in all_forms.values():
        check_free(folder / name, force=force)
    for name, text in all_forms.values():
        with written_whole(folder / name) as temporary:
            folder.mkdir(parents=True, exist_ok=True)
            temporary.write_text(text(content), encoding="utf-8")


def _annotations(content: dict[str, Any]) -> str:
    from pipeprof.report.compare import github as compare_github

    return "".join(f"{line}\n" for line in compare_github.annotation_lines(content))


def _read(source: Path) -> dict[str, Any]:
    from pipeprof.record.plain_file import read_file
    from pipeprof.report.compare import content as compare_content

    try:
        return compare_content.read(read_file(source, MOST_BYTES), str(source))
    except OSError as error:
        raise UsageError(f"cannot read `{source}`: {error.strerror}", "give a file of `pipeprof compare`") from error
