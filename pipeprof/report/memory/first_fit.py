"""Places of blocks whose addresses are not known, as an allocator would give them that takes the lowest gap."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]


def with_places(rows: Sequence[Row]) -> tuple[list[Row], bool]:
    """The blocks that can be drawn, and whether their addresses are places by first fit: when no block has one."""
    addressed = [row for row in rows if row["address"] is not None]
    return (addressed, False) if addressed else (first_fit(rows), True)


def first_fit(rows: Sequence[Row]) -> list[Row]:
    """The rows in the order in which they were made, each with the lowest `address` that is free then."""
    taken: list[tuple[int, int, int | None]] = []  # address, end, released; sorted
    placed = []
    for row in sorted(rows, key=lambda row: (row["produced_ns"], -row["bytes"])):
        taken = [block for block in taken if block[2] is None or block[2] > row["produced_ns"]]
        address = 0
        for begin, end, _ in taken:
            if begin - address >= row["bytes"]:
                break
            address = max(address, end)
        insort(taken, (address, address + row["bytes"], row["released_ns"]), key=lambda block: block[0])
        placed.append(row | {"address": address})
    return placed
