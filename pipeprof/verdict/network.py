"""What limits a training that is not input-bound: operators, communication, the optimizer, the host, one rank, warm-up.

Pure: rows of the queries in, a plain dict out. docs/network.md says what the parts are and why the thresholds.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from pipeprof.verdict import network_advice as advice
from pipeprof.verdict.evidence import evidence, on
from pipeprof.verdict.network_ops import (
    TESTED_SHARE,
    growing_ops,
    growth_was_measured,
    ops_per_step,
    top_ops,
    top_types,
)
from pipeprof.verdict.network_ranks import slowest_rank, waiting_share
from pipeprof.verdict.rules import graded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.rows import (
        CommSummary,
        NetworkPhase,
        NetworkTop,
        NetworkTypes,
        OpGrowth,
        RankImbalance,
        WarmupShare,
    )

    Row = Mapping[str, Any]

ENOUGH = 0.30  # share of the step without its wait for data that names the limit
LEAD = 0.10  # of the same, ahead of the next part: else two are named
STRONG = 0.50  # for high confidence
WARMUP_SHARE = 0.50  # of the time in training steps: more went to warm-up than to all other steps
LEAST_STEPS, ENOUGH_STEPS = 3, 10
CROWDED = ("shares_cpu", "holds_lock", "other_load")
ASLEEP = 0.2  # of the step: less of it may be what one sample a second does not see
STALLED = 0.2  # of the computing operators' time: where Python launches them and so much is waiting for a core
INFLATED, MUCH_INFLATED = 1.2, 1.5  # a step inside op windows against one outside, both without the wait for data

RECORDED = "diagnose/network_phase"

OTHER_LOADER = "other_loader"  # what made the batches is not known, nor how long the step waited for it
PARTS = (
    "forward", "backward", "gradients", "optimizer", "after", "other", "communication_exposed", "communication_tail",
    "host_gap", "other_loader", "data_wait",
)  # fmt: skip
LIMITS = {
    "compute": advice.COMPUTING,
    "communication": ("communication_exposed", "communication_tail"),
    "gradients": ("gradients",),
    "optimizer": ("optimizer",),
    "after": ("after",),
    "host_gap": ("host_gap",),
    OTHER_LOADER: ("other_loader",),
}
LIMIT_OF = {part: limit for limit, parts in LIMITS.items() for part in parts}


def diagnose_network(
    phases: Sequence[NetworkPhase],
    spread: Sequence[RankImbalance] = (),
    top: Sequence[NetworkTop] = (),
    growth: Sequence[OpGrowth] = (),
    warmups: Sequence[WarmupShare] = (),
    comm: Sequence[CommSummary] = (),
    *,
    types: Sequence[NetworkTypes] = (),
    mode: str | None = None,
    origin: str = RECORDED,
    beside: Sequence[Row] = (),
    waits: float | None = None,
    damaged: bool = False,
) -> dict[str, Any]:
    """What the step is limited by, over all repetitions and ranks.

    `mode`: pynative or graph, if known; `origin`: the query that `phases` are from; `beside`: doubts of the verdict on
    the data; `waits`: the share of the time that it found, where one process was recorded; `damaged`: events of the
    source are lost. Where the step shares cores or the lock with others, its times
    are less sure, and growth says nothing.
    """
    diagnosis = _empty()
    ops = top_ops(top)
    diagnosis["top_ops"], diagnosis["top_types"] = ops, top_types(types)
    diagnosis["ops_per_step"] = ops_per_step(types)
    crowded = [doubt for doubt in beside if doubt["code"] in CROWDED]
    diagnosis["growing_ops"] = growing_ops(growth) if growth_was_measured(growth) and not crowded else None
    slow = slowest_rank(spread)
    diagnosis |= {
        "warmup_share": _worst(warmups), "slowest_rank": slow, "waiting_share": waiting_share(spread),
        "limit_waiting_share": waiting_share(spread, slow),
    }  # fmt: skip
    steady = [row for row in phases if row.kind == "train"]  # warm-up steps say nothing about the others
    chosen = [row for row in steady if slow is None or row.rank == slow["rank"]]
    shares = _shares(chosen)
    if shares and shares["data_wait"] < 1:
        shares = _with_wait(shares, waits)
        device, stalled = _device(chosen), 0.0
        if device is None and not crowded and advice.launched_by_python(mode, ops):
            shares, stalled = _with_stalls(shares, chosen)
        diagnosis |= {"shares": shares, "stalled_share": stalled, "device": device}
        _weigh(diagnosis, chosen, slow)
        _step_evidence(diagnosis, chosen, slow, origin)
        advice.advise(diagnosis, comm, mode)
    _judge_warmup(diagnosis, warmups)
    _judge_growth(diagnosis, growth)
    if damaged and diagnosis["device"] is not None:  # what is lost may be work of a device that seems idle
        diagnosis["doubts"].insert(0, {"code": "lost_events"})
        diagnosis["confidence"] = "low"
    diagnosis["doubts"] += crowded
    diagnosis["confidence"] = graded(crowded, diagnosis["confidence"])
    actions = diagnosis["actions"]
    if diagnosis["limit"] == "not_measured":
        actions.append(advice.Advice("record_more"))
    diagnosis["actions"] = [item.as_dict() for at, item in enumerate(actions) if item not in actions[:at]]
    return diagnosis


def _shares(rows: Sequence[NetworkPhase]) -> dict[str, float] | None:
    """Each part's share of the summed step time; the parts of PARTS add up to 1."""
    step_ns = sum(row.step_ns for row in rows if row.part == "host_gap")
    if not step_ns:
        return None
    times = dict.fromkeys((*PARTS, "communication_overlapped"), 0)
    for row in rows:
        times[row.part] += row.total_ns
    return {part: time / step_ns for part, time in times.items()}


