"""Decimal microseconds to int64 ns, many at once and exactly: the text is never a float."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipeprof.units import ns_from_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec
    from numpy.typing import NDArray

MISSING = -(2**63)
_LARGEST = 2**61
_WHOLE_US_NS = pa.decimal128(38, 3)
_PLAIN = re.compile(rb'"?\s*(-?[0-9]{1,19}(?:\.[0-9]{0,30})?(?:[eE][-+]?[0-9]{1,2})?)\s*"?')


def times_ns(texts: Sequence[msgspec.Raw]) -> NDArray[np.int64]:
    """Ns of microseconds as numbers or as text in JSON; MISSING for what is no number or more than 70 years."""
    count = len(texts)
    if not count:
        return np.zeros(0, np.int64)
    joined = b"".join(texts)
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, count))
    if b'"' in joined:
        content = [bytes(text) for text in texts]
        content = [text[1:-1] if text[:1] == b'"' else text for text in content]
        joined, ends = b"".join(content), np.cumsum(np.fromiter(map(len, content), np.int64, count))
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    column = pa.Array.from_buffers(pa.large_string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(joined)])
    try:
        exact = column.cast(_WHOLE_US_NS)
    except pa.ArrowInvalid:
        return np.fromiter((_one(bytes(text)) for text in texts), np.int64, count)
    words = np.frombuffer(exact.buffers()[1], np.int64)[: 2 * count].reshape(-1, 2)
    ns: NDArray[np.int64] = words[:, 0].copy()
    fits = (words[:, 1] == (ns >> 63)) & (ns > -_LARGEST) & (ns < _LARGEST)
    ns[~fits] = MISSING
    return ns


def _one(text: bytes) -> int:
    found = _PLAIN.fullmatch(text)
    if found is None:
        return MISSING
    ns = ns_from_text(found[1].decode(), "us")
    return ns if -_LARGEST < ns < _LARGEST else MISSING
