"""The part `cpu_account` of a report: who used the CPU, what could be had, and who took too much of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.query.rows import HostAccount, HostRoom, typed
from pipeprof.verdict.account import find_contention

if TYPE_CHECKING:
    from pipeprof.query.engine import Engine


def account_of(engine: Engine) -> dict[str, Any]:
    """`parts` and `room` are rows of the queries; `contention` is the verdict, null when nobody is named."""
    parts, room = engine.rows("host/account"), engine.rows("host/room")
    contention = find_contention(typed(HostAccount, parts), typed(HostRoom, room))
    return {"parts": parts, "room": room, "contention": contention}
