"""The option `--redact` of verbs that record: what else must not be kept of commands, variables and messages."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

from pipeprof.errors import BAD_PATTERN

if TYPE_CHECKING:
    from collections.abc import Callable


def _add(ctx: click.Context, _param: click.Parameter, patterns: tuple[str, ...]) -> None:
    """Put the patterns into the environment, where every process of the job finds them. Raises BadParameter."""
    from pipeprof.collect.probe.redact import VARIABLE

    for pattern in patterns:
        if "\n" in pattern:
            shown = pattern.replace("\n", "\\n")
            raise click.BadParameter(f"`{shown}` has several lines: give a --redact for each pattern")
        try:
            empty = re.compile(pattern).match("") is not None
        except BAD_PATTERN as error:
            raise click.BadParameter(f"`{pattern}` is not a regular expression: {error}") from error
        if empty:
            raise click.BadParameter(
                f"`{pattern}` matches the empty text: expected a pattern of at least one character"
            )
    if patterns and not ctx.resilient_parsing:
        os.environ[VARIABLE] = "\n".join(filter(None, [os.environ.get(VARIABLE), *patterns]))


redact_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--redact",
    metavar="PATTERN",
    multiple=True,
    callback=_add,
    expose_value=False,
    help="Also mask what this regular expression matches (as ***); may be repeated (or variable PIPEPROF_REDACT).",
)
