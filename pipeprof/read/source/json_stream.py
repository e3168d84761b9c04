"""A big JSON document read member by member in bounded memory, at the speed of a C decoder.

Maps and lists with very many entries are cut into batches of whole entries. A cut is guessed (a brace, a comma and a
key that looks like those of the map) and then proved: the bytes up to it, put in brackets, must decode. An object's
text is never a prefix of another object, so what decodes was cut in the right place.
"""

from __future__ import annotations

import codecs
import gc
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.source.content import HINT, Content
from pipeprof.record.document import BAD_JSON


@contextmanager
def without_collector() -> Iterator[None]:
    """Millions of small objects and no cycles: looking for those would only take time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


CHUNK = 1 << 20
LARGEST = 48 << 20  # bytes of one entry
_TAIL, _TRIES = 1 << 15, 4
_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_KEY = re.compile(rb"[ \t\r\n]*(" + _STRING + rb")[ \t\r\n]*:", re.DOTALL)
_BLANK = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"(" + _STRING + rb"|[-+.0-9A-Za-z]+)", re.DOTALL)
_TOKEN = re.compile(_STRING + rb"|[\[\]{},]", re.DOTALL)
_PLACE = re.compile(r"\(byte (\d+)\)")
_CLOSING = {b"{": b"}", b"[": b"]"}
# Where an entry may begin: behind a value, with a key such as "52" or "chk5", or with another object of a list.
_NEXT_ENTRY = {
    b"{": re.compile(rb'[}\]][ \t\r\n]*,(?=[ \t\r\n]*"[a-z]{0,3}[0-9]{1,20}"[ \t\r\n]*:)'),
    b"[": re.compile(rb'[}"0-9][ \t\r\n]*,(?=[ \t\r\n]*[{"0-9])'),
}
_SHORT_KEY, _ALIKE = re.compile(rb'"[a-z]{0,3}[0-9]'), 5  # bytes in which other keys of a map are alike
_NEXT_LIKE = rb"[}\]][ \t\r\n]*,(?=[ \t\r\n]*%s)"
_NEXT_OBJECT = re.compile(rb"\}[ \t\r\n]*,(?=[ \t\r\n]*\{)")
_NO_NUMBER = re.compile(rb"(?:(?<=[:,\[\s])|\A)[-+]?(?:NaN|Infinity)\b")
_WORD = 16  # letters: more are no such word
_anything, _skim = msgspec.json.Decoder(Any), msgspec.json.Decoder(msgspec.Raw)
_LOOSE = msgspec.json.Decoder(dict[str, Any], float_hook=str), msgspec.json.Decoder(Any, float_hook=str)
_raw_map, _raw_list = msgspec.json.Decoder(dict[str, msgspec.Raw]), msgspec.json.Decoder(list[msgspec.Raw])


def of_map(kind: Any) -> tuple[msgspec.json.Decoder[Any], msgspec.json.Decoder[Any]]:
    """What decodes a batch of a map, and one entry of it."""
    return msgspec.json.Decoder(dict[str, kind]), msgspec.json.Decoder(kind)


def of_list(kind: Any) -> tuple[msgspec.json.Decoder[Any], msgspec.json.Decoder[Any]]:
    """As `of_map`, of a list."""
    return msgspec.json.Decoder(list[kind]), msgspec.json.Decoder(kind)


def entries(path: Path, depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(keys, value) of every entry that is `depth` objects deep, in the order of the file.

    Numbers with a fraction or an exponent are their text. What is no object where one is expected is passed over.
    Raises SourceError where the file is damaged, cut off or holds anything but an object, after what stood in front.
    """
    with Content(path) as file, without_collector():
        scan = Scan(file, path, mends=True)
        if scan.at_end():
            raise SourceError(f"`{path}` is empty, expected an object", HINT)
        if scan.peek() != b"{":
            raise SourceError(
                f"`{path}` begins with `{scan.peek().decode('utf-8', 'replace')}`, expected an object", HINT
            )
        yield from _inside(scan, (), depth)
        if not scan.at_end():
            raise SourceError(f"`{path}` goes on after its end", HINT)


