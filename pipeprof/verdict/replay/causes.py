"""Why a distributed step is slower than it could be: what each possible cause costs, and the rules that name one.

The cost of a cause is the part of the recorded step that goes when only this cause is taken out and the step is
executed again. The rules are data: of the causes whose clauses all hold the one that costs most is named first.

What stage, rank and input do to the length of a pass: log(time) = stage + rank (in a step) + the rest.

The stage's part is the middle rank's usual pass, so that a slow rank does not make its stage look slow; the rank's
part is what its passes have beyond that in most of a step; the rest is the microbatch's own. A rest that forward and
backward pass of one microbatch share comes from its input; noise does not.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.verdict.clause import Code, above, all_hold, at_least, below
from pipeprof.verdict.replay.graph import NotPairedError
from pipeprof.verdict.replay.schedule import CircleError
from pipeprof.verdict.replay.slowdown import Parts, Replay, parts_of, replay_of, slow_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipeprof.verdict.replay.operations import Operations

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


LEAST_STEPS = 3  # fewer do not tell what is usual
MOST_ERROR = 0.05  # of the step: what the step on paper may be off
COST = 0.02  # of the step: less is not worth a word, and noise in healthy jobs brings 0.5 %
LINK_RATIO = 1.5  # times the usual transfer: slower than links vary
INPUT_MATCH = 0.5  # correlation of forward and backward pass; noise has none, inputs of uneven length nearly 1
INPUT_SPREAD = 0.05  # of a pass: microbatches that are nearly equal cannot be balanced
SUSPECTS = 3  # links that are tried

# One entry for each cause: all clauses must hold. Of several the one that costs most is named first.
CAUSES = (
    Code("stage_imbalance", (at_least("stage_cost", COST),)),
    Code(
        "input_length",
        (at_least("input_cost", COST), at_least("input_match", INPUT_MATCH), at_least("input_spread", INPUT_SPREAD)),
    ),
    Code("slow_worker", (at_least("worker_cost", COST), below("sudden", 1))),
    Code("fail_slow", (at_least("worker_cost", COST), at_least("sudden", 1))),
    Code("slow_link", (at_least("link_cost", COST), at_least("link_ratio", LINK_RATIO))),
    Code("host_gap", (at_least("host_cost", COST),)),
)  # fmt: skip
COSTS = {
    "stage_imbalance": "stage_cost", "input_length": "input_cost", "slow_worker": "worker_cost",
    "fail_slow": "worker_cost", "slow_link": "link_cost", "host_gap": "host_cost",
}  # fmt: skip

# All that apply.
DOUBTS = (
    Code("some_steps", (below("steps", 10),)),
    Code("inexact", (above("error", 0.02),)),
    Code("close", (above("runner_up", 0.5), below("runner_up", 2.0))),
    Code("whole_stage", (below("stage_ranks", 2),), only=("stage_imbalance",)),
)


@dataclass(frozen=True)
class Facts:
    """Costs are shares of the recorded step (0..1); None is not measured. `sudden`: 1 when a slow rank has an onset.

    `runner_up`: of a cause, cost of the largest other one over its own; `stage_ranks`: ranks of the late stage.
    """

    steps: int
    error: float
    stage_cost: float | None
    input_cost: float | None
    input_match: float | None
    input_spread: float
    worker_cost: float | None
    sudden: int
    link_cost: float | None
    link_ratio: float | None
    host_cost: float
    stage_ranks: int | None
    runner_up: float = 0.0


def judged(ops: Operations | None) -> dict[str, Any]:
    """The verdict on one repetition: `verdict` (slow, even, not_measured), `why` a code, causes, S and its parts.

    `found`: causes with `code`, `cost` (0..1 of a step), `times` (as fast without it), and who it is; the largest
    first. Times are in ns, S and its parts are ratios; see pipeprof/verdict/replay/slowdown.py for the formulas.
    """
    if ops is None:
        return _not_measured(None)
    if len(ops.positions) < LEAST_STEPS:
        return _not_measured("few_steps")
    try:
        replay = replay_of(ops)
    except NotPairedError:
        return _not_measured("not_paired")
    except CircleError:
        return _not_measured("circle")
    if replay.error > MOST_ERROR:
        return _not_measured("inexact") | {"error": replay.error}
    return _of_replay(replay)


def _not_measured(why: str | None) -> dict[str, Any]:
    return {"verdict": "not_measured", "why": why, "found": [], "slowdown": None, "facts": None, "error": None}


def _of_replay(replay: Replay) -> dict[str, Any]:
    effects = effects_of(replay)
    links = _links(replay)
    facts = _facts(replay, effects, links)
    causes = [
        _cause(outcome.code, replay, effects, links, getattr(facts, COSTS[outcome.code]))
        for outcome in CAUSES
        if all_hold(outcome.when, facts)
    ]
    causes.sort(key=lambda item: -item["cost"])
    for item in causes:
        item["doubts"] = _doubts(item["code"], _beside(facts, item, causes))
        item["confidence"] = _confidence(item["doubts"])
    if causes:
        facts = _beside(facts, causes[0], causes)
    return {
        "verdict": "slow" if causes else "even",
        "why": None,
        "found": causes,
        "slowdown": _slowdown(replay, parts_of(replay)),
        "facts": asdict(facts),
        "error": replay.error,
    }


def _facts(replay: Replay, effects: Effects, links: Sequence[Link]) -> Facts:
    """What every rule is asked about."""
    several = len(np.unique(replay.ops.stage)) > 1
    stage_ranks = len(np.unique(replay.ops.rank[replay.ops.stage == effects.late_stage])) if several else None
    best = links[0] if links else None
    return Facts(
        steps=len(replay.ops.positions),
        error=replay.error,
        stage_cost=_cost(replay, replay.dur / effects.stage) if several else None,
        input_cost=_cost(replay, replay.dur / effects.rest),
        input_match=effects.input_match,
        input_spread=effects.rest_spread,
        worker_cost=_cost(replay, replay.dur / effects.slow) if effects.slow_ranks else None,
        sudden=int(bool(effects.slow_ranks) and effects.slow_ranks[0].onset is not None),
        link_cost=best.cost if best else None,
        link_ratio=best.ratio if best else None,
        host_cost=1 - 1 / replay.launch_slowdown,
        stage_ranks=stage_ranks,
    )


def _beside(facts: Facts, item: dict[str, Any], causes: Sequence[dict[str, Any]]) -> Facts:
    """The facts that doubts of one cause are asked about: with what the largest other one costs beside it."""
    others = [other["cost"] for other in causes if other is not item]
    return replace(facts, runner_up=max(others) / item["cost"]) if others else facts


def _cost(replay: Replay, dur: Any) -> float:
    """Part of the recorded step that goes with these durations."""
    return (float(replay.taken_ns.mean()) - replay.time_ns(dur)) / float(replay.measured_ns.mean())


@dataclass(frozen=True)
class Link:
    """A communication group, what it costs, and how long its transfers take beside the usual ones (median, times)."""

    group: str
    ranks: tuple[int, ...]
    cost: float
    ratio: float


def _links(replay: Replay) -> list[Link]:
    """The suspects, dearest first."""
    ops, links = replay.ops, []
    for group in slow_groups(replay)[:SUSPECTS]:
        mine = ops.is_comm & (ops.group == group)
        dur = np.where(mine[:, None], np.minimum(replay.dur, replay.usual), replay.dur)
        ratio = float(np.median(replay.dur[mine] / np.maximum(replay.usual[mine], 1.0)))
        ranks = tuple(int(rank) for rank in np.unique(ops.rank[mine]))
        links.append(Link(ops.groups[group], ranks, _cost(replay, dur), ratio))
    return sorted(links, key=lambda link: (-link.cost, link.group))


def _cause(code: str, replay: Replay, effects: Effects, links: Sequence[Link], cost: float) -> dict[str, Any]:
    item: dict[str, Any] = {"code": code, "cost": cost, "times": 1 / (1 - cost) if cost < 1 else None}
    if code == "stage_imbalance":
        ranks = np.unique(replay.ops.rank[replay.ops.stage == effects.late_stage])
        item |= {"stage": effects.late_stage, "is_last": effects.late_stage == int(replay.ops.stage.max())}
        item["ranks"] = [int(rank) for rank in ranks]
    elif code in ("slow_worker", "fail_slow"):
        slow = effects.slow_ranks[0]
        item |= {"rank": slow.rank, "late": slow.late, "others": [other.rank for other in effects.slow_ranks[1:]]}
        item["since"] = None if slow.onset is None else int(replay.ops.positions[slow.onset])
    elif code == "slow_link":
        item |= {"link": links[0].group, "ranks": list(links[0].ranks), "ratio": links[0].ratio}
    elif code == "input_length":
        item |= {"match": effects.input_match, "spread": effects.rest_spread}
    return item


def _doubts(code: str, facts: Facts) -> list[dict[str, Any]]:
    apply = (one for one in DOUBTS if (not one.only or code in one.only) and all_hold(one.when, facts))
    return [{"code": one.code, "value": getattr(facts, one.when[0].fact)} for one in apply]


def _confidence(doubts: Sequence[object]) -> str:
    return ("high", "medium", "low")[min(len(doubts), 2)]


def _slowdown(replay: Replay, parts: Parts) -> dict[str, Any]:
    """S and its parts, each the largest first."""
    return {
        "s": replay.slowdown, "launch": replay.launch_slowdown, "m_w": parts.m_w, "m_s": parts.m_s,
        "step_ns": float(replay.measured_ns.mean()), "taken_ns": float(replay.taken_ns.mean()),
        "ideal_ns": replay.ideal_ns, "steps": len(replay.ops.positions), "dropped_steps": replay.ops.dropped_steps,
        "by_stage": _ordered("stage", parts.stages), "by_replica": _ordered("replica", parts.replicas),
        "by_type": _ordered("type", parts.types), "by_link": _ordered("link", parts.links),
        "by_rank": _ordered("rank", parts.ranks),
    }  # fmt: skip


def _ordered(name: str, parts: dict[Any, float]) -> list[dict[str, Any]]:
    return [{name: key, "s": value} for key, value in sorted(parts.items(), key=lambda item: (-item[1], item[0]))]


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
