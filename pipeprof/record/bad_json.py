"""What msgspec raises for JSON that is damaged, not UTF-8, or nested too deeply."""

from __future__ import annotations

import msgspec

from pipeprof.record import limits

BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_VALUE, _LIST, _OBJECT = 64, 72, 240  # bytes that a small one of each takes in Python


def refuse_many_values(data: bytes) -> None:
    """Raises DecodeError for JSON whose values would take more memory than queries may: `{},{},` grows 30 times."""
    values, lists, objects = (data.count(sign) for sign in (b",", b"[", b"{"))
    most = limits.most_memory()
    if values * _VALUE + lists * _LIST + objects * _OBJECT > most:
        raise msgspec.DecodeError(f"its values take more than {most >> 20} MiB; {limits.raised_by(limits.MEMORY)}")
