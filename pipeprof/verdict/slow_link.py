"""Links that are slower than comparable ones, as far as their variation allows to tell. Pure: rows in, dicts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.query.rows import Link

SLOW = 0.8  # of the rate of comparable links, in three quarters of the moves
LEAST_MOVES = 12  # with fewer, three quarters of them are slow by chance now and then


def slow_links(rows: Sequence[Link]) -> list[dict[str, Any]]:
    """Links that moved equal amounts at most 0.8 times as fast as others of their kind, in most moves; slowest first.

    Each has rep, transport, src_rank, dst_rank, ratio, compared (moves), rate (bytes/s).
    """
    slow = [
        {
            "rep": row.rep, "transport": row.transport, "src_rank": row.src_rank, "dst_rank": row.dst_rank,
            "ratio": row.ratio, "ratio_high": row.ratio_high, "compared": row.compared, "rate": row.rate,
            "local_group": row.local_group,
        }
        for row in rows
        if row.ratio_high is not None and row.ratio_high < SLOW and row.compared >= LEAST_MOVES
    ]  # fmt: skip
    ends = ("rep", "src_rank", "dst_rank", "local_group")
    return sorted(slow, key=lambda link: (link["ratio"], *(link[name] for name in ends)))
