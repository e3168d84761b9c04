"""Which ranks hold the others up, as far as noise allows to tell. Pure: rows of queries in, a plain dict out.

Decided by a rank's own time within a step against the median of the ranks that do the same work, so that what they
have in common cancels. A rank is named when the median difference over the steps is larger than the noise of that
median (its limit leaves one wrong name in a hundred runs, whatever the number of ranks) and than 2 % of a step.
docs/ranks.md has the rules.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from pipeprof.verdict.rank_noise import ALPHA, LEAST_STEPS, Noise, at_least, between_ranks
from pipeprof.verdict.straggler_evidence import of_rank, suggestions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.query.rows import LastArrival, PhaseDiff

    Row = Mapping[str, Any]

LEAST_SHARE = 0.02  # of a step: smaller differences are not worth a word
ONCE_SHARE = 0.10  # of a step: what a difference must reach where steps cannot be compared with each other
FEW_STEPS, MANY_STEPS = 5, 20  # below: low confidence; from here on: high, if all else is clear
BLIND_SHARE = 0.20  # of a step: when only larger differences could be seen, nothing is said
HELD_UP = 5  # times at least, of a rank that is slow now and then

# What decides for a source (see the view rank_phase), most telling first; and what is looked at for the cause.
MEASURES = {
    "parts": ("own",),
    "split": ("own",),
    "trace": ("until_bp", "own"),
    "phase": ("until_bp", "data_wait", "step"),
}
CAUSES = (
    "data_wait", "forward", "backward", "optimizer", "host_gap", "computing", "free", "forward_backward", "tail",
    "compute", "other",
)  # fmt: skip


LARGEST = ("rep", "rank", "peers", "measure", "excess_ns", "share", "noise_ns", "needed_ns", "steps", "ranks")


def stragglers(diffs: Sequence[PhaseDiff], arrivals: Sequence[LastArrival] = ()) -> dict[str, Any]:
    """`verdict` (straggler, even, cannot_tell, not_measured), the `found` ranks, and what could have been seen.

    With several repetitions a rank must be found in more than half of them. Times are ns per step, shares of a step.
    """
    reps = sorted({row.rep for row in diffs})
    judged = [_of_rep([row for row in diffs if row.rep == rep]) for rep in reps]
    slow_ranks = _in_most(judged, arrivals)
    open_reps = [rep for rep in judged if rep["tests"]]
    result: dict[str, Any] = {
        "verdict": "not_measured", "found": slow_ranks, "largest": None, "detectable_share": None,
        "source": None, "ranks": 0, "steps": 0, "repetitions": len(reps), "why": None,
    }  # fmt: skip
    if not open_reps:
        return result
    largest = max((rep["largest"] for rep in open_reps), key=lambda row: row["share"])
    seen = [rep["detectable_share"] for rep in open_reps if rep["detectable_share"] is not None]
    result |= {
        "largest": {name: largest[name] for name in LARGEST},
        "detectable_share": median(seen) if seen else None,
        "source": open_reps[0]["source"],
        "ranks": max(rep["ranks"] for rep in open_reps),
        "steps": min(rep["steps"] for rep in open_reps),
    }
    result["verdict"], result["why"] = _overall(result)
    return result


def _overall(result: Row) -> tuple[str, str | None]:
    detectable = result["detectable_share"]
    if result["found"]:
        return "straggler", None
    if result["steps"] < LEAST_STEPS:
        return "cannot_tell", "few_steps"
    if detectable is None or detectable > BLIND_SHARE:
        return "cannot_tell", "varies"
    return "even", None


def _of_rep(rows: Sequence[PhaseDiff]) -> dict[str, Any]:
    """One repetition: `named` ranks, and the `largest` difference whether named or not."""
    source = rows[0].source
    by_group: dict[int, dict[str, list[PhaseDiff]]] = {}
    for row in rows:
        by_group.setdefault(row.peers, {}).setdefault(row.phase, []).append(row)
    groups = [phases for phases in by_group.values() if _measures(source, phases)]
    tests = sum(len(phases[name]) for phases in groups for name in (*_measures(source, phases), _main(phases)))
    candidates = [
        item for phases in groups for name in _measures(source, phases) for item in _tested(phases[name], name, tests)
    ]
    named = _first_of_rank([item for item in candidates if item["named"]], source)
    sometimes = [item for phases in groups for item in _held_up(phases[_main(phases)], _main(phases), tests)]
    named += [item for item in sometimes if item["rank"] not in {other["rank"] for other in named}]
    for item in named:
        _explain(item, rows)
    steps = min((item["steps"] for item in candidates), default=0)
    decisive = [item for item in candidates if item["measure"] == candidates[0]["measure"]]
    return {
        "source": source,
        "tests": tests,
        "named": named,
        "ranks": len({row.rank for row in rows}),
        "steps": steps,
        "largest": max(candidates, key=lambda item: item["share"], default=None),
        "detectable_share": _detectable([item["needed_share"] for item in decisive], once=steps < LEAST_STEPS),
    }


def _detectable(needed: Sequence[float], *, once: bool) -> float | None:
    """What a rank must usually exceed. In one step an outlier raises the limit of all others, but not its own."""
    if not needed:
        return None
    return min(needed) if once else median(needed)


def _measures(source: str, phases: Mapping[str, Any]) -> list[str]:
    measures = [name for name in MEASURES[source] if name in phases]
    if source == "phase" and "until_bp" in measures:
        return ["until_bp"]
    return measures


def _main(phases: Mapping[str, Any]) -> str:
    return next(name for name in ("until_bp", "own", "step", "data_wait") if name in phases)


def _tested(rows: Sequence[PhaseDiff], measure: str, tests: int) -> list[dict[str, Any]]:
    """Each rank's difference beside what noise could make of it; `rows` are of the ranks that are compared."""
    noise = Noise(rows, tests)
    apart = between_ranks(rows, tests)
    return [_test(row, measure, noise, between) for row, between in zip(rows, apart, strict=True)]


