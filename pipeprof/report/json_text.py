"""The report as JSON, for programs: `schema_version` first, additions allowed, meanings never change."""

from __future__ import annotations

from typing import Any

import msgspec

from pipeprof import escape
from pipeprof.record.text import printable_all


def text(content: dict[str, Any]) -> str:
    """Indented JSON with a final newline."""
    return escape.json(msgspec.json.format(_encoded(content), indent=2).decode()) + "\n"


def line(content: dict[str, Any]) -> str:
    """JSON on one line, with a final newline."""
    return escape.json(_encoded(content).decode()) + "\n"


def _encoded(content: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(content)
    except UnicodeEncodeError:  # the name of a run that is bytes and no text
        return msgspec.json.encode(printable_all(content))
