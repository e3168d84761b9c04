"""The fields of a message in protobuf's wire format: classes for them need not be installed where a file is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

BAD = (ValueError, IndexError)  # raised for what is no message
BYTES = 2
_VARINT, _FIXED64, _FIXED32 = 0, 1, 5
_LONGEST_VARINT = 10


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers with their number, or with their bytes; those of fixed size are left out. Raises one of BAD."""
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = varint(data, at)
            yield key >> 3, value
            continue
        if kind == BYTES:
            size, at = varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(kind)
        if at + size > end:
            raise ValueError(size)
        if kind == BYTES:
            yield key >> 3, data[at : at + size]
        at += size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends. Raises IndexError at the end of the data, ValueError for one that is too long."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value = shift = 0
    for end in range(at, at + _LONGEST_VARINT):
        byte = data[end]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, end + 1
        shift += 7
    raise ValueError(at)


def signed(value: int) -> int:
    """A number of 64 bits, whose highest is the sign."""
    return value - (1 << 64) if value >= 1 << 63 else value
