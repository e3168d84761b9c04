"""Which ranks hold the others up, as far as noise allows to tell. Pure: rows of queries in, a plain dict out.

Decided by a rank's own time within a step against the median of the ranks that do the same work, so that what they
have in common cancels. A rank is named when the median difference over the steps is larger than the noise of that
median (its limit leaves one wrong name in a hundred runs, whatever the number of ranks) and than 2 % of a step.
docs/ranks.md has the rules.

What led to the name of a straggler: each number with its query and what it was measured on, as codes.

What noise makes of the differences between ranks that are alike: limits that they stay below. Pure.

Rows are those of rank/phase_diff, of ranks that are compared with each other.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, pi, sin, sqrt
from statistics import median
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from pipeprof.verdict.evidence import evidence, on
from pipeprof.verdict.quantile import t_quantile

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


_DIFF, _ARRIVAL = "rank/phase_diff", "rank/last_arrival"


def of_rank(item: Row) -> list[dict[str, Any]]:
    """Evidence on one rank that stragglers() found."""
    lines = _now_and_then(item) if item["kind"] == "sometimes" else _always(item)
    if item["arrival"] and item["arrival"]["caused_ns"]:
        lines += _arrival(item["rank"], item["arrival"])
    return lines


def _now_and_then(item: Row) -> list[dict[str, Any]]:
    """Evidence on a rank that is slow now and then, which medians over the steps do not show."""
    steps = on("held_up_steps", held_up=item["held_up_steps"], steps=item["steps"], ranks=item["ranks"])
    who = {"rank": item["rank"], "measure": item["measure"]}
    return [evidence("rank_measure_sometimes", item["excess_ns"], "ns", _DIFF, steps, **who)]


def _always(item: Row) -> list[dict[str, Any]]:
    rank = item["rank"]
    names = ("steps", "ranks", "noise_ns", "needed_ns")
    steps = on("compared_steps", **{name: item[name] for name in names})
    lines = [evidence("rank_measure", item["excess_ns"], "ns", _DIFF, steps, rank=rank, measure=item["measure"])]
    if item["phase"] != item["measure"]:
        same = on("same_steps")
        lines.append(evidence("rank_phase", item["phase_excess_ns"], "ns", _DIFF, same, rank=rank, phase=item["phase"]))
    less = item["communication_less_ns"]
    if less is not None:
        wait = on("they_wait" if less >= 0 else "they_do_not_wait")
        lines.append(evidence("rank_communication", less, "ns", _DIFF, wait, rank=rank))
    return lines


def _arrival(rank: int, arrival: Row) -> list[dict[str, Any]]:
    chance = on("collectives", events=arrival["events"], expected_share=arrival["expected_share"])
    where = on("collective", kind=arrival["collective_kind"], name=arrival["collective"])
    return [
        evidence("last_to_arrive", arrival["last_share"], "share", _ARRIVAL, chance, rank=rank),
        evidence("waits_for_rank", arrival["per_rank_ns"], "ns", _ARRIVAL, where, rank=rank),
    ]


_CAUSES = {"data_wait": "input", "host_gap": "host", "free": "host"}


def suggestions(item: Row) -> list[dict[str, Any]]:
    """What to look at on a rank that stragglers() found, and what it can bring at most."""
    code = "rare" if item["kind"] == "sometimes" else _CAUSES.get(item["phase"], "device")
    advice: list[dict[str, Any]] = [{"code": code, "rank": item["rank"]}]
    if item["share"] < 1:
        advice.append({"code": "bound", "rank": item["rank"], "times": 1 / (1 - item["share"])})
    return advice


ALPHA = 0.01  # chance that any rank of a run is named although all are alike
LEAST_STEPS = 3  # fewer have no noise of their own
QUARTILE_STEPS = 30  # from here on quartiles, which outliers do not move, tell the noise
QUARTILE_FREEDOM = 0.37  # efficiency of quartiles: so many degrees of freedom for each of the standard deviation's
LEAST_RANKS = 4  # fewer do not show what ranks that are alike differ by
MOST_ALIKE = 0.95  # correlation of a step with the one before, at most
SUPPOSED_PAIRS, SUPPOSED_SHARE = 6, 0.597  # of steps that correlate by 0.3, beside those that were seen
OWN_PAIRS = 20  # of steps like the others', beside a rank's own


class Noise:
    """What noise can make of a median difference, from the ranks that are compared.

    Steps are worth less than independent ones when they resemble the step before. Two limits hold: that of the ranks'
    usual spread, which many steps tell, at the level that all tests share; and that of the rank's own spread, which
    few steps tell, so that a rank that varies more than the others is not named for it.
    """

    def __init__(self, rows: Sequence[PhaseDiff], tests: int) -> None:
        self.ranks, self.tests = len(rows), tests
        self.usual = median(_spread(row) for row in rows)
        pairs, same = float(sum(row.pairs for row in rows)), float(sum(row.same_side for row in rows))
        if self.ranks == 2:  # what one of them is longer, the other is shorter
            pairs, same = pairs / 2, same / 2
        made_up = max(1, self.ranks - 1) / 2 if pairs else 0.0  # a series crosses its own median a little more often
        self.share = (same + made_up + SUPPOSED_PAIRS * SUPPOSED_SHARE) / (pairs + SUPPOSED_PAIRS)
        self.seen = (same + made_up + SUPPOSED_PAIRS / 2) / (pairs + SUPPOSED_PAIRS)

    def of(self, row: PhaseDiff) -> tuple[float, float]:
        """Standard error of the rank's median difference, and the limit that noise stays below."""
        steps = row.steps
        freedom = (steps - 1) * _worth(self.seen) * (1.0 if steps < QUARTILE_STEPS else QUARTILE_FREEDOM)
        mine = (row.same_side + 0.5 + OWN_PAIRS * self.share) / (row.pairs + OWN_PAIRS)
        common = 1.2533 * self.usual / sqrt(steps * _worth(self.share))
        own = 1.2533 * _spread(row) / sqrt(steps * _worth(mine))
        shared = common * _limit(ALPHA / self.tests, max(1.0, freedom * max(1.0, (self.ranks - 1) / 2)))
        level = ALPHA / (self.tests if self.ranks == 2 else sqrt(self.tests))
        return max(common, own), max(shared, own * _limit(level, max(1.0, freedom)))


