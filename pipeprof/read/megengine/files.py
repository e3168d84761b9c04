"""Files of MegEngine: which is which, by the first 64 KiB and the last 4 of a timeline; what one gave, to the run."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.source.content import Content
from pipeprof.read.tables.rows import Rows
from pipeprof.read.tables.share import count, say_problems
from pipeprof.record import limits, store

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.record.run import Run


PROFILE, FOOTPRINT, TIMELINE, MEMORY_FLOW, STATIC_MEMORY, LOG = (
    "static-graph profile", "footprint dump", "chrome timeline", "memory flow", "static memory dump",
    "load_and_run log",
)  # fmt: skip
_PID = re.compile(r"([0-9]{1,9})\.")
_HEAD = 1 << 16
_TAIL = 1 << 12
_BLANK = rb"[ \t\r\n]*"


def _pattern(text: bytes) -> re.Pattern[bytes]:
    return re.compile(text.replace(b" ", _BLANK), re.DOTALL)


_GRAPH = rb'"graph_exec" : \{ ("(comp_seq|operator|var|mem_chunk)" : [\[{]|\})'
_PROFILER = rb'"profiler" : \{ ("(device|host|opr_footprint|opr_internal_pf|graph_exec)" : \{|\})'
_STARTS = (
    (PROFILE, _pattern(rb" \{ (" + _GRAPH + rb"|" + _PROFILER + rb")")),
    (FOOTPRINT, _pattern(rb' \{ "opr_footprint" : \{')),
    (STATIC_MEMORY, _pattern(rb' \{ "(chunk|opr)" : \{ ("[^"]*" : \{[^{}]*"id" : "[^{}]*\}|\})')),
)
_EVENTS = _pattern(rb' (\{ (.*"traceEvents" :)? )?\[ (\{|\])')
_LOCAL_TIME = _pattern(rb'"metadata" : \{ "localTime" : "\d+"')
# Generations before the current one: a first event with the clock, or threads that are named "host" and by device.
_CLOCK_EVENT = _pattern(rb'"name" : "Metadata"[^\]]{0,400}"localTime"|"localTime"[^\]]{0,400}"name" : "Metadata"')
_NAMED_TRACK = _pattern(rb'"tid" : "(host|CompNode\(|(x?[a-z]+)(x|\d+):)')
# The current one has its clock at the end; where that was cut off, words that only this profiler writes.
_OWN_WORD = _pattern(rb'"(name" : "(OpDispatch|StopStep)|__device__" : )"')
_LOG_LINE = re.compile(
    rb"^(?:\[[^\]\n]{1,200}\]\[[A-Za-z]+\] ?)?(?:=== prepare: \d|=== going to run (?:input|test #)"
    rb"|=== finished test #\d|iter \d+/\d+: (?:e2e=)?\d[\d.]* ?ms \()",
    re.MULTILINE,
)
_FOREIGN = re.compile(rb'"(schemaVersion|deviceProperties|distributedInfo|record_shapes)"')


def identify(path: Path) -> str | None:
    """What a file is, one of the names above; None for others. Raises SourceError when it cannot be read."""
    with Content(path) as file:
        head, tail = _ends(file)
    if b"megengine.org.cn" in head and b"<svg" in head:
        return MEMORY_FLOW
    for kind, start in _STARTS:
        if start.match(head) and (kind != STATIC_MEMORY or b"logic_addr" in head or b"overwrite_dest" in head + tail):
            return kind
    if _EVENTS.match(head):
        return TIMELINE if _is_timeline(head, tail) else None
    return LOG if _LOG_LINE.search(head) else None


def _ends(file: Content) -> tuple[bytes, bytes]:
    """The head and, of what may be a timeline or a memory plan, the tail; empty where a packed file is damaged."""
    try:
        head = file.read(_HEAD)
    except SourceError:
        return b"", b""
    if _FOREIGN.search(head) or not (_EVENTS.match(head) or _STARTS[-1][1].match(head)):
        return head, b""
    try:
        return head, (head + file.end(_TAIL))[-_TAIL:]
    except SourceError:
        return head, b""


def _is_timeline(head: bytes, tail: bytes) -> bool:
    if _FOREIGN.search(head):
        return False
    return bool(_LOCAL_TIME.search(tail) or _LOCAL_TIME.search(head) or _CLOCK_EVENT.search(head[:4096])) or bool(
        _NAMED_TRACK.search(head) or _OWN_WORD.search(head)
    )


def by_pid(path: Path) -> tuple[int, str]:
    """Files in the order of the process numbers that their names begin with; 0 without one."""
    match = _PID.match(path.name)
    return (int(match[1]) if match else 0, str(path))


@dataclass
class FileRows:
    """Rows per table in schema order; times are ns since the file's own zero, which is `zero_ns` since the epoch."""

    tables: Rows = field(default_factory=lambda: Rows(0, 0, most=limits.most_imported_rows(in_memory=True)))
    zero_ns: int | None = None
    end_ns: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    damage: SourceError | None = None


def write(file: FileRows, run: Run, rep: int, rank: int, damage: list[SourceError], part: int = 0) -> None:
    """Write the rows of a file, count them, and say what was wrong with it."""
    for table, rows in file.tables.rows.items():
        count(run.manifest, table, store.write(run, table, rep, rank, rows, part))
    say_problems(run.manifest, file.problems, rep, rank)
    if file.damage is not None:
        damage.append(file.damage)
