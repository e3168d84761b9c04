"""The report as JSON, for programs: `schema_version` first, additions allowed, meanings never change."""

from __future__ import annotations

from typing import Any

import msgspec

from pipeprof import escape
from pipeprof.record.text import printable_all


def text(content: dict[str, Any]) -> str:
    """Indented JSON with a final newline."""
    try:
        encoded = msgspec.json.encode(content)
    except UnicodeEncodeError:  # the name of a run that is bytes and no text
        encoded = msgspec.json.encode(printable_all(content))
    return escape.json(msgspec.json.format(encoded, indent=2).decode()) + "\n"