def _with_wait(shares: dict[str, float], waits: float | None) -> dict[str, float]:
    """The same with the wait for data of all steps in place of that of the few whose operators were recorded."""
    if waits is None or waits >= 1:  # then nothing is left to divide
        return shares
    others = dict(shares)
    scale = (1 - waits) / (1 - others.pop("data_wait"))
    return {part: share * scale for part, share in others.items()} | {"data_wait": waits}


def _weigh(diagnosis: dict[str, Any], rows: Sequence[NetworkPhase], slow: Row | None) -> None:
    """The limits, largest first, and how sure the first is."""
    shares = diagnosis["shares"]
    weights = {limit: sum(shares[part] for part in parts) for limit, parts in LIMITS.items()}
    work = 1 - shares["data_wait"]
    if slow is not None:
        weights["imbalance"] = min(slow["share"], 1.0)
        limit = LIMIT_OF.get(slow["phase"])
        if limit is not None:
            weights[limit] = max(0.0, weights[limit] - weights["imbalance"])
        else:
            work += weights["imbalance"]  # the slow rank waits for its data, and that is the imbalance
    order = sorted(weights, key=lambda limit: (-weights[limit], limit))
    first, second = (weights[limit] / work for limit in order[:2])
    clear = first >= ENOUGH and first - second >= LEAD
    diagnosis |= {
        "limit": order[0],
        "limit_share": weights[order[0]],
        "candidates": order[:1] if clear else order[:2],
        "weights": {limit: weights[limit] for limit in order},
        "inflation": _inflation(rows),
        "steps": _steps(rows),
    }
    diagnosis["confidence"] = _confidence(diagnosis, first if clear else 0.0)
    diagnosis["doubts"] = _doubts(diagnosis, first, second)


def _confidence(diagnosis: Row, share: float) -> str:
    """`share` is the limit's share of the work, 0 when it is not clearly ahead."""
    inflation, steps = diagnosis["inflation"], diagnosis["steps"]
    typical = inflation is None or inflation < MUCH_INFLATED
    if not share or not typical or steps < LEAST_STEPS or diagnosis["limit"] == OTHER_LOADER:
        return "low"
    sure = share >= STRONG and steps >= ENOUGH_STEPS and inflation is not None and inflation < INFLATED
    return "high" if sure else "medium"


def _doubts(diagnosis: Row, share: float, next_share: float) -> list[dict[str, Any]]:
    """What is missing for high confidence, as codes with their numbers.

    `share`: the limit's, of the work; `next_share`: of the next part.
    """
    limit, second = list(diagnosis["weights"])[:2]
    doubts: list[dict[str, Any]] = [{"code": OTHER_LOADER}] if limit == OTHER_LOADER else []
    following = {"limit": second, "share": diagnosis["weights"][second]}
    if share - next_share < LEAD:
        doubts.append({"code": "second_close", **following})
    elif share < ENOUGH:
        doubts.append({"code": "none_large", **following, "largest": diagnosis["weights"][limit]})
    elif share < STRONG:
        doubts.append({"code": "not_most", "share": share})
    if diagnosis["steps"] < ENOUGH_STEPS:
        doubts.append({"code": "few_steps", "steps": diagnosis["steps"]})
    if diagnosis["inflation"] is None:
        doubts.append({"code": "no_other_steps", "on_device": diagnosis["device"] is not None})
    elif diagnosis["inflation"] >= INFLATED:
        doubts.append({"code": "inflated", "times": diagnosis["inflation"]})
    return doubts


