"""Options that take a time, such as `--budget 10m`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS: Mapping[str, float] = {"s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[smh])+")


def seconds(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    """Seconds, above 0, from `90`, `90s`, `10m`, `1h30m`; None for none. Raises BadParameter."""
    if text is None:
        return None
    whole = text.strip() if text.strip()[-1:] in _SECONDS else f"{text.strip()}s"
    found = 0.0
    if _DURATION.fullmatch(whole):
        found = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9.]+)([smh])", whole))
    if found <= 0:
        raise click.BadParameter(f"`{text}` is no time: expected seconds, or for example 10m or 1h30m")
    return found
