"""How much of a step is slower than it would be with equal operations, and through whom.

T is the step executed on paper with the measured durations and without delays of the host, T_ideal the same with every
operation replaced by its peers' (computing: the mean of its type over ranks and steps; communication: the median
time after its last rank began). S = T / T_ideal. S_x has everything ideal but x. M_W is the part of T - T_ideal that
goes when the slowest 3 % of the ranks become ideal, M_S the same for the last stage; the score of a rank is the smaller
of S of its replica and of its stage. After "Understanding Stragglers in Large Model Training Using What-if Analysis",
equations 1 to 5 (ByteDance, OSDI 2025).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.verdict.replay.graph import Graph, graph_of
from pipeprof.verdict.replay.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipeprof.verdict.replay.operations import Operations

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

MOST_REPLICAS = 256  # of which S_x is computed; a job with more has M_W over its stages alone


@dataclass(frozen=True)
class Replay:
    """A step that can be executed with other durations. `dur`, `usual`: (n, s) ns as measured, and ideal.

    `replica`: (n,) which pipeline of the job each operation belongs to; `measured_ns`, `taken_ns`: (s,) step times as
    recorded, and on paper without delays of the host; `ideal_ns`: T_ideal; `error`: how far the step on paper, delays
    included, is from the recorded one, mean over the steps (0.01 is 1 %).
    """

    ops: Operations
    graph: Graph
    schedule: Schedule
    dur: Floats
    usual: Floats
    replica: Ints
    measured_ns: Floats
    taken_ns: Floats
    ideal_ns: float
    error: float

    @property
    def slowdown(self) -> float:
        """Slowdown S: mean time of a replayed step / time of an ideal one."""
        return float(self.taken_ns.mean()) / self.ideal_ns

    @property
    def launch_slowdown(self) -> float:
        """Recorded step time / T: what delays of the host cost."""
        return float(self.measured_ns.mean() / self.taken_ns.mean())

    def time_ns(self, dur: Floats) -> float:
        """Mean step time with these durations, (n, s) or (n, 1)."""
        return float(self.schedule.run(dur)[1].max(axis=0).mean())

    def only(self, chosen: Flags) -> float:
        """S_x: with `chosen` (n,) as measured and all else ideal."""
        return self.time_ns(np.where(chosen[:, None], self.dur, self.usual)) / self.ideal_ns

    def without(self, chosen: Flags) -> float | None:
        """Part of T - T_ideal that goes when `chosen` (n,) become ideal; None when there is nothing to lose."""
        lost = float(self.taken_ns.mean()) - self.ideal_ns
        if lost <= 0:
            return None
        left = self.time_ns(np.where(chosen[:, None], self.usual, self.dur))
        return (float(self.taken_ns.mean()) - left) / lost


def replay_of(ops: Operations) -> Replay:
    """Raises NotPairedError and CircleError where what was recorded cannot be executed again."""
    graph = graph_of(ops)
    schedule = Schedule(graph)
    begun = schedule.together(ops.start)
    dur = np.where(ops.is_comm[:, None], np.maximum(ops.end - begun, 0.0), ops.end - ops.start)
    delay = np.maximum(ops.start - schedule.ready(ops.end), 0.0)
    usual = np.broadcast_to(_usual(ops, dur)[:, None], dur.shape)
    taken = schedule.run(dur)[1].max(axis=0)
    measured = ops.step_ns
    again = schedule.run(dur, delay)[1].max(axis=0)
    return Replay(
        ops=ops,
        graph=graph,
        schedule=schedule,
        dur=dur,
        usual=usual,
        replica=replicas(ops),
        measured_ns=measured,
        taken_ns=taken,
        ideal_ns=float(schedule.run(usual[:, :1])[1].max()),
        error=float(np.mean(np.abs(again / np.maximum(measured, 1.0) - 1))),
    )


def _usual(ops: Operations, dur: Floats) -> Floats:
    usual = np.empty(len(dur))
    for kind in range(len(ops.types)):
        for comm in (False, True):
            mine = (ops.type == kind) & (ops.is_comm == comm)
            if mine.any():
                usual[mine] = np.median(dur[mine]) if comm else dur[mine].mean()
    return usual


def replicas(ops: Operations) -> Ints:
    """(n,) the pipeline of each operation's rank: ranks that send to each other, or meet in every pass. From 0."""
    parent = {int(rank): int(rank) for rank in np.unique(ops.rank)}

    def root(rank: int) -> int:
        while parent[rank] != rank:
            rank = parent[rank]
        return rank

    for group in np.unique(ops.group[ops.is_comm]):
        mine = ops.is_comm & (ops.group == group)
        ranks = [int(rank) for rank in np.unique(ops.rank[mine])]
        if not (ops.between_two & mine).any() and not _is_in_every_pass(ops, mine, ranks[0]):
            continue
        for rank in ranks[1:]:
            one, other = sorted((root(ranks[0]), root(rank)))
            parent[other] = one
    roots = np.array([root(int(rank)) for rank in ops.rank])
    replica_of: Ints = np.unique(roots, return_inverse=True)[1].reshape(-1)
    return replica_of


def _is_in_every_pass(ops: Operations, group: Flags, rank: int) -> bool:
    """Tensor parallel groups meet in every pass, data parallel ones once or twice in a step."""
    mine = ops.rank == rank
    return int(np.sum(group & mine & (ops.stem >= 0))) >= int(np.sum(ops.is_pass & mine))


@dataclass(frozen=True)
class Parts:
    """S_x of each stage, replica, type of operation and link; the score of each rank; M_W, M_S, None without loss."""

    stages: dict[int, float]
    replicas: dict[int, float]
    types: dict[str, float]
    links: dict[str, float]
    ranks: dict[int, float]
    m_w: float | None
    m_s: float | None


def parts_of(replay: Replay, most_links: int = 8) -> Parts:
    """Of the links only those that lose most time on their own, in all."""
    ops = replay.ops
    stages = {int(one): replay.only(ops.stage == one) for one in np.unique(ops.stage)}
    groups = np.unique(replay.replica)
    lines = {int(one): replay.only(replay.replica == one) for one in groups} if len(groups) <= MOST_REPLICAS else {}
    kinds = {name: replay.only(ops.type == index) for index, name in enumerate(ops.types)}
    links = {ops.groups[one]: replay.only(ops.is_comm & (ops.group == one)) for one in slow_groups(replay)[:most_links]}
    scores = {
        int(rank): min(stages[int(ops.stage[op])], lines.get(int(replay.replica[op]), np.inf))
        for rank, op in zip(*np.unique(ops.rank, return_index=True), strict=True)
    }
    last = max(stages)
    return Parts(
        stages, lines, kinds, links, scores,
        m_w=replay.without(np.isin(ops.rank, slowest(scores))),
        m_s=replay.without(ops.stage == last) if len(stages) > 1 else None,
    )  # fmt: skip


def slowest(scores: dict[int, float]) -> list[int]:
    """The slowest 3 % of the ranks, at least one; of equals the lower."""
    count = -(-len(scores) * 3 // 100)
    return sorted(scores, key=lambda rank: (-scores[rank], rank))[:count]


def slow_groups(replay: Replay) -> Sequence[int]:
    """Named communication groups that lose time against their peers, most first."""
    ops = replay.ops
    lost: dict[int, float] = {}
    for group in np.unique(ops.group[ops.is_comm]):
        mine = ops.is_comm & (ops.group == group)
        excess = float((replay.dur[mine] - replay.usual[mine]).sum())
        if ops.groups[group] and excess > 0:
            lost[int(group)] = excess
    return sorted(lost, key=lambda group: (-lost[group], group))