def _step_evidence(diagnosis: dict[str, Any], rows: Sequence[NetworkPhase], slow: Row | None, origin: str) -> None:
    measured_on = on(
        "step_shares", steps=diagnosis["steps"], recorded=origin == RECORDED,
        ranks=len({(row.rep, row.rank) for row in rows}), slow_rank=None if slow is None else slow["rank"],
    )  # fmt: skip
    weights, shares, lines = diagnosis["weights"], diagnosis["shares"], diagnosis["evidence"]
    for limit in [*diagnosis["candidates"], *(limit for limit in weights if limit not in diagnosis["candidates"])]:
        if limit != "imbalance" and weights[limit] >= 0.01:
            value = sum(shares[part] for part in LIMITS[limit])
            name = "device_idle" if limit == "host_gap" and diagnosis["device"] is not None else limit
            lines.append(evidence("step_part", value, _SHARE, origin, measured_on, limit=name))
    beside = {part: shares[part] for part in ("communication_tail", "communication_overlapped", "data_wait")}
    for part, share in (beside | {"stalled": diagnosis["stalled_share"]}).items():
        if share >= 0.01:
            lines.append(evidence("also", share, _SHARE, origin, measured_on, part=part))
    inflation = diagnosis["inflation"]
    if inflation is not None and inflation >= INFLATED:
        lines.append(evidence("inflation", inflation, "times", "diagnose/network_phase", on("medians")))
    _rank_evidence(diagnosis, slow)


def _rank_evidence(diagnosis: dict[str, Any], slow: Row | None) -> None:
    waiting, source = diagnosis["waiting_share"], "diagnose/rank_imbalance"
    if waiting is not None and waiting >= 0.01:
        diagnosis["evidence"].append(evidence("rank_waits", waiting, _SHARE, source, on("beyond_least")))
    if slow is None:
        return
    common = on("common_steps", steps=slow["steps"], ranks=slow["ranks"], error_ns=slow["excess_error_ns"])
    rank = {"rank": slow["rank"], "phase": slow["phase"]}
    diagnosis["evidence"] += [
        evidence("rank_longer", slow["excess_ns"], "ns", source, common, **rank),
        evidence("wait_caused", slow["wait_caused_ns"], "ns", source, common, **rank),
    ]


def _judge_warmup(diagnosis: dict[str, Any], warmups: Sequence[WarmupShare]) -> None:
    """More warm-up than training makes it the limit; what limits a single step stays a candidate."""
    share = diagnosis["warmup_share"]
    if share is None or share < advice.FEW:
        return
    rows = [row for row in warmups if row.share is not None]
    worst = max(rows, key=lambda row: row.share)
    measured_on = on(
        "warmup", warmup_steps=worst.warmup_steps, compiles=worst.compiles, compile_ns=worst.compile_ns,
        train_steps=worst.train_steps,
    )  # fmt: skip
    unit = "share of the time in training steps"
    diagnosis["evidence"].append(evidence("warmup", share, unit, "diagnose/warmup_share", measured_on))
    if share >= WARMUP_SHARE and worst.train_steps:
        steps_limit = [] if diagnosis["limit"] == "not_measured" else [diagnosis["limit"]]
        diagnosis |= {"limit": "compile", "limit_share": share, "candidates": ["compile", *steps_limit]}
        few = worst.train_steps < ENOUGH_STEPS
        diagnosis["confidence"] = "medium" if few else "high"
        diagnosis["doubts"] = [{"code": "few_steps", "steps": worst.train_steps}] if few else []
        diagnosis["warmup"] = {
            "warmup_steps": worst.warmup_steps, "warmup_ns": worst.warmup_ns, "compiles": worst.compiles,
            "compile_ns": worst.compile_ns,
        }  # fmt: skip
        diagnosis["actions"] = advice.warmup(rows) + diagnosis["actions"]
    elif worst.later_steps:
        diagnosis["actions"] += advice.warmup(rows)[:1]


