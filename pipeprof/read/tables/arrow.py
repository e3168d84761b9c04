"""Arrow arrays straight from NumPy's memory: pyarrow's own conversions import pandas, which costs time and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def numbers(values: NDArray[np.int64] | Sequence[int], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """int64; null where it is not valid."""
    array = np.ascontiguousarray(values, np.int64)
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(array), [bits, pa.py_buffer(array)])


def optional(values: NDArray[np.int64] | Sequence[int], none: int = -1) -> pa.Array:
    """int64 in which `none` becomes null."""
    array = np.ascontiguousarray(values, np.int64)
    return numbers(array, array != none)


def doubles(bits: NDArray[np.int64]) -> pa.Array:
    """Double from its bits."""
    return pa.Array.from_buffers(pa.float64(), len(bits), [None, pa.py_buffer(np.ascontiguousarray(bits))])


def strings(values: Sequence[bytes | str | None]) -> pa.Array:
    """Texts (str, or bytes in UTF-8), null for None."""
    encoded = [value.encode("utf-8", "replace") if isinstance(value, str) else value or b"" for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    valid = pa.py_buffer(np.packbits(np.array([value is not None for value in values], bool), bitorder="little"))
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def constant(value: str | None, length: int) -> pa.Array:
    """The same text in every row."""
    return (
        pa.nulls(length, pa.string()) if value is None else strings([value]).take(numbers(np.zeros(length, np.int64)))
    )


def pick(values: pa.Array, at: pa.Array) -> pa.Array:
    """values[at], null where `at` is. As `Array.take`, which imports more."""
    return pa.DictionaryArray.from_arrays(at, values).dictionary_decode()
