"""What msgspec raises for JSON that is damaged, not UTF-8, or nested too deeply."""

from __future__ import annotations

import msgspec

BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
