"""A path of this machine, as the type of an argument or option."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


def refuse_empty(path: object) -> None:
    """Raises UsageError for a path without a letter, which would be the current folder."""
    if path == "":
        raise UsageError("a path is empty", "is a variable of the shell not set? `.` is the current folder")


class LocalPath(click.Path):
    """A path that is no URL: one taken for the name of a folder would lose its second slash, and the run in it.

    With `urls` a URL is taken too, and stays text.
    """

    def __init__(self, *, urls: bool = False) -> None:
        super().__init__(path_type=Path)
        self.urls = urls

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises UsageError for a URL, and for an empty path."""
        refuse_empty(value)
        if isinstance(value, str) and "://" in value:
            if self.urls:
                return value
            from pipeprof.record.objects import without_secrets

            raise UsageError(
                f"`{without_secrets(value)}` is a URL: expected a path on this machine",
                "verbs that take RUN read URLs; `pipeprof push RUN URL` and `pipeprof collect -o URL` upload a run",
            )
        return super().convert(value, param, ctx)


def folder_option(
    name: str, help_text: str, default: Path | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:  # fmt: skip
    """`-o FOLDER`, the folder that a verb writes into, passed as `name`."""
    return click.option(
        "-o", "--output", name, metavar="FOLDER", type=LocalPath(), default=default, show_default=default is not None,
        help=help_text,
    )  # fmt: skip
