"""Chrome events of a bare list, however long: a few MB at a time.

The text is cut between two events, and each piece is decoded at once. Where the quick cut is wrong (the same characters
inside an event), the brackets are counted. Numbers stay text until they are converted.
"""

from __future__ import annotations

import json
import re
from typing import IO, TYPE_CHECKING, Any, TypeVar

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.source.content import BROKEN, HINT, cannot_read, open_bytes
from pipeprof.record.bad_json import BAD_JSON

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK = 2 << 20
LARGEST_EVENT = 16 << 20
_WINDOW = 1 << 16
_SHORT = 1 << 11  # most events are
_SIGN = re.compile(rb'["{}\[\]]')
_BACKSLASH = ord("\\")
_CUT = re.compile(rb"\}\s*,\s*\{")
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


BARE = msgspec.json.Decoder(list[Bare])
_DECODER = msgspec.json.Decoder(list[Event])
_T = TypeVar("_T", bound=Bare)


def events(path: Path, chunk: int = CHUNK) -> Iterator[list[Event]]:
    """As `batches`, with arguments."""
    return batches(path, _DECODER, chunk)


def batches(path: Path, decoder: msgspec.json.Decoder[list[_T]], chunk: int = CHUNK) -> Iterator[list[_T]]:
    """Events in the order of the file, some thousands at a time.

    Raises SourceError where the file is damaged or cut off, after what stood in front of that.
    """
    place = 0
    try:
        with open_bytes(path) as file:
            rest = _begin(path, file)
            while True:
                data = file.read(max(chunk, len(rest)))  # twice as much where no event ended
                if not data:
                    yield from _last(path, rest, place, decoder)
                    return
                rest += data
                found, used = _decode(path, rest, place, decoder)
                if found:
                    yield found
                rest, place = rest[used:], place + used
                if len(rest) > LARGEST_EVENT:
                    raise SourceError(f"no event of `{path}` ends within {LARGEST_EVENT >> 20} MiB", HINT)
    except BROKEN as error:
        raise cannot_read(path, error, f", near byte {place}") from error


def _begin(path: Path, file: IO[bytes]) -> bytes:
    head = file.read(_WINDOW).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        raise SourceError(f"`{path}` is empty, expected a list", HINT)
    if not head.startswith(b"["):
        raise SourceError(f"`{path}` begins with `{head[:20].decode('utf-8', 'replace')}`, expected a list", HINT)
    return head[1:]


def _decode(
    path: Path, data: bytes, place: int, decoder: msgspec.json.Decoder[list[_T]]
) -> tuple[list[_T], int]:  # fmt: skip
    """Events up to the last cut, and how many bytes they are; nothing when there is no cut yet."""
    quick = _quick_cut(data)
    if quick is not None:
        try:
            return decoder.decode(b"[" + data[: quick[0]] + b"]"), quick[1]
        except BAD_JSON:
            pass
    cuts = _counted_cuts(data)
    if not cuts:
        return [], 0
    try:
        return decoder.decode(b"[" + data[: cuts[-1]] + b"]"), _behind(data, cuts[-1])
    except BAD_JSON as error:
        raise _damaged(path, data, cuts, place, error) from error


def _quick_cut(data: bytes) -> tuple[int, int] | None:
    """(end of an event, begin of the next) for the last `}, {` in the data."""
    end = len(data)
    for _ in range(8):
        end = data.rfind(b"},", 0, end)
        if end < 0:
            return None
        found = _CUT.match(data, end)
        if found:
            return end + 1, found.end() - 1
    return None


def _counted_cuts(data: bytes) -> list[int]:
    """Ends of the events in the data, by counting brackets outside strings."""
    depth, cuts = 0, []
    found = _SIGN.search(data)
    while found:
        sign, place = found[0], found.end()
        if sign == b'"':
            place = _string_end(data, place)
            if not place:
                break
        elif sign in b"{[":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                cuts.append(place)
            elif depth < 0:
                break
        found = _SIGN.search(data, place)
    return cuts


def _string_end(data: bytes, place: int) -> int:
    """Where a string ends that has begun in front of this place, behind its quote; 0 when it does not."""
    quote = data.find(b'"', place)
    while quote >= 0:
        slashes = quote
        while slashes > place and data[slashes - 1] == _BACKSLASH:
            slashes -= 1
        if (quote - slashes) % 2 == 0:
            return quote + 1
        quote = data.find(b'"', quote + 1)
    return 0


def _behind(data: bytes, end: int) -> int:
    """Where the next event begins, behind the comma."""
    rest = data[end : end + 256].lstrip()
    if rest.startswith(b","):
        return end + data[end : end + 256].index(b",") + 1
    return end


def _last(path: Path, data: bytes, place: int, decoder: msgspec.json.Decoder[list[_T]]) -> Iterator[list[_T]]:
    """What is left at the end of the file, which must be the list's end."""
    text = data.rstrip()
    if text.endswith(b"]"):
        body = text[:-1].rstrip().removesuffix(b",")
        try:
            yield decoder.decode(b"[" + body + b"]")
        except BAD_JSON as error:
            cuts = _counted_cuts(body)
            yield _sound(body, cuts, decoder)
            raise _damaged(path, body, cuts, place, error) from error
        return
    yield _sound(text, _counted_cuts(text), decoder)
    raise SourceError(f"`{path}` is cut off at byte {place + len(data)}: the list has no end", HINT)


def _sound(data: bytes, cuts: list[int], decoder: msgspec.json.Decoder[list[_T]]) -> list[_T]:
    """Events in front of the first one that cannot be decoded."""
    found: list[_T] = []
    begin = 0
    for cut in cuts:
        try:
            found += decoder.decode(b"[" + data[begin:cut] + b"]")
        except BAD_JSON:
            break
        begin = _behind(data, cut)
    return found


def _damaged(path: Path, data: bytes, cuts: list[int], place: int, error: Exception) -> SourceError:
    sound = len(_sound(data, cuts, BARE))
    near = place + (cuts[sound - 1] if 0 < sound <= len(cuts) else 0)
    return SourceError(f"damaged event in `{path}`, after byte {near}: {error}", HINT)


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
        place = data.find(mark, begin)
        while 0 <= place < limit:
            yield _enclosing(data, place, _SHORT) or _enclosing(data, place, _WINDOW)
            place = data.find(mark, place + len(mark))


def _enclosing(data: bytes, place: int, length: int) -> dict[str, Any] | None:
    """The event of at most this length around a place: from one of the brackets in front of it."""
    begin = place
    for _ in range(4):
        begin = data.rfind(b"{", max(0, place - length), begin)
        if begin < 0:
            return None
        text = data[begin : begin + length].decode("utf-8", "replace")
        try:
            found, _ = _JSON.raw_decode(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and "ph" in found:
            return found
    return None


_JSON = json.JSONDecoder(parse_float=str)
