"""Chrome events of a bare list, however long: a few MB at a time.

The text is cut between two events, and each piece is decoded at once. Where the quick cut is wrong (the same characters
inside an event), the brackets are counted. Numbers stay text until they are converted.
"""

from __future__ import annotations

import json
import re
from typing import IO, TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.ascend.files import BROKEN, HINT, NOT_JSON, cannot_read, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK = 2 << 20
LARGEST_EVENT = 32 << 20
_WINDOW = 1 << 16
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_CUT = re.compile(rb"\}\s*,\s*\{")
_NOTHING = msgspec.Raw(b"")


class Event(msgspec.Struct, gc=False):
    """What is read of an event; `pid`, `tid`, `ts`, `dur` and `args` as they stand in the file."""

    ph: Any = None
    name: Any = None
    cat: Any = None
    pid: msgspec.Raw = _NOTHING
    tid: msgspec.Raw = _NOTHING
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING
    args: msgspec.Raw = _NOTHING


_DECODER = msgspec.json.Decoder(list[Event])


def batches(path: Path, chunk: int = CHUNK) -> Iterator[list[Event]]:
    """Events in the order of the file, some thousands at a time.

    Raises SourceError where the file is damaged or cut off, after what stood in front of that.
    """
    place = 0
    try:
        with open_bytes(path) as file:
            rest = _begin(path, file)
            while True:
                data = file.read(chunk)
                if not data:
                    yield from _last(path, rest, place)
                    return
                rest += data
                found, used = _decode(path, rest, place)
                if found:
                    yield found
                rest, place = rest[used:], place + used
                if len(rest) > LARGEST_EVENT:
                    raise SourceError(f"no event of `{path}` ends within {LARGEST_EVENT >> 20} MiB", HINT)
    except BROKEN as error:
        raise cannot_read(path, error, f", near byte {place}") from error


def _begin(path: Path, file: IO[bytes]) -> bytes:
    head = file.read(_WINDOW).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head.startswith(b"["):
        raise SourceError(f"`{path}` begins with `{head[:20].decode('utf-8', 'replace')}`, expected a list", HINT)
    return head[1:]


def _decode(path: Path, data: bytes, place: int) -> tuple[list[Event], int]:
    """Events up to the last cut, and how many bytes they are; nothing when there is no cut yet."""
    quick = _quick_cut(data)
    if quick is not None:
        try:
            return _DECODER.decode(b"[" + data[: quick[0]] + b"]"), quick[1]
        except NOT_JSON:
            pass
    cuts = _counted_cuts(data)
    if not cuts:
        return [], 0
    try:
        return _DECODER.decode(b"[" + data[: cuts[-1]] + b"]"), _behind(data, cuts[-1])
    except NOT_JSON as error:
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
    for token in _TOKEN.finditer(data):
        sign = token[0][:1]
        if sign in b"{[":
            depth += 1
        elif sign in b"}]":
            depth -= 1
            if depth == 0:
                cuts.append(token.end())
            elif depth < 0:
                break
    return cuts


def _behind(data: bytes, end: int) -> int:
    """Where the next event begins, behind the comma."""
    rest = data[end : end + 256].lstrip()
    if rest.startswith(b","):
        return end + data[end : end + 256].index(b",") + 1
    return end


def _last(path: Path, data: bytes, place: int) -> Iterator[list[Event]]:
    """What is left at the end of the file, which must be the list's end."""
    text = data.rstrip()
    if text.endswith(b"]"):
        body = text[:-1].rstrip().removesuffix(b",")
        try:
            yield _DECODER.decode(b"[" + body + b"]")
        except NOT_JSON as error:
            cuts = _counted_cuts(body)
            yield _sound(body, cuts)
            raise _damaged(path, body, cuts, place, error) from error
        return
    yield _sound(text, _counted_cuts(text))
    raise SourceError(f"`{path}` is cut off at byte {place + len(data)}: the list has no end", HINT)


def _sound(data: bytes, cuts: list[int]) -> list[Event]:
    """Events in front of the first one that cannot be decoded."""
    found: list[Event] = []
    begin = 0
    for cut in cuts:
        try:
            found += _DECODER.decode(b"[" + data[begin:cut] + b"]")
        except NOT_JSON:
            break
        begin = _behind(data, cut)
    return found


def _damaged(path: Path, data: bytes, cuts: list[int], place: int, error: Exception) -> SourceError:
    sound = len(_sound(data, cuts))
    near = place + (cuts[sound - 1] if 0 < sound <= len(cuts) else 0)
    return SourceError(f"damaged event in `{path}`, behind byte {near}: {error}", HINT)


def marked(path: Path, marks: tuple[bytes, ...]) -> Iterator[dict[str, Any]]:
    """Events whose text holds one of the marks, found without decoding the others. Raises nothing for a damaged end."""
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


def _around(data: bytes, marks: tuple[bytes, ...], begin: int, limit: int) -> Iterator[dict[str, Any]]:
    for mark in marks:
        place = data.find(mark, begin)
        while 0 <= place < limit:
            found = _enclosing(data, place)
            if found is not None:
                yield found
            place = data.find(mark, place + len(mark))


def _enclosing(data: bytes, place: int) -> dict[str, Any] | None:
    """The event around a place: from one of the brackets in front of it."""
    begin = place
    for _ in range(4):
        begin = data.rfind(b"{", max(0, place - _WINDOW), begin)
        if begin < 0:
            return None
        text = data[begin : begin + _WINDOW].decode("utf-8", "replace")
        try:
            found, _ = _JSON.raw_decode(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and "ph" in found:
            return found
    return None


_JSON = json.JSONDecoder(parse_float=str)
