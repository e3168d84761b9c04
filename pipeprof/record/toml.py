"""TOML of people who may not be trusted: settings of the gate, sweeps."""

from __future__ import annotations

import re
from typing import Any

import msgspec

_MOST_DOTS = 1000  # of a line; each part of a dotted key costs the time of all before it
_MOST_DIGITS = 4000
_LONG_NUMBER = re.compile(rb"[0-9_]{%d}" % _MOST_DIGITS)


def decode(data: bytes) -> Any:
    """The content. Raises what `BAD_JSON` lists for what is no TOML, and for lines that no file of settings has."""
    if any(line.count(b".") > _MOST_DOTS for line in data.splitlines()):
        raise msgspec.DecodeError(f"a line has more than {_MOST_DOTS:,} dots")
    if _LONG_NUMBER.search(data):
        raise msgspec.DecodeError(f"a number has more than {_MOST_DIGITS:,} digits")
    return msgspec.toml.decode(data)
