"""The part `ranks` of a report: ranks beside each other, what they wait for, and which of them holds the others up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.query.rows import LastArrival, Link, PhaseDiff, typed
from pipeprof.report.answer import doubts
from pipeprof.report.words import evidence
from pipeprof.report.words.causes import rank_advice
from pipeprof.verdict.network_ranks import slow_links
from pipeprof.verdict.rank_flops import flops_of_ranks
from pipeprof.verdict.straggler import stragglers

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

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
        item["suggestions"] = [rank_advice(one) for one in item["suggestion_facts"]]
    return straggler


MOST_STEPS = 64  # of each repetition: what is usual is known by then
RANK_STEPS = 8192  # ranks x steps at most: 300 operations of each take about 1 GiB
TEXTS = ("name", "track", "group_name", "kind")
NUMBERS = ("position", "rank", "start_ns", "end_ns", "peers", "is_comm")
LEAST_STEPS = 3  # fewer do not tell what is usual
WHO = {"stage_imbalance": "stage", "slow_worker": "rank", "fail_slow": "rank", "slow_link": "link"}


def causes_of(engine: Engine) -> dict[str, Any] | None:
    """What `judged` says of the first repetition, with the causes that more than half of them show.

    None where no whole passes of microbatches were recorded, so that a step cannot be replayed.
    """
    ranks = len({row["rank"] for row in engine.rows("rank/passes")})
    if not ranks:
        return None
    steps = min(MOST_STEPS, RANK_STEPS // ranks)
    judged = _judged(engine.ask("rank/operation", steps=steps)) if steps >= LEAST_STEPS else [refused("many_ranks")]
    if not judged:
        return None
    first = judged[0]
    shown = [[_identity(item) for item in one["found"]] for one in judged]
    first["found"] = [item for item in first["found"] if 2 * sum(_identity(item) in one for one in shown) > len(judged)]
    if first["verdict"] == "slow" and not first["found"]:
        first["verdict"] = "even"
    return first | {"repetitions": len(judged)}


def refused(why: str) -> dict[str, Any]:
    """The verdict where nothing is judged; `why` is a code."""
    return {"verdict": "not_measured", "why": why, "found": [], "slowdown": None, "facts": None, "error": None}


def _identity(item: dict[str, Any]) -> tuple[str, Any]:
    return item["code"], item.get(WHO.get(item["code"], ""))


def _judged(rows: pa.Table) -> list[dict[str, Any]]:
    """One verdict for each repetition; NumPy is loaded here, since most reports need none of this."""
    import pyarrow.compute as pc  # noqa: PLC0415 - see above

    from pipeprof.verdict.replay.causes import judged  # noqa: PLC0415 - see above
    from pipeprof.verdict.replay.operations import operations  # noqa: PLC0415 - see above

    reps = sorted(pc.unique(rows.column("rep")).to_pylist())
    return [judged(operations(_columns(rows.filter(pc.equal(rows.column("rep"), rep))))) for rep in reps]


def _columns(rows: pa.Table) -> dict[str, Any]:
    columns: dict[str, Any] = {name: rows.column(name).to_numpy() for name in NUMBERS}
    for name in TEXTS:
        column = rows.column(name).combine_chunks().dictionary_encode()
        columns[name] = (column.indices.to_numpy(zero_copy_only=False).astype("int64"), column.dictionary.to_pylist())
    return columns
