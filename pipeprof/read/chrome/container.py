"""Where the events lie in a trace file, and cutting them into batches without holding the file in memory.

A trace is an object with `traceEvents`, or the bare list (torch_npu, MindSpore), plain or gzipped. Batches are cut
where one event ends and the next begins; a batch that cannot be read as a whole is taken apart event by event.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.chrome.events import UNREADABLE, decode, decode_one
from pipeprof.read.source.content import HINT, Content

CHUNK = 1 << 20
LARGEST_EVENT = 1 << 26
LARGEST_HEADER = 1 << 24
_WINDOW = 1 << 16
_NAMED = 5  # places of damage
_LARGE_EVENT = 1 << 21  # one that is longer is taken for a damaged one when another begins in it
_BLANK = b" \t\r\n,"
_EVENTS = re.compile(rb'\A\s*\[|"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s)"\s*:)')
_BETWEEN_ANY = re.compile(rb"\}\s*,\s*(?=\{)")
_HEADER = msgspec.json.Decoder(dict[str, Any])
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)


class Batch(NamedTuple):
    """Some events in the order of the file, and the JSON array they were read from."""

    events: list[Any]
    text: bytes


class Decoders(NamedTuple):
    """Of a list of events, which raises one of UNREADABLE, and of one, as far as it can be read (`decode_one`)."""

    many: Callable[[bytes], list[Any]] = decode
    one: Callable[[bytes], tuple[Any, bool]] = decode_one


class Scanned(NamedTuple):
    """Where objects lie, where the first that is not whole begins, and if the list's end or a wrong bracket was met."""

    spans: list[tuple[int, int]]
    stop: int
    ended: bool
    broken: bool


class OwnRank(msgspec.Struct, frozen=True):
    """A rank of a trace that `pipeprof timeline` wrote: its process, repetition, number and host."""

    pid: int
    rep: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    rank: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    host: str = ""


class Header(msgspec.Struct):
    """What a trace says about itself beside its events. Fields of an unexpected form are as if they were absent."""

    fields: dict[str, Any]

    @property
    def base_ns(self) -> int:
        """Added to every time: `baseTimeNanoseconds`, a number or text."""
        try:
            return int(self.fields.get("baseTimeNanoseconds") or 0)
        except (TypeError, ValueError):
            return 0

    @property
    def ranks(self) -> dict[int, OwnRank]:
        """Which process is which rank, in a trace that `pipeprof timeline` wrote; empty for any other."""
        about = self.fields.get("pipeprof")
        try:
            own = msgspec.convert(about.get("ranks") if isinstance(about, dict) else [], list[OwnRank])
        except UNREADABLE:
            return {}
        return {one.pid: one for one in own}

    @property
    def rank(self) -> int | None:
        """The rank in `distributedInfo`; None when it does not say."""
        info = self.fields.get("distributedInfo")
        rank = info.get("rank") if isinstance(info, dict) else None
        return rank if isinstance(rank, int) and 0 <= rank < 2**31 else None


