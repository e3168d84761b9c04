"""What limits a training that is not input-bound: operators, communication, the optimizer, the host, one rank, warm-up.

Pure: rows of the queries in, a plain dict out. docs/network.md says what the parts are and why the thresholds.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from pipeprof.units import format_count, format_ns
from pipeprof.verdict import network_advice as advice
from pipeprof.verdict.network_ops import TESTED_SHARE, growing_ops, growth_was_measured, top_ops, top_types
from pipeprof.verdict.network_ranks import slowest_rank, waiting_share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

ENOUGH = 0.30  # share of the step without its wait for data that names the limit
LEAD = 0.10  # of the same, ahead of the next part: else two are named
STRONG = 0.50  # for high confidence
WARMUP_SHARE = 0.50  # of the time in training steps: more went to warm-up than to all other steps
LEAST_STEPS, ENOUGH_STEPS = 3, 10
INFLATED, MUCH_INFLATED = 1.2, 1.5  # a step inside op windows against one outside, both without the wait for data

RECORDED = ("diagnose/network_phase", "steps with recorded operators")

PARTS = (
    "forward", "backward", "optimizer", "other", "communication_exposed", "communication_tail", "host_gap", "data_wait",
)  # fmt: skip
LIMITS = {
    "compute": ("forward", "backward", "other"),
    "communication": ("communication_exposed", "communication_tail"),
    "optimizer": ("optimizer",),
    "host_gap": ("host_gap",),
}
LIMIT_OF = {part: limit for limit, parts in LIMITS.items() for part in parts}
NAMES = {
    "compute": "operators of the forward and backward pass",
    "communication": "exposed communication",
    "optimizer": "operators of the optimizer",
    "host_gap": "no operator runs, only Python and framework code on the host",
    "imbalance": "waiting for the slowest rank",
}


def diagnose_network(
    phases: Sequence[Row],
    spread: Sequence[Row] = (),
    top: Sequence[Row] = (),
    growth: Sequence[Row] = (),
    warmups: Sequence[Row] = (),
    comm: Sequence[Row] = (),
    *,
    types: Sequence[Row] = (),
    mode: str | None = None,
    origin: tuple[str, str] = RECORDED,
) -> dict[str, Any]:
    """What the step is limited by, over all repetitions and ranks.

    `phases`: rows of diagnose/network_phase; `spread`: diagnose/rank_imbalance; `top`: diagnose/network_top; `growth`:
    diagnose/op_growth; `warmups`: diagnose/warmup_share; `comm`: comm/summary; `types`: diagnose/network_types; `mode`:
    pynative or graph, if known; `origin`: the query that `phases` are from, and what its steps are.
    """
    found = _empty()
    found["top_ops"], found["top_types"] = top_ops(top), top_types(types)
    found["growing_ops"] = growing_ops(growth) if growth_was_measured(growth) else None
    found["warmup_share"] = _worst(warmups)
    slow = slowest_rank(spread)
    found["slowest_rank"] = slow
    found["waiting_share"] = waiting_share(spread)
    steady = [row for row in phases if row["kind"] == "train"]  # warm-up steps say nothing about the others
    chosen = [row for row in steady if slow is None or row["rank"] == slow["rank"]]
    shares = _shares(chosen)
    if shares and shares["data_wait"] < 1:
        found["shares"] = shares
        _weigh(found, chosen, slow)
        _step_evidence(found, chosen, slow, origin)
        advice.advise(found, comm, mode)
    _judge_warmup(found, warmups)
    _judge_growth(found, growth)
    if found["limit"] == "not_measured":
        found["actions"].append(advice.Advice("record the operators of more steps: a longer run, or collect --ops all"))
    found["actions"] = list(dict.fromkeys(found["actions"]))
    found["suggestions"] = [advice.stated(item) for item in found["actions"]]
    found["actions"] = [item._asdict() for item in found["actions"]]
    return found


def _shares(rows: Sequence[Row]) -> dict[str, float] | None:
    """Each part's share of the summed step time; the parts of PARTS add up to 1."""
    step_ns = sum(row["step_ns"] for row in rows if row["part"] == "host_gap")
    if not step_ns:
        return None
    times = dict.fromkeys((*PARTS, "communication_overlapped"), 0)
    for row in rows:
        times[row["part"]] += row["total_ns"]
    return {part: time / step_ns for part, time in times.items()}


