"""JSON objects within objects, read a piece at a time: entries at one depth, without what is around them in memory."""

from __future__ import annotations

import codecs
import json
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read.source.content import BROKEN, HINT, cannot_read
from pipeprof.record.plain_file import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK = 1 << 20
LARGEST_ENTRY = 4 << 20  # characters
_BLANK = " \t\r\n"
_JSON = json.JSONDecoder(parse_float=str, parse_constant=lambda _name: None)


def entries(path: Path, depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(keys, value) of every entry that is `depth` objects deep, in the order of the file.

    Numbers with a fraction or an exponent are their text. What is no object where one is expected is passed over.
    Raises SourceError where the file is damaged, cut off or holds anything but an object, after what stood in front of
    that; and for an entry of more than 4 Mi characters.
    """
    text = _Text(path)
    try:
        if not text.sign():
            raise SourceError(f"`{path}` is empty, expected an object", HINT)
        if text.sign() != "{":
            raise SourceError(f"`{path}` begins with `{text.near()}`, expected an object", HINT)
        yield from _inside(text, (), depth)
        if text.sign():
            raise SourceError(f"`{path}` goes on after its end, at character {text.position}: `{text.near()}`", HINT)
    except BROKEN as error:
        raise cannot_read(path, error, f", near character {text.position}") from error
    finally:
        text.close()


def _inside(text: _Text, keys: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Entries of an object that has just begun, up to its end."""
    text.skip()
    more = text.sign() != "}"
    while more:
        name = text.value() if text.sign() == '"' else None
        if name is None or text.sign() != ":":
            raise text.damaged("expected a name and a colon")
        text.skip()
        if len(keys) + 1 < depth and text.sign() == "{":
            yield from _inside(text, (*keys, name), depth)
        elif len(keys) + 1 < depth:
            text.value()
        else:
            yield (*keys, name), text.value()
        more = text.sign() == ","
        if more:
            text.skip()
        elif text.sign() != "}":
            raise text.damaged("expected a comma or the object's end")
    text.skip()


class _Text:
    """The characters of a file, of which only the next ones are in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_file(path)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._text = ""
        self._at = 0
        self._before = 0
        self._ended = False

    @property
    def position(self) -> int:
        """How many characters were read."""
        return self._before + self._at

    def close(self) -> None:
        self._file.close()

    def sign(self) -> str:
        """The next character that is no blank, without moving behind it; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _BLANK:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def skip(self) -> None:
        """Move behind the next character."""
        self._at += 1

    def value(self) -> Any:
        """The next value, whole."""
        self.sign()
        while True:
            try:
                value, end = _JSON.raw_decode(self._text, self._at)
            except RecursionError as error:
                raise self.damaged("too deep") from error
            except ValueError as error:
                if not self._more():
                    raise self.damaged(str(error).partition(":")[0]) from error
                continue
            if end == len(self._text) and self._more():  # a number may go on
                continue
            self._at = end
            return value

    def near(self) -> str:
        """What stands at this place."""
        return self._text[self._at : self._at + 20]

    def damaged(self, what: str) -> SourceError:
        if self._ended and not self.near():
            return SourceError(f"`{self.path}` is cut off at character {self.position}", HINT)
        return SourceError(f"damaged `{self.path}`, at character {self.position}: {what}, found `{self.near()}`", HINT)

    def _more(self) -> bool:
        """Read on, as much again as there is; False at the end."""
        rest = self._text[self._at :]
        if len(rest) > LARGEST_ENTRY:
            raise SourceError(f"an entry of `{self.path}` is larger than {LARGEST_ENTRY >> 20} Mi characters", HINT)
        data = b"" if self._ended else self._file.read(max(CHUNK, len(rest)))
        self._ended = not data
        self._before += self._at
        self._text, self._at = rest + self._decoder.decode(data, final=not data), 0
        return bool(data)