def _inside(scan: Scan, keys: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Entries of the object at hand."""
    if len(keys) + 1 == depth:
        for batch in scan.maps(*_LOOSE):
            yield from (((*keys, name), value) for name, value in batch.items())
        return
    for name in scan.members():
        if scan.peek() == b"{":
            yield from _inside(scan, (*keys, name), depth)
        else:
            scan.skip()


class CutOffError(SourceError):
    """The file ends inside a value."""


class Scan:
    """A position in a JSON file. `problems` counts the entries that were left out, by what was wrong with them.

    One that `mends` takes NaN and infinity for null, and replaces what is not UTF-8.
    """

    def __init__(self, file: Content, path: Path, *, mends: bool = False) -> None:
        self._file = file
        self._path = path
        self._text = codecs.getincrementaldecoder("utf-8")("replace") if mends else None
        self._buffer = b""
        self._at = self._base = 0
        self._ended = False
        self._unreadable: SourceError | None = None
        self.problems: Counter[str] = Counter()

    def peek(self) -> bytes:
        """The next byte that is not blank; raises CutOffError at the end of the file."""
        while True:
            blank = _BLANK.match(self._buffer, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._fill():
                raise self.cut_off()

    def at_end(self) -> bool:
        """Whether nothing but blanks follows."""
        with suppress(CutOffError):
            return not self.peek()
        return True

    def members(self) -> Iterator[str]:
        """Keys of the object at hand. The caller takes each value before it asks for the next key."""
        for _ in self._parts(b"{", b"}"):
            yield self._key()

    def items(self) -> Iterator[None]:
        """Entries of the list at hand, one by one. The caller takes each value before it asks for the next."""
        return self._parts(b"[", b"]")

    def _parts(self, begin: bytes, end: bytes) -> Iterator[None]:
        """One None for each part between brackets, at which the scan stands then."""
        self._take(begin)
        first = True
        while self.peek() != end:
            if not first:
                self._take(b",")
            first = False
            yield
        self._take(end)

    def entries(self, decoder: msgspec.json.Decoder[Any], one: msgspec.json.Decoder[Any]) -> Iterator[Any]:
        """Batches (dicts or lists) of the map or list at hand, each decoded whole.

        `decoder` takes a batch, `one` a single entry: an entry that is of another shape is left out and counted.
        Anything but a map or list is skipped, and counted as a problem unless it is null.
        """
        opening = self.peek()
        if opening not in _CLOSING:
            if self.scalar() is not None:
                self.problems["found a single value in place of a map"] += 1
            return
        self._at += 1
        closing = _CLOSING[opening]
        while self.peek() != closing:
            batch, ended = self._batch(opening, decoder.decode, one)
            if batch:
                yield batch
            if ended:
                return
            self._take(b",")
        self._at += 1

    def maps(self, decoder: msgspec.json.Decoder[Any], one: msgspec.json.Decoder[Any]) -> Iterator[dict[str, Any]]:
        """As `entries`, of a map alone: a list in its place counts for nothing."""
        return (batch for batch in self.entries(decoder, one) if isinstance(batch, dict))

    def skip(self) -> None:
        """Go past the value at hand, whatever its size."""
        if self.peek() not in _CLOSING:
            self.scalar()
            return
        for _ in self.entries(_raw_map if self.peek() == b"{" else _raw_list, _anything):
            pass

    def scalar(self) -> Any:
        """The string, number, true, false or null at hand."""
        self.peek()
        while True:
            match = _SCALAR.match(self._buffer, self._at)
            if match and (match.end() < len(self._buffer) or self._ended):
                break
            if not self._fill():
                raise self.cut_off() if self._buffer[self._at : self._at + 1] == b'"' else self._damaged("a value")
        self._at = match.end()
        try:
            return msgspec.json.decode(match[1])
        except BAD_JSON as error:
            raise self._damaged("a value") from error

    def cut_off(self) -> CutOffError:
        """The error for a file that ends too early."""
        what = self._unreadable or f"`{self._path}` ends inside a value"
        return CutOffError(f"{what}, at byte {self._base + len(self._buffer)}", "was it copied to the end?")

    def _batch(
        self, opening: bytes, decode: Callable[[bytes], Any], one: msgspec.json.Decoder[Any]
    ) -> tuple[Any, bool]:
        """The next entries, and whether they were the last; the position is behind them (and the closing bracket)."""
        wanted = CHUNK
        while True:
            while len(self._buffer) - self._at < wanted and self._fill():
                pass
            for cut in self._cuts(opening):
                batch = self._decoded(opening, cut, decode, one)
                if batch is not None:
                    return batch
            if self._ended:
                closed = self._by_brackets()[1] == _CLOSING[opening]  # though its content cannot be decoded
                raise self._damaged("an entry") if closed else self.cut_off()
            if wanted > LARGEST:
                raise SourceError(
                    f"an entry larger than {LARGEST >> 20} MiB in `{self._path}` near byte {self._base + self._at}",
                    "this is not what a profiler writes",
                )
            wanted *= 4

    def _cuts(self, opening: bytes) -> Iterator[int | None]:
        """Where the batch may be cut, best guess first; None stands for the end of the map or list."""
        pattern = _NEXT_ENTRY[opening]
        if opening == b"{" and (key := _KEY.match(self._buffer, self._at)) and not _SHORT_KEY.match(key[1]):
            pattern = re.compile(_NEXT_LIKE % re.escape(key[1][:_ALIKE]))
        elif opening == b"[" and self._buffer[self._at : self._at + 1] == b"{":
            pattern = _NEXT_OBJECT
        start, end, tries = self._at, len(self._buffer), 0
        tail = max(start, end - _TAIL)
        for low in (tail, start) if tail > start else (start,):
            for match in reversed(list(pattern.finditer(self._buffer, low, end))[-_TRIES:]):
                yield match.start() + 1
                tries += 1
            if tries:
                break
        yield None
        if (exact := self._by_brackets()[0]) is not None:
            yield exact

    def _by_brackets(self, end: int | None = None) -> tuple[int | None, bytes]:
        """The last comma between two entries up to an end, and what closes the map or list there, by counting."""
        depth, comma = 0, None
        for token in _TOKEN.finditer(self._buffer, self._at, len(self._buffer) if end is None else end):
            sign = token[0]
            if sign == b"," and depth == 0:
                comma = token.start()
            depth += (sign in (b"{", b"[")) - (sign in (b"}", b"]"))
            if depth < 0:
                return comma, sign
        return comma, b""

    def _decoded(
        self, opening: bytes, cut: int | None, decode: Callable[[bytes], Any], one: msgspec.json.Decoder[Any]
    ) -> tuple[Any, bool] | None:
        """A batch that is cut there, or at the end of the map or list when that comes first; None for a wrong guess."""
        text = opening + self._buffer[self._at : cut] + (b"" if cut is None else _CLOSING[opening])
        begin = self._at
        try:
            parsed = self._parse(text, decode)
        except SourceError:
            damaged, self._at = self._at, begin
            whole = self._by_brackets(damaged)[0]
            if whole is not None:  # what stands in front of the damage is read first
                return self._decoded(opening, whole, decode, one)
            self._at = damaged
            raise
        except msgspec.ValidationError:
            parsed = self._one_by_one(text, opening, one)
        if parsed is None:
            return None
        batch, end = parsed
        if end is not None:
            self._at += end - 1
        else:
            self._at = len(self._buffer) if cut is None else cut
        return batch, end is not None or cut is None

    def _parse(self, text: bytes, decode: Callable[[bytes], Any]) -> tuple[Any, int | None] | None:
        """(value, where it ended when more follows it), or None when the text ends too early.

        Raises SourceError when it is no JSON, whatever may follow; passes on ValidationError.
        """
        value, end = None, None
        for read in (_skim.decode, decode):  # where it ends is found without making anything of it
            try:
                value = read(text if end is None else text[:end])
            except msgspec.ValidationError:
                raise
            except (RecursionError, UnicodeDecodeError) as error:
                raise self._damaged("shallow nesting and UTF-8") from error
            except msgspec.DecodeError as error:
                position = _PLACE.search(str(error))
                if position is not None and "trailing characters" in str(error):
                    end = int(position[1]) - 1  # msgspec counts from 1
                elif position is not None and int(position[1]) < len(text) - 2:
                    self._at += max(int(position[1]) - 1, 0)
                    raise self._damaged("JSON") from error
                else:
                    return None
        return value, end

    def _one_by_one(self, text: bytes, opening: bytes, one: msgspec.json.Decoder[Any]) -> tuple[Any, int | None] | None:
        """As `_parse`, without the entries that have another shape."""
        parsed = self._parse(text, (_raw_map if opening == b"{" else _raw_list).decode)
        if parsed is None:
            return None
        entries, end = parsed
        fitting: dict[Any, Any] = {}
        for key, raw in entries.items() if isinstance(entries, dict) else enumerate(entries):
            try:
                fitting[key] = one.decode(raw)
            except RecursionError as error:
                raise self._damaged("shallow nesting") from error
            except BAD_JSON as error:
                self.problems[str(error).partition(" - at ")[0]] += 1
        return (fitting if isinstance(entries, dict) else list(fitting.values())), end

    def _key(self) -> str:
        self.peek()
        while True:
            match = _KEY.match(self._buffer, self._at)
            if match:
                break
            if len(self._buffer) - self._at > LARGEST:
                raise self._damaged("a key")
            if not self._fill():
                raise self.cut_off() if self.peek() == b'"' else self._damaged("a key")
        self._at = match.end()
        try:
            return str(msgspec.json.decode(match[1], type=str))
        except BAD_JSON as error:
            raise self._damaged("a key") from error

    def _take(self, byte: bytes) -> None:
        sign = self.peek()
        if sign != byte:
            raise self._damaged(f"`{byte.decode()}`")
        self._at += 1

    def _fill(self) -> bool:
        if self._ended:
            return False
        try:
            data = self._file.read(CHUNK)
            if self._text is not None and data[-1:].isalpha():  # the word may be cut
                for _ in range(_WORD):
                    more = self._file.read(1)
                    data += more
                    if not more.isalpha():
                        break
        except SourceError as error:  # what stands in front of the damage is read first
            self._unreadable, data = error, b""
        self._ended = not data
        if self._text is not None:
            data = self._text.decode(data, final=not data).encode()
            data = _NO_NUMBER.sub(b"null", data) if b"NaN" in data or b"Infinity" in data else data
        self._base += self._at
        self._buffer = self._buffer[self._at :] + data
        self._at = 0
        return bool(data)

    def _damaged(self, wanted: str) -> SourceError:
        near = self._buffer[self._at : self._at + 20].decode("utf-8", "replace")
        at = self._base + self._at
        return SourceError(f"damaged JSON in `{self._path}` at byte {at}: expected {wanted}, found {near!r}")
