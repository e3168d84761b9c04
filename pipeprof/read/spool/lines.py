"""Reading the files of a spool: records of one type, one a line. What is damaged is left out, and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pipeprof.record.document import BAD_JSON
from pipeprof.record.limits import BYTES, raised_by
from pipeprof.record.plain_file import cut_file
from pipeprof.record.text import printable_all

T = TypeVar("T")

MOST_BYTES = 1 << 30  # of one file; a day of samples of a large job has a tenth of that
_NAMED = 5  # damaged lines of one file


@dataclass
class SpoolNotes:
    """What was odd, for the user. `damage` is what makes a run partial: not the end that a kill cuts off."""

    all: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def cut(self, text: str) -> None:
        """Say what any process that is killed may leave behind."""
        self.all.append(text)

    def damaged(self, text: str) -> None:
        """Say what no kill explains."""
        self.all.append(text)
        self.damage.append(text)


def shown(path: Path) -> str:
    """A file of a spool as its notes name it."""
    return f"`{path.parent.name}/{path.name}`"


def content(path: Path, notes: SpoolNotes) -> bytes:
    """The bytes of a file; none when it is not there or is no regular file of this spool, up to a limit."""
    try:
        data, is_whole = cut_file(path, MOST_BYTES, inside=_home(path))
    except FileNotFoundError:
        return b""
    except OSError as error:
        notes.damaged(f"cannot read {shown(path)}: {error.strerror}")
        return b""
    if not is_whole:
        notes.damaged(f"{shown(path)} has more than {len(data):,} bytes, the rest was left out: {raised_by(BYTES)}")
    return data


def records(path: Path, decode: Callable[[bytes], T], notes: SpoolNotes) -> list[T]:
    """The records of the lines of a file, in order, without those that `decode` refuses."""
    *lines, last = content(path, notes).split(b"\n")
    decoded: list[T] = []
    wrong = 0
    for number, line in enumerate(lines, 1):
        try:
            decoded.append(decode(line))
        except BAD_JSON as error:
            wrong += 1
            if wrong <= _NAMED:
                why = "it is nested too deeply" if isinstance(error, RecursionError) else error
                notes.damaged(f"damaged line {number} of {shown(path)} was left out: {why}")
    if wrong > _NAMED:
        notes.damaged(f"{wrong - _NAMED:,} more damaged lines of {shown(path)} were left out")
    if last:
        try:
            decoded.append(decode(last))
        except BAD_JSON:
            notes.cut(f"{shown(path)} ends in the middle of a line, which was left out")
    return decoded


class Reader:
    """Decodes JSON of one type. Text that is bytes and no text comes with escapes, as Python's `json` writes it."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decoder = msgspec.json.Decoder(kind)

    def __call__(self, line: bytes) -> Any:
        """Raises one of BAD_JSON."""
        try:
            return self._decoder.decode(line)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            try:
                value = json.loads(line, parse_constant=_refuse)
            except ValueError:
                raise error from None
            return msgspec.convert(printable_all(value), self._kind)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _home(path: Path) -> Path:
    """The folder of the repetition that a file of a spool lies in."""
    return next((folder for folder in path.parents if folder.name.startswith("rep=")), path.parent)
