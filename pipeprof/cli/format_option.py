"""The option `--format` of all verbs. What people read is called `terminal`; `table` is another name for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

TERMINAL, TABLE = "terminal", "table"
FORMS = ("html", "markdown", "json")  # that every report has beside it


class Form(click.Choice[str]):
    """One of the formats of a verb."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The format, `terminal` for its other name. Raises BadParameter."""
        return super().convert(TERMINAL if value == TABLE else value, param, ctx)


def format_option(*others: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--format`, passed as `form`: `terminal`, which is the default, or one of the others."""
    return click.option(
        "--format", "form", type=Form((TERMINAL, *others)), default=TERMINAL, show_default=True,
        help="Format of the output.",
    )  # fmt: skip
