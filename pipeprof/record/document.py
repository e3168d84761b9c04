"""JSON and TOML documents of our own: read whole, into their type; one form of error for what is newer or damaged.

Names in them that become paths have types here, which are checked while the document is read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from pipeprof.errors import PipeprofError, RunError, UsageError
from pipeprof.record import limits
from pipeprof.record.plain_file import read_file

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


_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}"
_PART = r"rep=[0-9]{1,9}/rank=[0-9]{1,9}/part-[0-9]{1,9}\.parquet"
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
COMPACT = "rows.parquet"  # of a table: the rows of all its ranks, with the columns `rep` and `rank`

FileName = Annotated[str, msgspec.Meta(pattern=rf"\A{_NAME}\Z")]
PartName = Annotated[str, msgspec.Meta(pattern=rf"\A[a-z_]{{1,40}}/({re.escape(COMPACT)}|{_PART})\Z")]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Revision = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{40}([0-9a-f]{24})?\Z")]

_of_a_rank = re.compile(_PART)
_one_name = re.compile(_NAME)


def checked_name(name: str, what: str) -> str:
    """The name of a workload or machine class, if it is one folder name on every system.

    Raises UsageError for path parts, other characters than letters, digits, `.`, `_` and `-`, and names Windows keeps.
    """
    if not _one_name.fullmatch(name) or name.endswith(".") or name.lower().partition(".")[0] in _DEVICES:
        raise UsageError(
            f"`{name}` cannot be the name of a {what}",
            "use up to 80 letters, digits, `-`, `_` and `.`, and begin with a letter or digit",
        )
    return name


def is_table_file(name: str) -> bool:
    """Whether a file of a table has such a name within its folder."""
    return name == COMPACT or is_rank_part(name)


def is_rank_part(name: str) -> bool:
    """Whether a file of one rank has such a name within its table: `rep=0/rank=3/part-00000.parquet`."""
    return _of_a_rank.fullmatch(name) is not None


_MOST_DOTS = 1000  # of a line; each part of a dotted key costs the time of all before it
_MOST_DIGITS = 4000
_LONG_NUMBER = re.compile(rb"[0-9_]{%d}" % _MOST_DIGITS)


def decode(data: bytes) -> Any:
    """The content. Raises what `BAD_JSON` lists for what is no TOML, and for lines that no file of settings has."""
    if any(line.count(b".") > _MOST_DOTS for line in data.splitlines()):
        raise msgspec.DecodeError(f"a line has more than {_MOST_DOTS:,} dots")
    if _LONG_NUMBER.search(data):
        raise msgspec.DecodeError(f"a number has more than {_MOST_DIGITS:,} digits")
    return msgspec.toml.decode(data)
