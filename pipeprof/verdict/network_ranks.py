"""Which rank the others wait for, if any. Pure: rows of diagnose/rank_imbalance in, a dict out.

Ranks that train in step have steps of one length, whatever each of them does: the slow rank is the one with the
longest time of its own, beside those that do the same work, and the least waiting in communication.

Links that are slower than comparable ones, as far as their variation allows to tell. Pure: rows in, dicts out.
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist, median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.rows import Link, RankImbalance


LEAST_STEPS = 5  # in common; fewer tell no difference from noise
LEAST_SHARE = 0.02  # of the step: smaller differences are not worth a word
ERRORS = 3.0  # standard errors that a difference must exceed; more when more than two ranks are compared
PHASES = ("data_wait", "forward", "backward", "optimizer", "host_gap", "other")


def slowest_rank(rows: Sequence[RankImbalance]) -> dict[str, Any] | None:
    """The rank that holds the others up in most repetitions; None when no difference exceeds the noise."""
    reps = sorted({row.rep for row in rows})
    slowest = [slow for rep in reps if (slow := _of_rep([row for row in rows if row.rep == rep])) is not None]
    ranks = [slow["rank"] for slow in slowest]
    common = max(ranks, key=lambda rank: (ranks.count(rank), -rank), default=None)
    same = [slow for slow in slowest if slow["rank"] == common]
    if not same or 2 * len(same) <= len(reps):
        return None
    middle = sorted(same, key=lambda slow: slow["share"])[len(same) // 2]
    return {**middle, "reps": len(reps), "slowest_in_reps": len(same)}


def waiting_share(rows: Sequence[RankImbalance], slow: Mapping[str, Any] | None = None) -> float | None:
    """Mean share of the step in which a rank waits in communication for another one; None for a single rank.

    Of all ranks, or of the slow one alone.
    """
    of_ranks = [row for row in rows if slow is None or row.rank == slow["rank"]]
    shares = [row.mean_ns / row.step_ns for row in of_ranks if row.part == "waiting" and row.step_ns]
    return min(1.0, sum(shares) / len(shares)) if shares else None


def standard_error(low: float, high: float, count: int) -> float:
    """Of a median, from the quartiles: sigma is (high - low) / 1.349, and a median has 1.2533 sigma / sqrt(n)."""
    return 1.2533 * (high - low) / 1.349 / sqrt(count)


def _of_rep(rows: Sequence[RankImbalance]) -> dict[str, Any] | None:
    own = [
        (row.diff_ns, -row.rank, standard_error(row.diff_low_ns, row.diff_high_ns, row.steps), row)
        for row in rows
        if row.part == "own"
        and row.diff_ns is not None
        and row.diff_low_ns is not None
        and row.diff_high_ns is not None
    ]
    if not own or own[0][3].steps < LEAST_STEPS:
        return None
    excess, _, error, slow = max(own, key=lambda one: one[:2])
    needed = max(ERRORS, NormalDist().inv_cdf(1 - 0.0027 / len(own)))
    step = slow.step_ns
    if excess <= needed * error or excess <= LEAST_SHARE * step:
        return None
    mine = {row.part: row.diff_ns or 0.0 for row in rows if row.rank == slow.rank}
    phase = max(PHASES, key=lambda name: mine[name])
    others = slow.median_ns - excess
    return {
        "rank": slow.rank,
        "phase": phase,
        "share": excess / step,
        "excess_ns": excess,
        "excess_error_ns": error,
        "ratio": slow.median_ns / others if others > 0 else None,
        "phase_excess_ns": mine[phase],
        "wait_caused_ns": _wait_caused([row for row in rows if row.peers == slow.peers], slow.rank),
        "steps": slow.steps,
        "ranks": slow.ranks,
    }


def _wait_caused(rows: Sequence[RankImbalance], rank: int) -> float:
    """How much longer than the slow rank its peers are in communication, median of them; `rows` are of these ranks."""
    times = {row.rank: row.median_ns for row in rows if row.part == "communication"}
    longer: float = median(time for other, time in times.items() if other != rank) - times[rank]
    return max(0.0, longer)


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
