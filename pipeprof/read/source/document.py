"""Small JSON documents, read whole, and values in them that may be anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.source.content import HINT, cannot_read, lines, whole_bytes
from pipeprof.record.document import BAD_JSON, refuse_many_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BYTES = 1 << 23
_T = TypeVar("_T")


def document(path: Path, most: int = BYTES, number: Callable[[str], Any] = str) -> Any:
    """A JSON document.

    NaN and infinity are None. What has a fraction or an exponent is what `number` makes of its text: by default that
    text, so that nothing is lost. Raises SourceError for a file that is empty, cut off or no JSON, and for one of more
    than `most` bytes, or of more values than memory may hold.
    """
    data = whole_bytes(path, most)
    if not data.strip():
        raise SourceError(f"`{path}` is empty, expected a JSON object", HINT)
    try:
        refuse_many_values(data)
    except msgspec.DecodeError as error:
        raise cannot_read(path, error) from error
    try:
        return msgspec.json.Decoder(float_hook=number).decode(data)
    except (*BAD_JSON, ValueError) as error:
        if b"NaN" not in data and b"Infinity" not in data:
            raise cannot_read(path, error) from error
    try:
        content = json.loads(data.decode(), parse_float=number, parse_constant=lambda _name: None)
        msgspec.json.encode(content)  # refuses half of a pair of surrogates
    except (ValueError, RecursionError) as error:
        raise cannot_read(path, error) from error
    return content


def json_lines(path: Path, kind: type[_T]) -> Iterator[tuple[int, _T | None]]:
    """(number from 1, value) of the lines of a file that has a JSON value in each; None for one that is no `kind`.

    Empty lines are passed over. Raises SourceError for a file that cannot be read, after what stood in front of that.
    """
    decoder = msgspec.json.Decoder(kind)
    for number, line in enumerate(lines(path), 1):
        if line:
            try:
                yield number, decoder.decode(line)
            except BAD_JSON:
                yield number, None


def mapping(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """A number or a text of a JSON document as text; empty for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < 1 << 64 else ""
    return value if isinstance(value, str) else ""
