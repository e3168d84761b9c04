"""A comparison as JSON: what scripts and the check on GitHub read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pipeprof import escape

if TYPE_CHECKING:
    from collections.abc import Mapping


def text(content: Mapping[str, Any]) -> str:
    """The documented JSON, `schema_version` first, with a newline at the end."""
    return escape.json(json.dumps(content, indent=2, allow_nan=False)) + "\n"
