"""Text to whole numbers, without a float in between."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from pipeprof.units import ns_from_text

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
