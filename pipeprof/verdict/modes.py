"""Whether the steps of a training have two lengths, and what differs between them. Pure: rows of step/lengths in.

A split of the logarithms of the lengths into short and long steps with the largest variance between both (Otsu 1979)
counts where both are frequent, far apart, and hardly anything lies between them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.query.rows import StepLengths

    Row = Mapping[str, Any]

LEAST_STEPS = 20
LEAST_SHARE = 0.10  # of the steps, of either mode: fewer are outliers
APART = 1.5  # times the length
BETWEEN = 0.10  # of the rarer mode's steps, in the middle third between both (on a logarithmic scale)
_MORE_CORES, _LATER, _MOST_OF = 0.3, 0.5, 0.5
_MORE_INPUT = 1.25  # times the bytes


class Mode(Struct, frozen=True):
    """The steps of one length: how many, their share of all, and what a step has on average; None is not known."""

    steps: int
    share: float
    median_ns: float
    wait_ns: float | None
    place: float | None  # in the run: 0 is its begin, 1 its end
    own_cores: float | None
    delay_cores: float | None
    neighbour_cores: float | None
    input_bytes: float | None


class TwoModes(Struct, frozen=True):
    """The two lengths of the steps of a rank.

    `differs`: codes of what the long ones have that the short ones have not: data | input | neighbour | delay |
    fewer_cores | more_cores | later | earlier.
    """

    rep: int
    rank: int
    short: Mode
    long: Mode
    differs: list[str]


def two_modes(rows: Sequence[StepLengths]) -> TwoModes | None:
    """The two lengths of the rank that has them most clearly; None where no rank has."""
    ranks: dict[tuple[int, int], list[StepLengths]] = {}
    for row in rows:
        ranks.setdefault((row.rep, row.rank), []).append(row)
    found = [modes for own in ranks.values() if (modes := _split(own)) is not None]
    return max(found, key=lambda modes: modes.long.median_ns / modes.short.median_ns, default=None)


def of_one_mode(network: dict[str, Any], modes: TwoModes | None) -> dict[str, Any]:
    """A diagnosis of the step from a few recorded steps, with what these cannot say where the steps have two lengths.

    How much longer recording made them is not known then.
    """
    if modes is None or network["limit"] in ("not_measured", "compile"):
        return network
    doubts = [doubt for doubt in network["doubts"] if doubt["code"] != "inflated"]
    evidence = [row for row in network["evidence"] if row["code"] != "inflation"]
    return network | {
        "doubts": [{"code": "two_lengths"}, *doubts], "evidence": evidence, "confidence": "low", "inflation": None,
    }  # fmt: skip


def _split(rows: Sequence[StepLengths]) -> TwoModes | None:
    steps = sum(row.steps for row in rows)
    if steps < LEAST_STEPS or len(rows) < 2:
        return None
    at = max(range(1, len(rows)), key=lambda place: _between_variance(rows[:place], rows[place:]))
    short, long = _mode(rows[:at], steps), _mode(rows[at:], steps)
    low, high = math.log(short.median_ns), math.log(long.median_ns)
    third = (high - low) / 3
    middle = sum(row.steps for row in rows if low + third <= math.log(row.median_ns) <= high - third)
    rarer = min(short.steps, long.steps)
    if rarer < LEAST_SHARE * steps or high - low < math.log(APART) or middle > BETWEEN * rarer:
        return None
    return TwoModes(rows[0].rep, rows[0].rank, short, long, _differs(short, long))


def _between_variance(short: Sequence[StepLengths], long: Sequence[StepLengths]) -> float:
    counts = [sum(row.steps for row in side) for side in (short, long)]
    means = [
        sum(row.steps * math.log(row.median_ns) for row in side) / count
        for side, count in zip((short, long), counts, strict=True)
    ]
    return float(counts[0] * counts[1] * (means[1] - means[0]) ** 2)


def _mode(rows: Sequence[StepLengths], steps: int) -> Mode:
    count = sum(row.steps for row in rows)
    half, seen = count / 2, 0
    median_ns = rows[-1].median_ns
    for row in rows:
        seen += row.steps
        if seen >= half:
            median_ns = row.median_ns
            break
    waits = [row.wait_ns for row in rows if row.wait_ns is not None]
    return Mode(
        count, count / steps, median_ns, sum(waits) / count if waits else None,
        place=_mean((row.steps, row.place) for row in rows),
        own_cores=_mean((row.steps, row.own_cores) for row in rows),
        delay_cores=_mean((row.steps, row.delay_cores) for row in rows),
        neighbour_cores=_mean((row.steps, row.neighbour_cores) for row in rows),
        input_bytes=_mean((row.steps, row.input_bytes) for row in rows),
    )  # fmt: skip


def _mean(values: Iterable[tuple[int, float | None]]) -> float | None:
    """Of values, each with how many steps it is of; None where none is known."""
    known = [(steps, value) for steps, value in values if value is not None]
    count = sum(steps for steps, _ in known)
    return sum(steps * value for steps, value in known) / count if count else None


def _differs(short: Mode, long: Mode) -> list[str]:
    cores = _more(short.own_cores, long.own_cores)
    place = _more(short.place, long.place)
    holds = {
        "data": _more(short.wait_ns, long.wait_ns) >= _MOST_OF * (long.median_ns - short.median_ns),
        "input": _more(short.input_bytes, long.input_bytes) > (_MORE_INPUT - 1) * (short.input_bytes or 0),
        "neighbour": _more(short.neighbour_cores, long.neighbour_cores) >= _MORE_CORES,
        "delay": _more(short.delay_cores, long.delay_cores) >= _MORE_CORES,
        "fewer_cores": cores <= -_MORE_CORES,
        "more_cores": cores >= _MORE_CORES,
        "later": place >= _LATER,
        "earlier": place <= -_LATER,
    }
    return [code for code, does in holds.items() if does]


def _more(short: float | None, long: float | None) -> float:
    """What the long ones have more; 0 where one is not known."""
    return 0.0 if short is None or long is None else long - short
