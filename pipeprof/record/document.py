"""JSON documents of our own: read whole, into their type, with one form of error for what is newer or damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from pipeprof.errors import PipeprofError, RunError
from pipeprof.record import limits
from pipeprof.record.plain_file import read_file

if TYPE_CHECKING:
    from pathlib import Path

# What msgspec raises for JSON that is damaged, not UTF-8, or nested too deeply.
BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
MOST_BYTES = 1 << 26  # of a document that a verb keeps its state in
_VALUE, _LIST, _OBJECT = 64, 72, 240  # bytes that a small one of each takes in Python
T = TypeVar("T")


class _Version(msgspec.Struct):
    schema_version: int


def refuse_many_values(data: bytes) -> None:
    """Raises DecodeError for JSON whose values would take more memory than queries may: `{},{},` grows 30 times."""
    values, lists, objects = (data.count(sign) for sign in (b",", b"[", b"{"))
    most = limits.most_memory()
    if values * _VALUE + lists * _LIST + objects * _OBJECT > most:
        raise msgspec.DecodeError(f"its values take more than {most >> 20} MiB; {limits.raised_by(limits.MEMORY)}")


def decode_document(data: bytes, kind: type[T], newest: int, where: str, hint: str) -> T:
    """A document of schema_version 1 to `newest`, as its type.

    Raises RunError that names `where` for a newer one, one of BAD_JSON for damage.
    """
    refuse_many_values(data)
    version = msgspec.json.decode(data, type=_Version).schema_version
    if version > newest:
        raise RunError(f"`{where}` has schema_version {version}, this pipeprof reads up to {newest}", hint)
    if version < 1:
        raise msgspec.DecodeError(f"schema_version {version}")
    return msgspec.json.decode(data, type=kind)


def read_document(
    path: Path, kind: type[T], newest: int, what: str, hint: str, *,
    most: int = MOST_BYTES, error: type[PipeprofError] = RunError,
) -> T:  # fmt: skip
    """The document in a file, which the errors call `what`. Raises `error` when it is newer, damaged or unreadable."""
    try:
        return decode_document(read_file(path, most), kind, newest, str(path), hint)
    except OSError as problem:
        raise error(f"cannot read `{path}`: {problem.strerror or problem}", hint) from problem
    except RunError as problem:
        raise error(problem.message, hint) from problem
    except BAD_JSON as problem:
        raise error(f"damaged {what} `{path}`: {problem}", hint) from problem
