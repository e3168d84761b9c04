"""The options `-o FILE` of a report and `--force`: without the latter, no file that the user names is replaced."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.local_path import LocalPath

if TYPE_CHECKING:
    from collections.abc import Callable

STDOUT = Path("-")


def keeps_files(*options: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Refuse, before any work, to replace the files that these parameters of a verb name; adds `--force`."""

    def around(verb: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(verb)
        def checked(*, force: bool, **given: Any) -> None:
            from pipeprof.report.output import check_free

            for option in options:
                if given[option] is not None:
                    check_free(given[option], force=force)
            verb(**given)

        return click.option("--force", is_flag=True, help="Replace the output file if it exists.")(checked)

    return around


def report_file(*others: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`-o FILE`, passed as `output`, None for stdout, with `--force` for it and for the files of the `others`."""
    option = click.option(
        "-o", "--output", metavar="FILE", type=LocalPath(), callback=none_for_stdout,
        help="Write to this file; - is standard output.",
    )  # fmt: skip
    return lambda verb: option(keeps_files("output", *others)(verb))


def none_for_stdout(_context: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    """`-` is standard output, which is no file."""
    return None if path == STDOUT else path