def _test(row: PhaseDiff, measure: str, noise: Noise, between: float) -> dict[str, Any]:
    """`between`: what must be exceeded where steps are too few."""
    steps, step_ns = row.steps, row.step_ns
    error, limit = None, max(ONCE_SHARE * step_ns, between)
    if steps >= LEAST_STEPS:
        error, limit = noise.of(row)
        limit = max(limit, LEAST_SHARE * step_ns)
    return {
        "rep": row.rep, "rank": row.rank, "peers": row.peers, "source": row.source, "measure": measure,
        "kind": "steady" if steps >= LEAST_STEPS else "once",
        "excess_ns": row.diff_ns, "share": row.diff_ns / step_ns if step_ns else 0.0,
        "noise_ns": error, "needed_ns": limit, "needed_share": limit / step_ns if step_ns else 0.0,
        "steps": steps, "ranks": row.ranks, "step_ns": step_ns,
        "early_ns": row.early_ns, "late_ns": row.late_ns, "held_up_steps": row.held_up,
        "named": bool(step_ns) and row.diff_ns > limit and _holds(row),
    }  # fmt: skip


def _holds(row: PhaseDiff) -> bool:
    """Whether the rank was slower in both halves of the steps."""
    return row.late_ns is None or min(row.early_ns, row.late_ns) > 0


def _held_up(rows: Sequence[PhaseDiff], measure: str, tests: int) -> list[dict[str, Any]]:
    """Ranks that are slow now and then: by a tenth of a step or more, many more times than the others are."""
    total = sum(row.episodes for row in rows)
    often = []
    for row, item in zip(rows, _tested(rows, measure, tests), strict=True):
        lost = (row.held_up_ns or 0.0) / row.steps
        worth = row.steps >= LEAST_STEPS and lost > LEAST_SHARE * row.step_ns
        if row.episodes >= HELD_UP and worth and at_least(row.episodes, total, len(rows)) < ALPHA / tests:
            often.append(item | {"kind": "sometimes", "excess_ns": lost, "share": lost / row.step_ns, "named": True})
    return often


