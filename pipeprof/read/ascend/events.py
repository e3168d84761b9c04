"""Events of a trace of these profilers, which are a bare list, however long: a few MB at a time.

Numbers stay text until they are converted.
"""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any, TypeVar

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.chrome.container import CHUNK, Decoders, Trace
from pipeprof.read.chrome.events import decode_one
from pipeprof.read.source.content import BROKEN, HINT
from pipeprof.record.plain_file import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeprof.read.source.notes import Notes

LARGEST_EVENT = 16 << 20
_WINDOW = 1 << 16
_SHORT = 1 << 11  # most events are
_NOTHING = msgspec.Raw(b"")


class Bare(msgspec.Struct, gc=False):
    """What is read of every event; `ts` and `dur` as they stand in the file."""

    ph: Any = None
    name: Any = None
    cat: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING


class Event(Bare, gc=False):
    """An event with its `args`, as they stand in the file."""

    args: msgspec.Raw = _NOTHING


_T = TypeVar("_T", bound=Bare)


def events(path: Path, kind: type[_T], notes: Notes, chunk: int = CHUNK) -> Iterator[list[_T]]:
    """Events of a kind (`Bare`, or `Event`) in the order of the file, some thousands at a time.

    What is damaged is passed over, and raised as SourceError after the last event.
    """
    many, one = msgspec.json.Decoder(list[kind]), msgspec.json.Decoder(kind)  # type: ignore[valid-type]
    trace = Trace(path, Decoders(many.decode, lambda text: decode_one(text, one)), chunk, LARGEST_EVENT)
    for batch in trace.batches():
        yield batch.events
    notes.count(path, "NaN, or bytes that are not UTF-8, in an event", trace.mended)
    if trace.damage:
        more = f" (and {trace.damaged - 1} more)" if trace.damaged > 1 else ""
        raise SourceError(f"damaged `{path}`: {trace.damage[0]}{more}", HINT)


def marked(path: Path, marks: tuple[bytes, ...]) -> Iterator[dict[str, Any] | None]:
    """Events whose text holds one of the marks, found without decoding the others; None for a mark in no such event.

    Raises nothing for a damaged end.
    """
    ahead, begin = b"", 0
    try:
        with open_file(path) as file:
            while True:
                data = _next(file)
                ahead += data
                limit = max(0, len(ahead) - (_WINDOW if data else 0))  # an event may go on behind it
                yield from _around(ahead, marks, begin, limit)
                if not data:
                    return
                kept = max(0, limit - _WINDOW)
                ahead, begin = ahead[kept:], limit - kept
    except BROKEN:
        return


def _next(file: IO[bytes]) -> bytes:
    """The next bytes; none at the end, or where the file is damaged."""
    try:
        return file.read(CHUNK)
    except BROKEN:
        return b""


def _around(data: bytes, marks: tuple[bytes, ...], begin: int, limit: int) -> Iterator[dict[str, Any] | None]:
    for mark in marks:
        at = data.find(mark, begin)
        while 0 <= at < limit:
            yield _enclosing(data, at, _SHORT) or _enclosing(data, at, _WINDOW)
            at = data.find(mark, at + len(mark))


def _enclosing(data: bytes, at: int, length: int) -> dict[str, Any] | None:
    """The event of at most this length around a place: from one of the brackets in front of it."""
    begin = at
    for _ in range(4):
        begin = data.rfind(b"{", max(0, at - length), begin)
        if begin < 0:
            return None
        text = data[begin : begin + length].decode("utf-8", "replace")
        try:
            event, _ = _JSON.raw_decode(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and "ph" in event:
            return event
    return None


_JSON = json.JSONDecoder(parse_float=str)
