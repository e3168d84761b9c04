"""A path of this machine, as the type of an argument or option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pipeprof.errors import UsageError


class LocalPath(click.Path):
    """A path that is no URL: one taken for the name of a folder would lose its second slash, and the run in it."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises UsageError for a URL."""
        if isinstance(value, str) and "://" in value:
            from pipeprof.record.objects import without_secrets

            raise UsageError(
                f"`{without_secrets(value)}` is a URL: expected a path on this machine",
                "`runs`, `fleet`, `history` and verbs that take RUN read URLs; `pipeprof push RUN URL` uploads a run",
            )
        return super().convert(value, param, ctx)