def _weigh(found: dict[str, Any], rows: Sequence[Row], slow: Row | None) -> None:
    """The limits, largest first, and how sure the first is."""
    shares = found["shares"]
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
    found |= {
        "limit": order[0],
        "limit_share": weights[order[0]],
        "candidates": order[:1] if clear else order[:2],
        "weights": {limit: weights[limit] for limit in order},
        "inflation": _inflation(rows),
        "steps": _steps(rows),
    }
    found["confidence"] = _confidence(found, first if clear else 0.0)
    found["doubts"] = _doubts(found, first, clear=clear)


def _confidence(found: Row, share: float) -> str:
    """`share` is the limit's share of the work, 0 when it is not clearly ahead."""
    inflation, steps = found["inflation"], found["steps"]
    typical = inflation is None or inflation < MUCH_INFLATED
    if not share or not typical or steps < LEAST_STEPS:
        return "low"
    sure = share >= STRONG and steps >= ENOUGH_STEPS and inflation is not None and inflation < INFLATED
    return "high" if sure else "medium"


def _doubts(found: Row, share: float, *, clear: bool) -> list[dict[str, Any]]:
    """What is missing for high confidence, as codes with their numbers. `share`: the limit's, of the work."""
    doubts: list[dict[str, Any]] = []
    if not clear:
        second = found["candidates"][1]
        doubts.append({"code": "second_close", "limit": second, "share": found["weights"][second]})
    elif share < STRONG:
        doubts.append({"code": "not_most", "share": share})
    if found["steps"] < ENOUGH_STEPS:
        doubts.append({"code": "few_steps", "steps": found["steps"]})
    if found["inflation"] is None:
        doubts.append({"code": "no_other_steps"})
    elif found["inflation"] >= INFLATED:
        doubts.append({"code": "inflated", "times": found["inflation"]})
    return doubts


def _step_evidence(found: dict[str, Any], rows: Sequence[Row], slow: Row | None, origin: tuple[str, str]) -> None:
    query, steps = origin
    ranks = len({(row["rep"], row["rank"]) for row in rows})
    where = f"rank {slow['rank']}, the slowest" if slow is not None else f"{ranks} rank{'' if ranks == 1 else 's'}"
    basis = f"{found['steps']} {steps}, {where}"
    for limit in [*found["candidates"], *(limit for limit in found["weights"] if limit not in found["candidates"])]:
        if limit != "imbalance" and found["weights"][limit] >= 0.01:
            value = sum(found["shares"][part] for part in LIMITS[limit])
            found["evidence"].append(_evidence(NAMES[limit], value, _SHARE, query, basis))
    extra = {
        "communication_tail": "exposed communication behind the backward pass",
        "communication_overlapped": "communication beside other operators",
        "data_wait": "wait for data in these steps",
    }
    for part, what in extra.items():
        if found["shares"][part] >= 0.01:
            found["evidence"].append(_evidence(what, found["shares"][part], _SHARE, query, basis))
    if found["inflation"] is not None and found["inflation"] >= INFLATED:
        found["evidence"].append(
            _evidence("steps inside op windows take longer than those outside", found["inflation"], "times",
                      "diagnose/network_phase", "medians without the wait for data")
        )  # fmt: skip
    _rank_evidence(found, slow)


def _rank_evidence(found: dict[str, Any], slow: Row | None) -> None:
    waiting = found["waiting_share"]
    if waiting is not None and waiting >= 0.01:
        basis = "exposed communication beyond that of the rank with the least, mean of the ranks"
        found["evidence"].append(
            _evidence("waiting for another rank", waiting, _SHARE, "diagnose/rank_imbalance", basis)
        )
    if slow is None:
        return
    basis = (
        f"{slow['steps']} common steps of {slow['ranks']} ranks; standard error {format_ns(slow['excess_error_ns'])}; "
        "steps are equally long on all ranks, so the slow one is the one with the longest own time and the least "
        "communication"
    )
    what = f"rank {slow['rank']} works longer than the others, most in {advice.PHASE_NAMES[slow['phase']]}"
    source = "diagnose/rank_imbalance"
    found["evidence"] += [
        _evidence(what, slow["excess_ns"], "ns", source, basis),
        _evidence("the others wait for it per step", slow["wait_caused_ns"], "ns", source, basis),
    ]


