"""Whether ranks and pipeline stages compute equally much and equally fast, by MindInsight's rules: never our verdict.

MindInsight 2.3.1 judges once the files of all ranks are there. A stage is too heavy when its FLOPs, mean of its ranks,
exceed the mean of the stages by more than a fifth; a rank is slow when its FLOPS fall short of the mean of the ranks by
more than a fifth. Of each it names the worst. Stages count from 1 and have equally many ranks, in order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMIT = 0.2
PIPELINE = "pipeline"
MILLION, BILLION = 1e6, 1e9  # units of the files


def flops_of_ranks(profiler: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the manifest's `profiler` says of FLOPs; None when it says nothing.

    `ranks`: operations of a step, per second, and share of the device's peak, by rank; `stages`: means of the ranks
    that are there (where stages are known); `mode`, `expected`: kind of parallelism and number of ranks, None when not
    known; `judged`: whether MindInsight would judge; `stage`, `rank`: the one it would name, or None.
    """
    said_of = {rank: said for rank, said in profiler.items() if isinstance(said, dict)}
    ranks = [row for rank, said in said_of.items() if (row := _rank(rank, _part(said, "flops")))]
    if not ranks:
        return None
    parallel = next(filter(None, (_part(said, "parallel") for said in said_of.values())), {})
    mode = parallel.get("mode")
    count, expected = (one if isinstance(one := parallel.get(name), int) else None for name in ("stages", "ranks"))
    in_stage = max(expected // count, 1) if mode == PIPELINE and count and expected else None
    for row in ranks:
        row["stage"] = row["rank"] // in_stage + 1 if in_stage else None
    judged = expected is not None and {row["rank"] for row in ranks} >= set(range(expected))
    return {
        "mode": mode, "expected": expected, "judged": judged,
        "ranks": sorted(ranks, key=lambda row: row["rank"]),
        "stages": [_mean(stage, rows) for stage, rows in _by_stage(ranks)],
        "stage": _heavy_stage(ranks, in_stage) if judged and in_stage else None,
        "rank": _slow_rank(ranks) if judged else None,
    }  # fmt: skip


def _part(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of what one rank's files said; empty when it is not there, or is no object."""
    part = said.get(name)
    return part if isinstance(part, dict) else {}


def _rank(rank: str, said: Mapping[str, Any]) -> dict[str, Any] | None:
    """One rank's figures: one of each, or those of cube and vector units, which add up."""
    flops, speed = _sum(said, "FLOPs"), _sum(said, "FLOPS")
    if flops is None or speed is None or not rank.isdecimal():
        return None
    return {
        "rank": int(rank), "flops": flops * MILLION, "flops_per_s": speed * BILLION,
        "peak_percent": _sum(said, "FLOPS_Utilization"),
    }  # fmt: skip


def _sum(said: Mapping[str, Any], name: str) -> float | None:
    """The value of a key, else of the two with `cube_` and `vec_` in front; None when it is no number."""
    keys = [name] if said.get(name) else [f"cube_{name}", f"vec_{name}"]
    try:
        total = sum(float(said[key]) for key in keys)
    except (KeyError, TypeError, ValueError):
        return None
    return total if math.isfinite(total) else None


def _by_stage(ranks: list[dict[str, Any]]) -> list[tuple[int, list[dict[str, Any]]]]:
    by_stage = defaultdict(list)
    for row in ranks:
        if row["stage"] is not None:
            by_stage[row["stage"]].append(row)
    return sorted(by_stage.items())


def _mean(stage: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "stage": stage, "ranks": len(rows),
        **{name: sum(row[name] for row in rows) / len(rows) for name in ("flops", "flops_per_s")},
    }  # fmt: skip


def _heavy_stage(ranks: list[dict[str, Any]], in_stage: int) -> dict[str, Any] | None:
    """A last stage that has fewer ranks is divided by as many as the others, as MindInsight does it."""
    flops = {stage: sum(row["flops"] for row in rows) / in_stage for stage, rows in _by_stage(ranks)}
    mean = sum(flops.values()) / len(flops)
    excess = {stage: value / mean - 1 for stage, value in flops.items() if mean}
    worst = max(excess, key=lambda stage: excess[stage], default=None)
    if worst is None or excess[worst] <= LIMIT:
        return None
    return {"stage": worst, "flops": flops[worst], "excess": excess[worst]}


def _slow_rank(ranks: list[dict[str, Any]]) -> dict[str, Any] | None:
    mean = sum(row["flops_per_s"] for row in ranks) / len(ranks)
    worst = min(ranks, key=lambda row: (row["flops_per_s"], row["rank"]))
    shortfall = 1 - worst["flops_per_s"] / mean if mean else 0.0
    if shortfall <= LIMIT:
        return None
    return {"rank": worst["rank"], "flops_per_s": worst["flops_per_s"], "shortfall": shortfall}
