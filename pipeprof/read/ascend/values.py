"""Text of these files to whole numbers, without a float in between."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from pipeprof.units import ns_from_text

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST = 1 << 62  # no time, size or number in these files can be as large
NS_PER_TICK = 10  # of the device counter, 100 MHz
MISSING = frozenset(["", "-", "N/A", "NA", "None", "null", "nan"])
_PLAIN = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?[0-9]{0,30}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,2})?")
SIZES = {"B": 1, "KB": 1024, "MB": 1024 * 1024}

COLLECTIVES: Mapping[str, str] = {
    "allreduce": "all_reduce", "reducescatter": "reduce_scatter", "allgather": "all_gather", "alltoall": "all_to_all",
    "alltoallv": "all_to_all", "alltoallvc": "all_to_all", "broadcast": "broadcast", "send": "send",
    "receive": "receive", "recv": "receive", "batchsendrecv": "send_receive", "reduce": "reduce",
    "scatter": "scatter", "gather": "gather", "barrier": "barrier",
}  # fmt: skip
_COLLECTIVE_NAME = re.compile(r"(?:hcom_|.*/)?([A-Za-z]+)")


def whole(text: str) -> int | None:
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


def duration(text: str, unit: str) -> int | None:
    """As `ns`, for what cannot be negative."""
    value = ns(text, unit)
    return value if value is not None and value >= 0 else None


def ticks(text: str) -> int | None:
    """Ticks of the device counter as ns; None for anything that is not a whole number of them."""
    value = whole(text)
    return None if value is None or not 0 <= value < LARGEST // NS_PER_TICK else value * NS_PER_TICK


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


def collective_kind(name: str) -> str | None:
    """Kind of a communication operator by its name, such as `hcom_allReduce__586_0_1` or `AllReduce-op12`."""
    found = _COLLECTIVE_NAME.match(name)
    return COLLECTIVES.get(found[1].lower()) if found else None


def phase_of(name: str, kind: str | None) -> str:
    """Phase of an operator of a graph by its full name, else `other`."""
    if name.startswith("hcom_") or (kind or "").startswith("hcom") or collective_kind(kind or name):
        return "communication"
    if "/optimizer" in name:
        return "optimizer"
    if name.startswith("Gradients/") or "/gradients/" in name:
        return "backward"
    return "forward" if name.startswith("Default/network") else "other"