def _judge_warmup(found: dict[str, Any], warmups: Sequence[Row]) -> None:
    """More warm-up than training makes it the limit; what limits a single step stays a candidate."""
    share = found["warmup_share"]
    if share is None or share < advice.FEW:
        return
    rows = [row for row in warmups if row["share"] is not None]
    worst = max(rows, key=lambda row: row["share"])
    basis = (
        f"{worst['warmup_steps']} in warm-up ({format_count(worst['compiles'], 'compilation')} took "
        f"{format_ns(worst['compile_ns'])}), {worst['train_steps']} others; worst rank, median of the repetitions"
    )
    what = "warm-up steps, graph compilation included"
    found["evidence"].append(_evidence(what, share, "share of the time in training steps", _WARMUP, basis))
    if share >= WARMUP_SHARE and worst["train_steps"]:
        steps_limit = [] if found["limit"] == "not_measured" else [found["limit"]]
        found |= {"limit": "compile", "limit_share": share, "candidates": ["compile", *steps_limit]}
        few = worst["train_steps"] < ENOUGH_STEPS
        found["confidence"] = "medium" if few else "high"
        found["doubts"] = [{"code": "few_steps", "steps": worst["train_steps"]}] if few else []
        found["warmup"] = {name: worst[name] for name in ("warmup_steps", "warmup_ns", "compiles", "compile_ns")}
        found["actions"] = advice.warmup(rows) + found["actions"]
    elif worst["later_steps"]:
        found["actions"] += advice.warmup(rows)[:1]


def _judge_growth(found: dict[str, Any], growth: Sequence[Row]) -> None:
    ops = found["growing_ops"] or []
    for op in ops[:3]:
        basis = (
            f"{op['steps']} steps in {op['windows']} windows, from {format_ns(op['first_ns'])} to "
            f"{format_ns(op['last_ns'])} per step; interval {format_ns(op['slope_low_ns'])} to "
            f"{format_ns(op['slope_high_ns'])}"
        )
        what = f"`{op['name']}` takes longer from step to step"
        found["evidence"].append(_evidence(what, op["slope_ns"], "ns per step", "diagnose/op_growth", basis))
    tested = {(row["name"], row["phase"]) for row in growth if (row["share"] or 0) >= TESTED_SHARE}
    found["actions"] += advice.growth(ops, len(tested))


def _worst(warmups: Sequence[Row]) -> float | None:
    """Largest share of a repetition's ranks, median of the repetitions."""
    worst: dict[int, float] = {}
    for row in warmups:
        if row["share"] is not None:
            worst[row["rep"]] = max(worst.get(row["rep"], 0.0), row["share"])
    return median(worst.values()) if worst else None


def _inflation(rows: Sequence[Row]) -> float | None:
    """How much longer a step is inside op windows; None when no step lies outside."""
    pairs = [(row["inside_work_ns"], row["outside_work_ns"]) for row in rows if row["part"] == "host_gap"]
    ratios = [inside / outside for inside, outside in pairs if inside is not None and outside]
    return median(ratios) if ratios else None


def _steps(rows: Sequence[Row]) -> int:
    return sum(row["steps"] for row in rows if row["part"] == "host_gap")


_SHARE = "share of the step time"
_WARMUP = "diagnose/warmup_share"


def _evidence(what: str, value: float, unit: str, source: str, basis: str) -> dict[str, Any]:
    return {"what": what, "value": value, "unit": unit, "source": source, "basis": basis}


def _empty() -> dict[str, Any]:
    return {
        "limit": "not_measured",
        "limit_share": None,
        "candidates": [],
        "weights": {},
        "confidence": "low",
        "shares": None,
        "steps": 0,
        "inflation": None,
        "warmup_share": None,
        "waiting_share": None,
        "slowest_rank": None,
        "top_ops": [],
        "top_types": [],
        "warmup": None,
        "doubts": [],
        "actions": [],
        "growing_ops": None,
        "evidence": [],
        "suggestions": [],
    }
