"""The option `--budget` of verbs that run a command many times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeprof.units import seconds_from_text

if TYPE_CHECKING:
    from collections.abc import Callable


def budget_option(limits: str, without: str = "no limit") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`--budget TIME`, passed as seconds: what it limits, and what holds without it: words, or a time."""
    is_time = without[:1].isdigit()
    end = "" if is_time else f"  [default: {without}]"
    return click.option(
        "--budget", metavar="TIME", callback=seconds, default=without if is_time else None, show_default=is_time,
        help=f"{limits}: in seconds, or with a unit, such as 10m or 1h30m.{end}",
    )  # fmt: skip


def seconds(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    """Seconds, above 0, from `90`, `90s`, `10m`, `1h30m`; None for none. Raises BadParameter."""
    if text is None:
        return None
    total = seconds_from_text(text)
    if total is None:
        raise click.BadParameter(f"`{text}` is not a time: expected seconds, or for example 10m or 1h30m")
    return total
