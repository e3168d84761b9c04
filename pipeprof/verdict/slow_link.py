"""Links that are slower than comparable ones, as far as their variation allows to tell. Pure: rows in, dicts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

SLOW = 0.8  # of the rate of comparable links, in three quarters of the moves
LEAST_MOVES = 12  # with fewer, three quarters of them are slow by chance now and then


def slow_links(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Links that moved equal amounts at most 0.8 times as fast as others of their kind, in most moves; slowest first.

    `rows`: rank/link. Each has rep, transport, src_rank, dst_rank, ratio, compared (moves), rate (bytes/s).
    """
    names = ("rep", "transport", "src_rank", "dst_rank", "ratio", "ratio_high", "compared", "rate", "local_group")
    slow = [
        {name: row[name] for name in names}
        for row in rows
        if row["ratio_high"] is not None and row["ratio_high"] < SLOW and row["compared"] >= LEAST_MOVES
    ]
    ends = ("rep", "src_rank", "dst_rank", "local_group")
    return sorted(slow, key=lambda link: (link["ratio"], *(link[name] for name in ends)))
