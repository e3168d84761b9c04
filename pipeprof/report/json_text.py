"""The report as JSON, for programs: `schema_version` first, additions allowed, meanings never change."""

from __future__ import annotations

from typing import Any

import msgspec


def text(content: dict[str, Any]) -> str:
    """Indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"
