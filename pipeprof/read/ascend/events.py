"""Events of a trace of these profilers, which are a bare list, however long: a few MB at a time.

Numbers stay text until they are converted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.chrome.container import CHUNK, Decoders, Trace
from pipeprof.read.chrome.events import decode_one
from pipeprof.read.source.content import BROKEN, HINT, open_bytes

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
    before = b""
    try:
        with open_bytes(path) as file:
            while data := file.read(CHUNK):
                ahead = before + data
                limit = len(ahead) - (_WINDOW if len(data) == CHUNK else 0)
                yield from _around(ahead, marks, min(len(before), _WINDOW), limit)
                before = ahead[max(0, limit - _WINDOW) :]
    except BROKEN:
        return


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
