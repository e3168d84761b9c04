"""Puts a log's wall clock onto the monotonic clock of the other files, by counting batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

_SLACK = 3  # blocks that may be missing at either end beyond the difference in number
_LOOKED_AT = 256
_CLEARLY = 1_000_000  # ns: the other files' times are whole ms


class Alignment(NamedTuple):
    """`offset_ns` is wall clock minus monotonic clock; `doubtful`: another count of batches fits about as well."""

    offset_ns: int
    doubtful: bool


def align(walls: Sequence[int], stamps: Sequence[int]) -> Alignment:
    """Align the times of timing blocks with those of the batches they were printed for, both in order, none empty.

    Block k was printed for batch k + shift. The shift is the one under which the differences of the two clocks scatter
    least; of several equal ones that which pairs the last block with the last batch, as the first blocks are missing
    more often than the last.
    """
    wall, stamp = np.asarray(walls, dtype=np.int64), np.asarray(stamps, dtype=np.int64)
    surplus = len(stamp) - len(wall)
    places = np.unique(np.linspace(0, len(wall) - 1, _LOOKED_AT).astype(np.int64))
    needed = max(1, min(len(places), len(stamp)) // 2)
    fits: dict[int, tuple[float, float]] = {}
    for shift in range(min(0, surplus) - _SLACK, max(0, surplus) + _SLACK + 1):
        here = places[(places + shift >= 0) & (places + shift < len(stamp))]
        if len(here) < needed:
            continue
        differences = wall[here] - stamp[here + shift]
        middle = float(np.median(differences - differences[0]))
        spread = float(np.median(np.abs(differences - differences[0] - middle)))
        fits[shift] = (spread, float(differences[0]) + middle)
    best = min(spread for spread, _ in fits.values())
    near = [shift for shift, (spread, _) in fits.items() if spread <= best * 1.5 + _CLEARLY / 4]
    chosen = min(near, key=lambda shift: (abs(shift - surplus), fits[shift][0]))
    others = max(abs(fits[shift][1] - fits[chosen][1]) for shift in near)
    counted = surplus == 0 == chosen  # as many blocks as batches: no other count is likely
    return Alignment(_offset(wall, stamp, chosen), others > _CLEARLY and not counted)


def _offset(
    wall: np.ndarray[tuple[int], np.dtype[np.int64]], stamp: np.ndarray[tuple[int], np.dtype[np.int64]], shift: int
) -> int:
    begin, end = max(0, -shift), min(len(wall), len(stamp) - shift)
    differences = np.sort(wall[begin:end] - stamp[begin + shift : end + shift])
    return int(differences[len(differences) // 2])
