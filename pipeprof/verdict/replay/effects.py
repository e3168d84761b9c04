"""What stage, rank and input do to the length of a pass: log(time) = stage + rank (in a step) + the rest.

The stage's part is the middle rank's usual pass, so that a slow rank does not make its stage look slow; the rank's
part is what its passes have beyond that in most of a step; the rest is the microbatch's own. A rest that forward and
backward pass of one microbatch share comes from its input; noise does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeprof.verdict.replay.slowdown import Replay

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

SLOW = 0.05  # of its peers' time: a rank below that is not called slow
ERRORS = 5.0  # standard errors that a rank must be beyond its peers
LEAST_PART = 2  # steps on either side of an onset
EFFICIENCY = 1.2533  # standard error of a median over that of a mean
SUDDEN = 0.5  # of what a rank is late after its onset: it was late by less than that before


@dataclass(frozen=True)
class SlowRank:
    """`late`: how much longer its passes take, 0.5 is half as long again; after the onset, an index of a step."""

    rank: int
    late: float
    onset: int | None


@dataclass(frozen=True)
class Effects:
    """Factors of each operation, (n, s), 1 where it is no pass; and what they were found from.

    `stage`: a pass of this stage beside the mean stage; `slow`: a slow rank beside its peers; `rest`: this microbatch
    beside others. `input_match`: correlation of the rest between forward and backward pass, None without both.
    `rest_spread`: standard deviation of its logarithm.
    """

    stage: Floats
    slow: Floats
    rest: Floats
    slow_ranks: tuple[SlowRank, ...]
    late_stage: int | None
    input_match: float | None
    rest_spread: float


def effects_of(replay: Replay) -> Effects:
    """Effects of the passes of a replayed step."""
    ops = replay.ops
    mine = np.flatnonzero(ops.is_pass)
    ones = np.ones_like(replay.dur)
    if not len(mine):
        return Effects(ones, ones, ones, (), None, None, 0.0)
    log = np.log(np.maximum(replay.dur[mine], 1.0))
    level = _levels(replay, mine, log)
    slow_ranks, late = _slow_ranks(ops.rank[mine], log - level[:, None])
    rest = log - level[:, None] - late
    stage, slow, other = ones.copy(), ones.copy(), ones.copy()
    stage[mine] = _beside_mean(np.exp(level), ops.stem[mine])[:, None]
    slow[mine] = np.exp(late)
    other[mine] = np.exp(rest) / _means(np.exp(rest), _cells(replay, mine))
    late_stage, match = _late_stage(replay, mine, stage), _match(replay, mine, rest)
    return Effects(stage, slow, other, slow_ranks, late_stage, match, float(rest.std()))


def _cells(replay: Replay, mine: Ints) -> Ints:
    """(p,) number of the stage, chunk and direction of each pass."""
    ops = replay.ops
    keys = np.stack([ops.stage[mine], ops.chunk[mine], ops.stem[mine]], axis=1)
    cells: Ints = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    return cells


def _levels(replay: Replay, mine: Ints, log: Floats) -> Floats:
    """(p,) log of the usual pass of the middle rank; of two ranks of the faster one."""
    cell, levels = _cells(replay, mine), np.empty(len(mine))
    for number in range(cell.max() + 1):
        here = cell == number
        ranks = replay.ops.rank[mine][here]
        usual = sorted(float(np.median(log[here][ranks == rank])) for rank in np.unique(ranks))
        levels[here] = usual[(len(usual) - 1) // 2]
    return levels


def _beside_mean(usual: Floats, stem: Ints) -> Floats:
    ratios = np.empty(len(usual))
    for one in np.unique(stem):
        ratios[stem == one] = usual[stem == one] / usual[stem == one].mean()
    return ratios


def _means(values: Floats, cell: Ints) -> Floats:
    """(p, 1) mean of each cell."""
    means: Floats = np.bincount(cell, weights=values.mean(axis=1)) / np.bincount(cell)
    return means[cell][:, None]


def _slow_ranks(rank: Ints, beyond: Floats) -> tuple[tuple[SlowRank, ...], Floats]:
    """Ranks that are late, latest first, and (p, s) log of by how much; 0 for others."""
    late, slow = np.zeros_like(beyond), []
    for one in np.unique(rank):
        passes = beyond[rank == one]
        in_step = np.median(passes, axis=0)
        onset = _onset(in_step)
        since = onset or 0
        usual = float(np.median(in_step[since:]))
        if usual <= max(np.log1p(SLOW), ERRORS * _error(passes[:, since:])):
            continue
        late[np.ix_(rank == one, np.arange(since, len(in_step)))] = usual
        slow.append(SlowRank(int(one), float(np.expm1(usual)), onset))
    return tuple(sorted(slow, key=lambda item: (-item.late, item.rank))), late


def _error(passes: Floats) -> float:
    """Standard error of the usual pass, (p, s): the larger of what steps and what single passes tell.

    Forward and backward pass of a microbatch count as one.
    """
    in_step = np.median(passes, axis=0)
    if len(in_step) < 2:
        return float("inf")
    by_step = _spread(in_step) / np.sqrt(len(in_step))
    by_pass = passes.std() / np.sqrt(passes.size / 2)
    return EFFICIENCY * float(max(by_step, by_pass))


def _spread(values: Floats) -> float:
    """Standard deviation of values in time order whose level may change, from how neighbours differ."""
    return float(np.sqrt(np.mean(np.diff(values) ** 2) / 2)) if len(values) > 1 else 0.0


def _onset(in_step: Floats) -> int | None:
    """The step from which on a rank is slow, by the smallest sum of squares; None when it is so from the begin."""
    count = len(in_step)
    if count < 3 * LEAST_PART:
        return None
    cuts = range(LEAST_PART, count - LEAST_PART + 1)
    best = min(cuts, key=lambda cut: in_step[:cut].var() * cut + in_step[cut:].var() * (count - cut))
    before, after = float(np.median(in_step[:best])), float(np.median(in_step[best:]))
    spread = np.hypot(_spread(in_step[:best]), _spread(in_step[best:])) / np.sqrt(2)
    error = EFFICIENCY * float(spread) * np.sqrt(1 / best + 1 / (count - best))
    clear = after - before > max(np.log1p(SLOW), ERRORS * error)
    return best if clear and before < SUDDEN * after else None


def _late_stage(replay: Replay, mine: Ints, stage: Floats) -> int | None:
    """The stage whose passes take longest in all."""
    stages = replay.ops.stage[mine]
    if len(np.unique(stages)) < 2:
        return None
    return int(max(np.unique(stages), key=lambda one: stage[mine][stages == one].mean()))


def _match(replay: Replay, mine: Ints, rest: Floats) -> float | None:
    ops = replay.ops
    keys = {
        (int(ops.rank[op]), int(ops.chunk[op]), int(ops.number[op]), int(ops.stem[op])): index
        for index, op in enumerate(mine)
    }
    pairs = [
        (index, keys[key[0], key[1], key[2], 1]) for key, index in keys.items() if key[3] == 0 and (*key[:3], 1) in keys
    ]
    if not pairs:
        return None
    one, other = (rest[[pair[side] for pair in pairs]].ravel() for side in (0, 1))
    if len(one) < 3 or not one.std() or not other.std():
        return None
    return float(np.corrcoef(one, other)[0, 1])
