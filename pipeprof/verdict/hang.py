"""Whether a training that did not end well had stood still before its end, and what each of its ranks was in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeprof.verdict import waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.record.run import Rank, Rep
    from pipeprof.record.whereabouts import Last, Live

LEAST_S = 5.0  # shorter than that nobody calls it a hang
TIMES = 5  # the longest training step: one that takes that much longer is no step
EARLY_S = 2.0  # a process that ended so long before its command was not ended with it


@dataclass(frozen=True)
class Hang:
    """`rows`: of each rank what it was in at its end, as verdict/waiting.judge tells it; first the one to look at.

    `for_s`: how long that one had been in it. `stepped`: whether training steps were complete before.
    """

    rep: int
    for_s: float
    stepped: bool
    rows: Sequence[dict[str, Any]]


def hang_of(reps: Sequence[Rep]) -> Hang | None:
    """Of the first repetition that did not end well; None where no rank had stood still."""
    rep = next((rep for rep in reps if rep.exit_code != 0), None)
    if rep is None:
        return None
    ends = [(rank, rank.last) for rank in rep.ranks if rank.last is not None]
    rows = waiting.judge([_live(rep.rep, rank, last) for rank, last in ends])
    still = [row for row, (_, last) in zip(rows, ends, strict=True) if _is_still(row, last)]
    if not still:
        return None
    first = min(still, key=lambda row: (_is_of_others(row), -row["for_s"]))
    others = [row for row in rows if row is not first]
    stepped = any(last.longest_step_ns is not None for _, last in ends)
    return Hang(rep.rep, first["for_s"], stepped, [first, *others])


def _live(rep: int, rank: Rank, last: Last) -> Live:
    """The rank as it was when its command ended; one that had ended long before is gone then."""
    early = last.gone_s > EARLY_S
    return last.as_live(rep, rank.rank, rank.pid, alive=not early, ended=early and rank.ended == "normal")


def _is_still(row: dict[str, Any], last: Last) -> bool:
    return row["for_s"] is not None and row["for_s"] >= max(LEAST_S, TIMES * (last.longest_step_ns or 0) / 1e9)


def _is_of_others(row: dict[str, Any]) -> bool:
    """Whether it waited for another rank, or may have."""
    return row["code"] in (waiting.COLLECTIVE, *waiting.ON_DEVICE)
