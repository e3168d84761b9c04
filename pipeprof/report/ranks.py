"""The part `ranks` of a report: ranks beside each other, what they wait for, and which of them holds the others up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.verdict.slow_link import slow_links
from pipeprof.verdict.straggler import stragglers

if TYPE_CHECKING:
    from pipeprof.query.engine import Engine

CURVE_POINTS = 200


def ranks_of(engine: Engine, *, top: int, several: bool) -> dict[str, Any]:
    """Rows of the queries of the same names, and the verdicts on them. `several`: there is more than one rank."""
    phases = engine.rows("rank/phase_diff") if several else []
    arrivals = engine.rows("rank/last_arrival") if several else []
    links = engine.rows("rank/link", top=top)
    return {
        "straggler": stragglers(phases, arrivals),
        "phase_diff": phases,
        "last_arrival": arrivals,
        "collective_wait": engine.rows("rank/collective_wait", top=top) if several else [],
        "stage": engine.rows("rank/stage"),
        "slow_links": slow_links(links),
        "link": links,
        "curve": engine.rows("rank/curve", points=CURVE_POINTS) if several else [],
    }
