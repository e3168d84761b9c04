"""Text to whole numbers, without a float in between: one by one, and whole columns, the plain ones fast."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.units import ns_from_text

if TYPE_CHECKING:
    import msgspec

Ints = np.ndarray[Any, np.dtype[np.int64]]  # columns
Bools = np.ndarray[Any, np.dtype[np.bool_]]
LARGEST = 1 << 62  # no time, size or number in these files can be as large
_PLAIN = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?[0-9]{0,30}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,2})?")


def integer(text: str) -> int | None:
    """A whole number below 2^62 in size; None for anything else."""
    text = text.strip()
    if not _PLAIN.fullmatch(text):
        return None
    value = int(text)
    return value if -LARGEST < value < LARGEST else None


def ns(text: str, unit: str) -> int | None:
    """Exact ns of a decimal number; None for anything that is not one, or not below 2^62 ns in size."""
    text = text.strip()
    head, _, tail = text.partition(".")
    if unit == "us" and len(head) < 17 and len(tail) < 4 and (head + tail).isdecimal() and head and text.isascii():
        plain = int(head + tail.ljust(3, "0"))
        return plain if plain < LARGEST else None
    if not text or not _NUMBER.fullmatch(text):
        return None
    try:
        value = ns_from_text(text, unit)
    except ValueError:
        return None
    return value if -LARGEST < value < LARGEST else None


def raw_ns(raw: bytes, unit: str) -> int | None:
    """As `ns`, for a number or a text as it stands in JSON."""
    return ns(raw.strip(b' "').decode("utf-8", "replace"), unit)


def duration(text: str, unit: str) -> int | None:
    """As `ns`, for what cannot be negative."""
    value = ns(text, unit)
    return value if value is not None and value >= 0 else None


def decimal(text: str) -> Decimal | None:
    """A plain decimal number; None for anything else."""
    text = text.strip()
    try:
        return Decimal(text) if text and _NUMBER.fullmatch(text) else None
    except InvalidOperation:
        return None


def size(text: str, unit: str, scale: int = 1024) -> int | None:
    """A size in B, KB or MB (of `scale` each) as whole bytes, rounded; None for anything else."""
    number = decimal(text)
    value = None if number is None else number * scale ** ("B", "KB", "MB").index(unit)
    return int(value.to_integral_value()) if value is not None and 0 <= value < LARGEST else None


MISSING = frozenset(["", "-", "N/A", "NA", "None", "null", "nan"])
UNKNOWN = -(2**63)
_70_YEARS = 2**61  # ns
_LINE_END = ord("\n")
_AROUND = ' \t\r\n"'


@cache
def _missing() -> pa.Array:
    """Made when it is needed: making it imports pandas, which takes longer than reading most other files."""
    return pa.array(sorted(MISSING), pa.string())


def times_ns(parts: Sequence[msgspec.Raw]) -> Ints:
    """Ns of microseconds as numbers or as text in JSON; UNKNOWN for what is no number or more than 70 years."""
    if not parts:
        return np.zeros(0, np.int64)
    times, valid = nanoseconds(joined(parts))
    return np.where(valid & (np.abs(times) < _70_YEARS), times, UNKNOWN)


def joined(parts: Sequence[msgspec.Raw]) -> pa.Array:
    """A binary column of JSON values as they stand in the file; a line end may follow each."""
    text = b"\n".join(parts)
    inner = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_END)
    ends = np.empty(len(parts) + 1, np.int32)
    if len(inner) == len(parts) - 1:
        ends[0], ends[1:-1], ends[-1] = 0, inner + 1, len(text)
    else:  # a line end within a value, which is then no number
        text = b"".join(parts)
        ends[0] = 0
        np.cumsum(np.fromiter(map(len, parts), np.int32, len(parts)), out=ends[1:])
    return pa.Array.from_buffers(pa.binary(), len(parts), [None, pa.py_buffer(ends), pa.py_buffer(text)])


def nanoseconds(column: pa.Array) -> tuple[Ints, Bools]:
    """(ns, known) of a binary column with decimal text in us; digits below 1 ns round half up.

    Text may stand in quotes. What is missing, no number, or not below 2^62 ns in size is not known.
    """
    try:
        text = pc.ascii_trim(column.cast(pa.string()), characters=_AROUND)
        try:
            return _exact(text)
        except pa.ArrowInvalid:
            missing = pc.is_in(text, value_set=_missing())
            return _exact(pc.if_else(missing, pa.scalar(None, pa.string()), text))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return _slow(column)


def _exact(text: pa.Array) -> tuple[Ints, Bools]:
    valid = _valid(text)
    try:
        return _unscaled(text.cast(pa.decimal128(21, 3))), valid
    except pa.ArrowInvalid:  # more digits behind the point
        return (_unscaled(text.cast(pa.decimal128(21, 9))) + 500_000) // 1_000_000, valid


def _valid(column: pa.Array) -> Bools:
    """Which values are not null, by Arrow's own bits: its conversion to NumPy imports pandas."""
    bits = column.buffers()[0] if column.null_count else None
    if bits is None:
        return np.ones(len(column), np.bool_)
    valid = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").astype(np.bool_)
    return valid[column.offset : column.offset + len(column)]


def _unscaled(column: pa.Array) -> Ints:
    """The whole numbers that a decimal column is stored as. Raises ArrowInvalid when one is beyond 2^62."""
    raw = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    low, high = raw[::2], raw[1::2]
    valid = _valid(column)
    if np.any((high != low >> 63) & valid) or np.any((np.abs(low) >= LARGEST) & valid):
        raise pa.ArrowInvalid("beyond 64 bits")
    return np.where(valid, low, 0)


def _slow(column: pa.Array) -> tuple[Ints, Bools]:
    values = column.to_pylist()
    return filled(
        [None if value is None else ns(value.decode("utf-8", "replace").strip(_AROUND), "us") for value in values]
    )


def filled(values: Sequence[int | None]) -> tuple[Ints, Bools]:
    """Numbers, 0 for None, and where there is one."""
    known = np.array([value is not None for value in values], np.bool_)
    return np.array([value or 0 for value in values], np.int64), known
