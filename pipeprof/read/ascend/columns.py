"""Whole columns of decimal text to ns, exactly: the fast way for what is plain, one value at a time for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.read.ascend import values

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MISSING = pa.array([text.encode() for text in sorted(values.MISSING)], pa.binary())


def nanoseconds(column: pa.Array, unit_digits: int = 3) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(ns, known) of a binary column with decimal text in us (3), ms (6) or ns (0); digits below 1 ns round half up.

    What is missing, no number, or not below 2^62 ns in size is not known.
    """
    try:
        trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
        missing = pc.is_in(column, value_set=_MISSING)
        text = pc.if_else(missing, pa.scalar(None, pa.string()), trimmed)
        return _exact(text, unit_digits) if unit_digits else _slow(column, unit_digits)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return _slow(column, unit_digits)


def _exact(text: pa.Array, unit_digits: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    known = np.asarray(pc.is_valid(text))
    try:
        return _unscaled(text.cast(pa.decimal128(21, unit_digits))), known
    except pa.ArrowInvalid:  # more digits behind the point
        fine = _unscaled(text.cast(pa.decimal128(18 + unit_digits, 6 + unit_digits)))
        return (fine + 500_000) // 1_000_000, known


def _unscaled(column: pa.Array) -> NDArray[np.int64]:
    """The whole numbers that a decimal column is stored as. Raises ArrowInvalid when one is beyond 2^62."""
    raw = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    low, high = raw[::2], raw[1::2]
    known = np.asarray(pc.is_valid(column))
    if np.any((high != low >> 63) & known) or np.any((np.abs(low) >= values.LARGEST) & known):
        raise pa.ArrowInvalid("beyond 64 bits")
    return np.where(known, low, 0)


def _slow(column: pa.Array, unit_digits: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    unit = {0: "ns", 3: "us", 6: "ms"}[unit_digits]
    found = [
        None if value is None else values.ns(value.decode("utf-8", "replace"), unit) for value in column.to_pylist()
    ]
    known = np.array([value is not None for value in found], np.bool_)
    return np.array([value or 0 for value in found], np.int64), known


def nullable(numbers: NDArray[np.int64], known: NDArray[np.bool_]) -> pa.Array:
    """An Arrow column that is null where the value is not known."""
    return pa.array(numbers, pa.int64(), mask=~known)
