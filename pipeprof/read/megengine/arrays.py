"""Durations of a static-graph profile, which are floating-point numbers, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pipeprof.read.tables.arrow import numbers

LARGEST_NS = 2.0**62


def rounded(values: Any, valid: Any) -> pa.Array:
    """int64 of floating-point numbers, rounded, null where not known."""
    return numbers(np.rint(np.where(valid, values, 0.0)).astype(np.int64), valid)


def fractions(values: Any, known: Any) -> pa.Array:
    """The value, unrounded, where it is not a whole number; else null."""
    valid = pa.py_buffer(np.packbits(known & (np.rint(values) != values), bitorder="little"))
    return pa.Array.from_buffers(pa.float64(), len(values), [valid, pa.py_buffer(np.ascontiguousarray(values))])


def usable(values: Any) -> Any:
    """Durations in ns that are numbers, not negative, and fit."""
    return (values >= 0) & (values < LARGEST_NS)
