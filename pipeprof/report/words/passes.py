"""Forward passes of a network that a step runs again."""

from __future__ import annotations

from typing import Any

from pipeprof.report.words import joined
from pipeprof.units import format_ns

TIMES = {1: "once", 2: "twice"}
MOST_SITES = 3
EVEN = 0.05  # so far from a whole number it is still said as one


def repeated(passes: dict[str, Any], rank: int | None = None) -> list[str]:
    """One sentence for each network whose forward pass runs more often per step than gradients are taken.

    Of one rank, or of the first that has any.
    """
    rows = next(iter(passes.values()), []) if rank is None else passes.get(f"rank {rank}", [])
    return [_said(row) for row in rows]


def _said(row: dict[str, Any]) -> str:
    sites = [_site(site) for site in row["sites"]]
    listed = joined(sites if len(sites) <= MOST_SITES else [*sites[:MOST_SITES], f"{len(sites) - MOST_SITES} more"])
    return f"the forward pass of {row['network']} runs {_often(row['per_step'])} per step: {listed}"


def _often(per_step: float) -> str:
    number = round(per_step)
    return TIMES.get(number, f"{number} times") if abs(per_step - number) < EVEN else f"{per_step:.1f} times"


def _site(site: dict[str, Any]) -> str:
    where = f"`{site['site'].rpartition('/')[2]}`" if site["site"] else "a library"
    return where if site["gradient"] else f"{where} ({format_ns(site['dur_ns'])}, no gradients taken)"
