"""What waits for what in a step: edges between operations, and operations that take place together.

Passes of a rank follow each other, and so do events of one stream. A transfer belongs to the pass of the same number,
direction and model chunk: a pass waits for what it receives, a sending for its pass, and a receiving is asked for
when the pass of that direction before is done. Collectives that never run beside a pass of their rank stand between
passes. What nothing in the names tells follows from the times: what had ended in every step before the other began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from pipeprof.verdict.replay.operations import Operations

    Ints = NDArray[np.int64]

NEAR_NS = 1_000.0  # clocks and rounding: what ends this much after another begins counts as before it


class NotPairedError(Exception):
    """Communication whose other side was not recorded, so that nobody knows who waits for whom."""


@dataclass(frozen=True)
class Graph:
    """`before` and `after`: ends of each edge. `together`: number of the set of operations that each belongs to."""

    before: Ints
    after: Ints
    together: Ints


def graph_of(ops: Operations) -> Graph:
    """Raises NotPairedError where a sending has no receiving, or a collective not the same events on all its ranks."""
    edges: list[tuple[int, int]] = []
    together = _together(ops)
    for rank in np.unique(ops.rank):
        edges += _of_rank(ops, np.flatnonzero(ops.rank == rank))
    pairs = np.array(sorted(set(edges)), dtype=np.int64).reshape(-1, 2)
    return Graph(pairs[:, 0], pairs[:, 1], together)


def _together(ops: Operations) -> Ints:
    ends = _ends(ops)
    met: dict[tuple[object, ...], list[int]] = {}
    turn: dict[tuple[object, ...], int] = {}
    for op in np.flatnonzero(ops.is_comm).tolist():
        stage = -1 if ops.groups[ops.group[op]] else int(ops.stage[op])
        meeting = _meeting(ops, op, stage, ends)
        own = (*meeting, int(ops.rank[op]))
        turn[own] = turn.get(own, -1) + 1
        met.setdefault((*meeting, turn[own]), []).append(op)
    sizes: dict[tuple[object, ...], set[int]] = {}
    together = np.arange(len(ops.rank))
    for key, members in met.items():
        if ops.between_two[members[0]] and len(members) != 2:
            raise NotPairedError
        sizes.setdefault(key[:-1], set()).add(len(members))
        together[members] = members[0]
    if any(len(counts) > 1 for counts in sizes.values()):
        raise NotPairedError
    return together


def _ends(ops: Operations) -> dict[int, list[int]]:
    """The ranks that send and receive in each group; of transfers there are two."""
    mine = np.flatnonzero(ops.between_two)
    ends: dict[int, list[int]] = {}
    for group, rank in np.unique(np.stack([ops.group[mine], ops.rank[mine]], axis=1), axis=0).tolist():
        ends.setdefault(group, []).append(rank)
    if any(len(ranks) != 2 for ranks in ends.values()):
        raise NotPairedError
    return ends


def _meeting(ops: Operations, op: int, stage: int, ends: dict[int, list[int]]) -> tuple[object, ...]:
    """What the two sides of a transfer, or all ranks of a collective, have in common."""
    group = int(ops.group[op])
    if not ops.between_two[op]:
        return group, stage, int(ops.type[op])
    one, other = ends[group]
    sends = bool(ops.is_send[op]) == (one == int(ops.rank[op]))
    return group, int(ops.stem[op]), one if sends else other


def _of_rank(ops: Operations, mine: Ints) -> Iterable[tuple[int, int]]:
    """`mine`: operations of one rank in the order of their begin."""
    passes = mine[~ops.is_comm[mine]]
    comm = mine[ops.is_comm[mine]]
    lane = _lane(ops, passes, comm[~ops.between_two[comm]])
    yield from _chain(lane)
    for track in np.unique(ops.track[comm]):
        yield from _chain(comm[ops.track[comm] == track])
    counts = {key: int(np.sum(_of(ops, passes, key))) for key in _keys(ops, passes)}
    position_of = {int(op): index for index, op in enumerate(lane)}
    before = _before(ops, lane)
    sides = {key: {side: comm[_transfers(ops, comm, key, side)] for side in (False, True)} for key in counts}
    own = {key: passes[_of(ops, passes, key)] for key in counts}
    for op in comm.tolist():
        key = (int(ops.stem[op]), int(ops.chunk[op]))
        if op in position_of:
            continue
        if ops.between_two[op] and counts.get(key) == len(sides.get(key, {}).get(bool(ops.is_send[op]), ())):
            yield from _transfer(ops, op, lane, position_of[int(own[key][ops.number[op]])], before)
        else:
            yield from _by_time(ops, op, lane)


def _before(ops: Operations, lane: Ints) -> dict[int, int]:
    """Of each pass of a lane the place of the pass before it in its direction."""
    last: dict[int, int] = {}
    before: dict[int, int] = {}
    for index, op in enumerate(lane.tolist()):
        stem = int(ops.stem[op])
        if ops.is_comm[op]:
            continue
        if stem in last:
            before[index] = last[stem]
        last[stem] = index
    return before


def _transfers(ops: Operations, comm: Ints, key: tuple[int, int], side: bool) -> NDArray[np.bool_]:  # noqa: FBT001
    """Which of them send (or, where `side` is false, receive) for passes of this direction and chunk."""
    same: NDArray[np.bool_] = _of(ops, comm, key) & (ops.is_send[comm] == side) & ops.between_two[comm]
    return same


def _keys(ops: Operations, passes: Ints) -> set[tuple[int, int]]:
    both = zip(ops.stem[passes].tolist(), ops.chunk[passes].tolist(), strict=True)
    return {(stem, chunk) for stem, chunk in both if stem >= 0}


def _of(ops: Operations, some: Ints, key: tuple[int, int]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (ops.stem[some] == key[0]) & (ops.chunk[some] == key[1])
    return same


def _chain(some: Ints) -> Iterable[tuple[int, int]]:
    return zip(some[:-1].tolist(), some[1:].tolist(), strict=True)


def _lane(ops: Operations, passes: Ints, collectives: Ints) -> Ints:
    """Passes, and collectives that ran beside none of them in any step, in the order of their begin."""
    free = [op for op in collectives if not len(passes) or _is_alone(ops, passes, op)]
    lane = np.concatenate([passes, np.array(free, dtype=np.int64)])
    order = np.lexsort((ops.end[lane].mean(axis=1), ops.start[lane].mean(axis=1)))
    return np.asarray(lane[order])


def _is_alone(ops: Operations, passes: Ints, op: int) -> bool:
    beside = (ops.start[passes] < ops.end[op] - NEAR_NS) & (ops.end[passes] > ops.start[op] + NEAR_NS)
    return not bool(beside.any())


def _transfer(ops: Operations, op: int, lane: Ints, own: int, before: dict[int, int]) -> Iterable[tuple[int, int]]:
    """Edges of a transfer that belongs to the pass `lane[own]`; `before`: the passes before, see `_before`."""
    if ops.is_send[op]:
        yield int(lane[_until(ops, lane, own)]), op
        return
    yield op, int(lane[own])
    if own in before:
        yield int(lane[_until(ops, lane, before[own])]), op
    else:
        yield from _start(ops, op, lane)


def _until(ops: Operations, lane: Ints, index: int) -> int:
    """The last collective right behind a pass, else the pass."""
    while index + 1 < len(lane) and ops.is_comm[lane[index + 1]] and ops.stem[lane[index + 1]] == ops.stem[lane[index]]:
        index += 1
    return index


def _start(ops: Operations, op: int, lane: Ints) -> Iterable[tuple[int, int]]:
    done = np.flatnonzero((ops.end[lane] <= ops.start[op] + NEAR_NS).all(axis=1))
    if len(done):
        yield int(lane[done[-1]]), op


def _by_time(ops: Operations, op: int, lane: Ints) -> Iterable[tuple[int, int]]:
    yield from _start(ops, op, lane)
    waiting = np.flatnonzero((ops.start[lane] >= ops.end[op] - NEAR_NS).all(axis=1))
    if len(waiting) and not ops.is_send[op]:
        yield op, int(lane[waiting[0]])
