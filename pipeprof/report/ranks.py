"""The part `ranks` of a report: ranks beside each other, what they wait for, and which of them holds the others up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.query.rows import LastArrival, Link, PhaseDiff, typed
from pipeprof.report.answer import doubts
from pipeprof.report.causes import causes_of
from pipeprof.report.words import evidence
from pipeprof.report.words.ranks import sentence
from pipeprof.verdict.rank_flops import flops_of_ranks
from pipeprof.verdict.slow_link import slow_links
from pipeprof.verdict.straggler import stragglers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeprof.query.engine import Engine

CURVE_POINTS = 200
JUDGED_LINKS = 100  # the slowest of a kind, among which slow ones are sought
WHY = {
    "few_steps": "there are too few steps of each rank to see how much they vary",
    "varies": "the steps vary too much for their number ({steps})",
}


def rank_verdicts(engine: Engine, *, several: bool) -> dict[str, Any]:
    """What the ranks wait for (`causes`), which of them holds the others up (`straggler`), and the rows behind it.

    `several`: there is more than one rank.
    """
    phases = engine.rows("rank/phase_diff") if several else []
    arrivals = engine.rows("rank/last_arrival") if several else []
    return {
        "causes": causes_of(engine) if several else None,
        "straggler": stragglers(typed(PhaseDiff, phases), typed(LastArrival, arrivals)),
        "phase_diff": phases,
        "last_arrival": arrivals,
    }


def ranks_of(
    engine: Engine, profiler: Mapping[str, Any], verdicts: dict[str, Any], *, top: int, several: bool
) -> dict[str, Any]:
    """`verdicts` in words, and rows of the queries of the same names. `several`: there is more than one rank.

    `profiler`: what an imported profiler said of itself, by rank; `verdicts`: of `rank_verdicts`.
    """
    links = engine.rows("rank/link", top=max(top, JUDGED_LINKS))
    return {
        **verdicts,
        "straggler": _worded(verdicts["straggler"]),
        "collective_wait": engine.rows("rank/collective_wait", top=top) if several else [],
        "stage": engine.rows("rank/stage"),
        "flops": flops_of_ranks(profiler),
        "slow_links": slow_links(typed(Link, [row for row in links if row["place"] <= JUDGED_LINKS])),
        "link": [row for row in links if row["place"] <= top],
        "curve": engine.rows("rank/curve", points=CURVE_POINTS) if several else [],
    }


def _worded(straggler: dict[str, Any]) -> dict[str, Any]:
    """With doubts, reasons, evidence and suggestions in words; their codes and numbers are kept."""
    straggler["why"] = WHY[straggler["why"]].format(steps=straggler["steps"]) if straggler["why"] else None
    for item in straggler["found"]:
        item["doubt_facts"] = item["doubts"]
        item["doubts"] = doubts.clauses(item["doubt_facts"])
        item["evidence"] = evidence.worded(item["evidence"])
        item["suggestion_facts"] = item["suggestions"]
        item["suggestions"] = [sentence(one) for one in item["suggestion_facts"]]
    return straggler
