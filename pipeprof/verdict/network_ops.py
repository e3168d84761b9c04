"""Operators of the network that take the most time, and those that take more from step to step. Pure."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, TypeVar

from pipeprof.verdict.quantile import t_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from pipeprof.query.rows import NetworkTop, NetworkTypes, OpGrowth

    _Row = TypeVar("_Row")
    _Key = TypeVar("_Key", bound=Hashable)

ALPHA = 0.05  # of calling any operator of a rank growing when none is: shared among those that are tested
TESTED_SHARE = 0.01  # of the step time: smaller operators are not tested
LEAST_GROWTH = 0.10  # lower end over the recorded span, as share of the operator's mean time per step
LEAST_WINDOWS, LEAST_STEPS = 2, 6


def top_ops(rows: Sequence[NetworkTop], limit: int = 10) -> list[dict[str, Any]]:
    """Operators over all repetitions and ranks: mean share of the step time, largest first."""
    ops: list[dict[str, Any]] = []
    for (name, phase, shapes), members in _grouped(rows, lambda row: (row.name, row.phase, row.in_shapes)):
        ops.append(
            {
                "name": name,
                "type": members[0].type,
                "phase": phase,
                "in_shapes": shapes_text(shapes),
                "site": members[0].site,
                "site_share": _mean(row.site_share or 0.0 for row in members),
                "share": _mean(row.share for row in members),
                "per_step_ns": _mean(row.per_step_ns for row in members),
                "count_per_step": sum(row.count for row in members) / sum(row.steps for row in members),
            }
        )
    return sorted(ops, key=lambda op: (-op["share"], str(op["name"]), str(op["in_shapes"])))[:limit]


def top_types(rows: Sequence[NetworkTypes], limit: int = 10) -> list[dict[str, Any]]:
    """Operator types over all repetitions and ranks: mean share of a step, largest first."""
    types: list[dict[str, Any]] = [
        {
            "type": kind,
            "phase": phase,
            "operators": max(row.operators for row in members),
            "share": _mean(row.share for row in members),
            "count_per_step": sum(row.count for row in members) / sum(row.steps for row in members),
        }
        for (kind, phase), members in _grouped(rows, lambda row: (row.type, row.phase))
    ]
    return sorted(types, key=lambda item: (-item["share"], str(item["type"]), str(item["phase"])))[:limit]


def ops_per_step(rows: Sequence[NetworkTypes]) -> float | None:
    """Executions of operators in a step; None without any."""
    ranks = {(row.rep, row.rank): row for row in rows}.values()
    return sum(row.all_count for row in ranks) / sum(row.steps for row in ranks) if ranks else None


def growing_ops(rows: Sequence[OpGrowth]) -> list[dict[str, Any]]:
    """Operators whose time per step grows, largest growth first.

    The slope's interval holds at 1 - ALPHA / (operators tested on the rank), so that testing many does not make one
    grow by chance. Steps of one window resemble each other, so besides at most every fourth window may be below the
    one before it. An operator counts when it grows in at least half of the repetitions and ranks that were tested.
    """
    tested: list[dict[str, Any]] = []
    for _, members in _grouped(rows, lambda row: (row.rep, row.rank)):
        fit = [
            (row, row.slope_ns, row.slope_variance)
            for row in members
            if row.slope_ns is not None and row.slope_variance is not None and _testable(row)
        ]
        tested += [_judged(row, slope, sqrt(variance), ALPHA / len(fit)) for row, slope, variance in fit]
    growing = []
    for _, judged in _grouped(tested, lambda op: (op["name"], op["phase"])):
        grown = [op for op in judged if op.pop("grows")]
        if 2 * len(grown) >= len(judged):
            worst = max(grown, key=lambda op: op["growth_ns"])
            growing.append({**worst, "seen_on": len(judged), "grows_on": len(grown)})
    return sorted(growing, key=lambda op: (-op["growth_ns"], str(op["name"])))


def growth_was_measured(rows: Sequence[OpGrowth]) -> bool:
    """Whether any rank has enough windows and steps to tell growth from noise."""
    return any(row.windows >= LEAST_WINDOWS and row.steps >= LEAST_STEPS for row in rows)


def shapes_text(shapes: str | None) -> str | None:
    """Input shapes without the places that have none."""
    return "; ".join(part for part in (shapes or "").split("; ") if part and part != "NoShape") or None


def _testable(row: OpGrowth) -> bool:
    return row.windows >= LEAST_WINDOWS and row.steps >= LEAST_STEPS and (row.share or 0.0) >= TESTED_SHARE


def _judged(row: OpGrowth, slope: float, error: float, alpha: float) -> dict[str, Any]:
    """`slope`: the row's, with its standard error."""
    span = row.span_steps
    margin = t_quantile(1 - alpha / 2, row.steps - 2) * error
    large = (slope - margin) * span >= LEAST_GROWTH * row.mean_ns
    steady = row.falls <= (row.windows - 1) // 4
    return {
        "name": row.name,
        "type": row.type,
        "phase": row.phase,
        "shapes": row.shapes,
        "share": row.share,
        "slope_ns": slope,
        "slope_low_ns": slope - margin,
        "slope_high_ns": slope + margin,
        "growth_ns": slope * span,
        "mean_ns": row.mean_ns,
        "first_ns": row.first_ns,
        "last_ns": row.last_ns,
        "windows": row.windows,
        "steps": row.steps,
        "grows": slope - margin > 0 and large and steady and row.last_ns > row.first_ns,
    }


def _grouped(rows: Iterable[_Row], key: Callable[[_Row], _Key]) -> list[tuple[_Key, list[_Row]]]:
    groups: dict[_Key, list[_Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.items())


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0