def _spread(row: PhaseDiff) -> float:
    """Standard deviation of the difference over the steps; from the quartiles when there are enough steps."""
    if row.steps >= QUARTILE_STEPS:
        return (row.diff_high_ns - row.diff_low_ns) / 1.349
    return row.diff_sd_ns or 0.0


def _worth(share: float) -> float:
    """How many independent steps one is worth, when `share` of steps are on the side of the step before.

    For normal noise that share is 1/2 + asin(correlation) / pi; it takes no notice of outliers.
    """
    alike = min(MOST_ALIKE, max(0.0, sin(pi * (min(share, 1.0) - 0.5))))
    return (1 - alike) / (1 + alike)


def between_ranks(rows: Sequence[PhaseDiff], tests: int) -> list[float]:
    """What each rank must exceed to be out of line with the others: an outlier's t; 0 with too few ranks to tell."""
    values = [row.median_ns for row in rows]
    others = len(values) - 1
    if len(values) < LEAST_RANKS:
        return [0.0] * len(values)
    reach = _limit(ALPHA / tests, others - 1) * sqrt(1 + 1 / others)
    middle = median(values)  # what all have in common is taken off first: squares of small numbers are exact
    far = [value - middle for value in values]
    total, squares = sum(far), sum(value * value for value in far)
    variances = [((squares - value**2) - (total - value) ** 2 / others) / (others - 1) for value in far]
    return [reach * sqrt(max(0.0, variance)) for variance in variances]


def at_least(count: int, total: int, ranks: int) -> float:
    """Chance that one of `ranks` equal ranks has `count` or more of `total` slow times: the binomial tail."""
    if ranks < 2 or count * ranks <= total:
        return 1.0
    log_term = lgamma(total + 1) - lgamma(count + 1) - lgamma(total - count + 1)
    term = exp(log_term - count * log(ranks) + (total - count) * log(1 - 1 / ranks))
    chance = 0.0
    for k in range(count, total + 1):
        chance += term
        if term < 1e-12 * chance:
            break
        term *= (total - k) / (k + 1) / (ranks - 1)
    return chance


@lru_cache(maxsize=4096)
def _limit(alpha: float, freedom: float) -> float:
    """Upper quantile of Student's t at chance `alpha`."""
    return -t_quantile(alpha, freedom)
