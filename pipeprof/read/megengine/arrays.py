"""Arrow arrays straight from NumPy's memory: pyarrow's own conversions import pandas, which costs time and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST_NS = 2.0**62


def integers(values: Any, known: Any = None) -> pa.Array:
    """int64, null where not known."""
    return _array(np.ascontiguousarray(values, dtype=np.int64), pa.int64(), known)


def texts(values: Iterable[str | None]) -> pa.Array:
    """Texts, null for None. Half of a surrogate pair becomes a question mark."""
    listed = list(values)
    encoded = [b"" if value is None else value.encode("utf-8", "replace") for value in listed]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    valid = pa.py_buffer(np.packbits(np.array([value is not None for value in listed], dtype=bool), bitorder="little"))
    large = pa.LargeStringArray.from_buffers(len(listed), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)), valid)
    return large.cast(pa.string())


def pick(values: pa.Array, at: pa.Array) -> pa.Array:
    """values[at], null where `at` is. As `Array.take`, which imports more."""
    return pa.DictionaryArray.from_arrays(at, values).dictionary_decode()


def rounded(values: Any, known: Any) -> pa.Array:
    """int64 of floating-point numbers, rounded, null where not known."""
    return integers(np.rint(np.where(known, values, 0.0)).astype(np.int64), known)


def fractions(values: Any, known: Any) -> pa.Array:
    """The value, unrounded, where it is not a whole number; else null."""
    return _array(np.ascontiguousarray(values), pa.float64(), known & (np.rint(values) != values))


def usable(values: Any) -> Any:
    """Durations in ns that are numbers, not negative, and fit."""
    return (values >= 0) & (values < LARGEST_NS)


def _array(values: Any, kind: pa.DataType, known: Any) -> pa.Array:
    valid = None if known is None else pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(values)])
