"""What people decided about alerts: a file of the repository, a line of JSON for each decision; the last one counts."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Literal

import msgspec

from pipeprof.errors import UsageError
from pipeprof.record.document import BAD_JSON
from pipeprof.record.plain_file import read_file

FILE = "pipeprof-alerts.jsonl"
MOST = 1 << 24  # bytes of it


class Decision(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """`alert`: its name; `places`: the commits that it lay among, by which it is known again; `on`: an ISO day."""

    alert: str
    state: Literal["new", "acknowledged", "fixed", "wrong"]
    by: str
    why: str
    on: dt.date
    places: tuple[str, ...] = ()


def decisions(data: bytes, where: str) -> dict[str, Decision]:
    """The decision about each alert. Raises UsageError that names the line which cannot be read."""
    found: dict[str, Decision] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            decision = msgspec.json.decode(line, type=Decision)
        except BAD_JSON as error:
            raise UsageError(
                f"`{where}` line {number} is no decision: {error}",
                "write it with `pipeprof history WORKLOAD --alerts --decide ALERT=STATE --why REASON`",
            ) from error
        found.pop(decision.alert, None)
        found[decision.alert] = decision
    return found


def append(path: Path, decision: Decision) -> None:
    """Add a decision to the file, on a line of its own."""
    old = read_file(path, MOST) if path.exists() else b""
    decisions(old, str(path))
    with path.open("ab") as stream:
        stream.write((b"\n" if old and not old.endswith(b"\n") else b"") + msgspec.json.encode(decision) + b"\n")