def _first_of_rank(items: Iterable[dict[str, Any]], source: str) -> list[dict[str, Any]]:
    """One entry for each rank, by the most telling measure; largest first."""
    order = MEASURES[source]
    best: dict[int, dict[str, Any]] = {}
    for item in items:
        before = best.get(item["rank"])
        if before is None or order.index(item["measure"]) < order.index(before["measure"]):
            best[item["rank"]] = item
    return sorted(best.values(), key=lambda item: (-item["share"], item["rank"]))


def _explain(item: dict[str, Any], rows: Sequence[PhaseDiff]) -> None:
    """Add the phase that differs most, and how much less the rank communicates than the others."""
    mine = {row.phase: row for row in rows if row.rank == item["rank"]}
    causes = [name for name in CAUSES if name in mine]
    phase = max(causes, key=lambda name: mine[name].diff_ns, default=item["measure"])
    item["phase"] = phase
    item["phase_excess_ns"] = mine[phase].diff_ns if phase in mine else item["excess_ns"]
    if item["kind"] == "sometimes":  # what a median says of the other steps
        item["phase"] = item["phase_excess_ns"] = None
    communication = mine.get("communication")
    item["communication_less_ns"] = None if communication is None else -communication.diff_ns


def _in_most(judged: Sequence[Row], arrivals: Sequence[LastArrival]) -> list[dict[str, Any]]:
    """Ranks that are named in more than half of the repetitions: of each the middle one, with its confidence."""
    by_rank: dict[int, list[dict[str, Any]]] = {}
    for rep in judged:
        for item in rep["named"]:
            by_rank.setdefault(item["rank"], []).append(item)
    ranks = []
    for items in by_rank.values():
        if 2 * len(items) <= len(judged):
            continue
        item = sorted(items, key=lambda item: item["share"])[len(items) // 2]
        arrival = next((row for row in arrivals if (row.rep, row.rank) == (item["rep"], item["rank"])), None)
        item |= {"repetitions": len(judged), "found_in": len(items), "arrival": asdict(arrival) if arrival else None}
        item["confidence"], item["doubts"] = _confidence(item)
        item["wait_caused_ns"] = arrival.per_rank_ns if arrival else None
        item["collective"] = arrival.collective if arrival else None
        item["evidence"] = of_rank(item)
        item["suggestions"] = suggestions(item)
        ranks.append(item)
    return sorted(ranks, key=lambda item: (-item["share"], item["rank"]))


def _confidence(item: Row) -> tuple[str, list[dict[str, Any]]]:
    """`high`, `medium` or `low`, and why not more: codes with their numbers."""
    doubts: list[dict[str, Any]] = []
    weak = item["kind"] == "once" or item["steps"] < FEW_STEPS
    if item["kind"] == "once":
        doubts.append({"code": "once", "steps": item["steps"]})
    elif item["steps"] < MANY_STEPS:
        doubts.append({"code": "some_steps", "steps": item["steps"]})
    if item["kind"] == "steady" and item["excess_ns"] < 1.5 * item["needed_ns"]:
        doubts.append({"code": "near_limit"})
    arrival = item["arrival"]
    if arrival and arrival["last_share"] is not None and arrival["last_share"] < arrival["expected_share"]:
        doubts.append({"code": "not_last"})
        weak = True
    if item["source"] == "phase":
        doubts.append({"code": "no_communication"})
    if item["source"] == "trace" and item["measure"] == "own":
        doubts.append({"code": "overlap_counted"})
    return ("low" if weak or len(doubts) > 2 else "medium" if doubts else "high"), doubts