def _judge_growth(diagnosis: dict[str, Any], growth: Sequence[OpGrowth]) -> None:
    ops = diagnosis["growing_ops"] or []
    for op in ops[:3]:
        measured_on = on(
            "windows", steps=op["steps"], windows=op["windows"], first_ns=op["first_ns"], last_ns=op["last_ns"],
            low_ns=op["slope_low_ns"], high_ns=op["slope_high_ns"],
        )  # fmt: skip
        diagnosis["evidence"].append(
            evidence("growth", op["slope_ns"], "ns per step", "diagnose/op_growth", measured_on, name=op["name"])
        )
    tested = {(row.name, row.phase) for row in growth if (row.share or 0) >= TESTED_SHARE}
    diagnosis["actions"] += advice.growth(ops, len(tested))


def _worst(warmups: Sequence[WarmupShare]) -> float | None:
    """Largest share of a repetition's ranks, median of the repetitions."""
    worst: dict[int, float] = {}
    for row in warmups:
        if row.share is not None:
            worst[row.rep] = max(worst.get(row.rep, 0.0), row.share)
    return median(worst.values()) if worst else None


def _inflation(rows: Sequence[NetworkPhase]) -> float | None:
    """How much longer a step is inside op windows; None when no step lies outside."""
    pairs = [(row.inside_work_ns, row.outside_work_ns) for row in rows if row.part == "host_gap"]
    ratios = [inside / outside for inside, outside in pairs if inside is not None and outside]
    return median(ratios) if ratios else None


def _device(rows: Sequence[NetworkPhase]) -> dict[str, float] | None:
    """Executions on the device in a step, and ns of one; None where the source does not tell device from host."""
    seen = [row for row in rows if row.part == "host_gap" and row.device_ops]
    if not seen:
        return None
    ops = sum(row.device_ops or 0 for row in seen)
    return {"per_step": ops / _steps(seen), "op_ns": sum(row.device_op_ns or 0 for row in seen) / ops}


def _with_stalls(shares: dict[str, float], rows: Sequence[NetworkPhase]) -> tuple[dict[str, float], float]:
    """The same where what short operators wait for a core is the host's, whose Python launches them; and how much."""
    part = median(row.stalled or 0.0 for row in rows if row.part == "host_gap")
    if part < STALLED:
        return shares, 0.0
    kept = {name: share * (1 - part) if name in advice.COMPUTING else share for name, share in shares.items()}
    stalled = sum(shares.values()) - sum(kept.values())
    return kept | {"host_gap": kept["host_gap"] + stalled}, stalled


def _steps(rows: Sequence[NetworkPhase]) -> int:
    return sum(row.steps for row in rows if row.part == "host_gap")


_SHARE = "share of the step time"


def take_sleep(diagnosis: dict[str, Any], cores: float | None) -> None:
    """Put into a diagnosis how much of a step the loop's threads sleep, where that is most of the host's part of it.

    `cores`: that these threads used or wanted, None where not known. What sleeps is no Python that could be compiled.
    """
    limit, share = diagnosis["limit"], diagnosis["limit_share"]
    if cores is None or limit != "host_gap" or share - cores < max(ASLEEP, share / 2):
        return
    doubt = {"code": "asleep", "cores": cores}
    diagnosis |= {
        "asleep_share": share - cores, "confidence": graded([doubt], diagnosis["confidence"]),
        "actions": [advice.Advice("wake_loop", share - cores).as_dict(), *diagnosis["actions"]],
        "doubts": [*diagnosis["doubts"], doubt],
    }  # fmt: skip


def _empty() -> dict[str, Any]:
    return {
        "limit": "not_measured",
        "limit_share": None,
        "candidates": [],
        "weights": {},
        "confidence": "low",
        "shares": None,
        "stalled_share": 0.0,
        "asleep_share": 0.0,
        "device": None,
        "steps": 0,
        "inflation": None,
        "warmup_share": None,
        "waiting_share": None,
        "limit_waiting_share": None,
        "slowest_rank": None,
        "top_ops": [],
        "top_types": [],
        "ops_per_step": None,
        "warmup": None,
        "doubts": [],
        "actions": [],
        "growing_ops": None,
        "evidence": [],
    }