class TraceFile:
    """One file, read once from front to end.

    `header` has what stands in front of the events from the first batch on, and is whole after the last; then `damage`
    says what was wrong, `damaged` how many events were left out, and `mended` how many were read though damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header = Header({})
        self.damage: list[str] = []
        self.damaged = 0
        self.mended = 0
        self._offset = 0  # of what is at hand in the file
        self._broken = False

    def _read(self, file: Content, size: int) -> bytes:
        """The next bytes; up to where a packed file is damaged, if it is."""
        if self._broken:
            return b""
        try:
            return file.read(size)
        except SourceError as error:
            self._broken = True
            self._note(f"the file ends too early or is damaged ({error.__cause__})", 0)
            return b""

    def _note(self, what: str, within: int | None = None, count: int = 1) -> None:
        """Count damage, the first of it with its place: `within` what is at hand."""
        self.damaged += count
        if len(self.damage) < _NAMED:
            self.damage.append(what if within is None else f"{what} at byte {self._offset + within}")


class Trace(TraceFile):
    """A Chrome trace."""

    def __init__(
        self, path: Path, decoders: Decoders | None = None, chunk: int = CHUNK, largest: int = 0,
        *, is_open: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(path)
        self._decoders = decoders or Decoders()
        self._chunk = chunk
        self._largest = largest or LARGEST_EVENT  # bytes of an event
        self._is_open = is_open  # whether a bare list may lack its end, as the format says
        self._prefix = b""
        self._ended = False

    def batches(self) -> Iterator[Batch]:
        """The events. Raises SourceError when the file cannot be opened or has no list of events."""
        with Content(self.path) as file:
            buffer = self._begin(file)
            while not self._ended:
                more = self._read(file, max(self._chunk, len(buffer)))
                buffer += more
                cut = _last_between(buffer) if more else (len(buffer), len(buffer))
                stop = 0
                if cut is not None:
                    batch, stop = self._batch(buffer, cut, last=not more)
                    if batch.events:
                        yield batch
                if not more and not self._ended:
                    if buffer[stop:].strip(_BLANK) or self._broken or not (self._is_open and self._is_bare()):
                        self._note("the file ends inside the list of events", len(buffer))
                    break
                if not stop and len(buffer) > self._largest:
                    self._note(f"an event of more than {self._largest >> 20} MiB, nothing after it was read", 0)
                    break
                self._offset += stop
                buffer = buffer[stop:]
            after = buffer + self._read(file, LARGEST_HEADER) if self._ended else b"]}"
        self._read_header(after)

    def _begin(self, file: Content) -> bytes:
        buffer = b""
        while (match := _EVENTS.search(buffer)) is None:
            more = self._read(file, CHUNK)
            buffer += more
            if not more and not buffer.strip() and not self.damage:
                raise SourceError(f"`{self.path}` is empty, expected a list of events", HINT)
            if not more or len(buffer) > LARGEST_HEADER:
                why = f": {self.damage[0]}" if self.damage else ""
                raise SourceError(
                    f"no events in `{self.path}`{why}, expected a chrome trace with `traceEvents`, or a list of events",
                    "give the *.pt.trace.json (or .json.gz) that export_chrome_trace wrote",
                )
        self._prefix, self._offset = buffer[: match.end()], match.end()
        self._read_header(b"]}")
        return buffer[match.end() :]

    def _batch(self, buffer: bytes, cut: tuple[int, int], *, last: bool) -> tuple[Batch, int]:
        """The events up to a cut, and how much of the buffer was used up."""
        if not last:
            array = b"[" + buffer[: cut[0]] + b"]"
            try:
                return Batch(self._decoders.many(array), array), cut[1]
            except UNREADABLE:
                pass
        events: list[Any] = []
        texts: list[bytes] = []
        used = 0
        while True:
            scanned = scan(buffer[used : cut[0]])
            self._ended = scanned.ended
            self._take(buffer, [(used + begin, used + end) for begin, end in scanned.spans], events, texts)
            used += scanned.stop
            if self._ended or not buffer[used : cut[0]].strip(_BLANK):
                break
            if not (last or scanned.broken or cut[0] - used > _LARGE_EVENT):
                break  # it may go on behind the cut
            following = _next_readable(buffer[used : cut[0]], self._decoders)
            if following is None:
                break
            self._note("an event that is not JSON", used)
            used += following
        if not self._ended:
            used += len(buffer[used:]) - len(buffer[used:].lstrip(_BLANK))
        return Batch(events, b"[" + b",".join(texts) + b"]"), used

    def _take(self, text: bytes, spans: list[tuple[int, int]], events: list[Any], texts: list[bytes]) -> None:
        previous = spans[0][0] if spans else 0
        for begin, end in spans:
            if text[previous:begin].strip(_BLANK):
                self._note("text between events", previous)
            previous = end
            event, mended = self._decoders.one(text[begin:end])
            self.mended += mended and event is not None
            if event is None:
                self._note("an event that is not as expected", begin)
            else:
                events.append(event)
                texts.append(text[begin:end])

    def _is_bare(self) -> bool:
        return self._prefix.lstrip()[:1] != b"{"

    def _read_header(self, after: bytes) -> None:
        if self._is_bare():
            return
        for text in (self._prefix + after, self._prefix + b"]}"):
            header, _ = decode_one(text, _HEADER)
            if header is not None:
                self.header = Header({**header, **self.header.fields})
                return


def scan(text: bytes) -> Scanned:
    """Cut a list into its objects by strings and brackets alone, at any depth."""
    spans: list[tuple[int, int]] = []
    open_: list[int] = []
    begin = stop = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first == 0x22:
            continue
        if first in b"{[":
            begin = begin if open_ else token.start()
            open_.append(first + 2)  # in ASCII the closing bracket is two behind the opening one
        elif not open_:
            return Scanned(spans, token.start(), ended=True, broken=False)
        elif open_.pop() != first:
            return Scanned(spans, stop, ended=False, broken=True)
        elif not open_:
            spans.append((begin, token.end()))
            stop = token.end()
    return Scanned(spans, stop, ended=False, broken=False)


def _last_between(text: bytes) -> tuple[int, int] | None:
    """Where the last event that is whole ends, and where the next begins; near the end, else anywhere."""
    near = max(0, len(text) - _WINDOW)
    for pattern, start in ((_BETWEEN, near), (_BETWEEN, 0), (_BETWEEN_ANY, near)):
        match = None
        for match in pattern.finditer(text, start):  # noqa: B007 - the last one counts
            pass
        if match is not None:
            return match.start() + 1, match.end()
    return None


def _next_readable(text: bytes, decoders: Decoders) -> int | None:
    """Where, after a damaged event, one begins that can be read."""
    for number, match in enumerate(_BETWEEN.finditer(text, 1)):
        spans = scan(text[match.end() : match.end() + CHUNK]).spans
        if spans:
            event, _ = decoders.one(text[match.end() + spans[0][0] : match.end() + spans[0][1]])
            if event is not None and event.ph:
                return match.end()
        if number > 20:
            break
    return None
