"""Events of a trace of these profilers, which are a bare list, however long: a few MB at a time.

Numbers stay text until they are converted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.chrome.container import CHUNK, Decoders, Trace
from pipeprof.read.chrome.events import decode_one
from pipeprof.read.source.content import HINT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeprof.read.source.notes import Notes

LARGEST_EVENT = 16 << 20
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


def events(
    path: Path, kind: type[_T], notes: Notes, chunk: int = CHUNK, marks: Sequence[bytes] = (b"",)
) -> Iterator[list[_T]]:
    """Events of a kind (`Bare`, or `Event`) in the order of the file, some thousands at a time.

    Where some thousands have none of the `marks` in their text, they are left out undecoded. What is damaged is passed
    over, and raised as SourceError after the last event.
    """
    many, one = msgspec.json.Decoder(list[kind]), msgspec.json.Decoder(kind)  # type: ignore[valid-type]
    decoders = Decoders(
        lambda text: many.decode(text) if any(mark in text for mark in marks) else [],
        lambda text: decode_one(text, one),
    )
    trace = Trace(path, decoders, chunk, LARGEST_EVENT)
    for batch in trace.batches():
        yield batch.events
    notes.count(path, "NaN, or bytes that are not UTF-8, in an event", trace.mended)
    if trace.damage:
        more = f" (and {trace.damaged - 1} more)" if trace.damaged > 1 else ""
        raise SourceError(f"damaged `{path}`: {trace.damage[0]}{more}", HINT)
