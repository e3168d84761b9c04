"""The option `--force` of verbs that write a file which the user names: without it, no file is replaced."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable


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
