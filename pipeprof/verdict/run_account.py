"""Which part of a whole run costs much, so that it may be the answer. Pure: rows of run/account in, codes out.

What happens once (import, the first graphs, warm-up) is told, but leads nowhere: a longer training pays it once, too.
What follows the last step leads where it is long: a loop that ends early may leave its data pipeline at work.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.query.rows import RunAccount

    Row = Mapping[str, Any]

LEAST_SHARE = 0.10  # of the run: from here on a part has a verdict; of the training with what interrupts it: it leads
LEAST_ENDING, LEAST_ENDING_NS = 0.25, 10_000_000_000  # of the training with it; a job of two ranks takes 6 s to end
LEAST_NS = 300_000_000  # of a run; less is nothing to speak of, whatever its share
LEAST_COURSE_NS = 10_000_000_000  # of training steps: a change within seconds may be anything's
TRAINING = "training"
RECURRING = ("recompile", "compile_eval", "evaluation", "checkpoint", "callback", "epoch_gap", "between_steps")
ONCE = ("start", "import", "set_up", "dataset_build", "look", "compile", "first_steps", "profiling", "ending")
ENDING, REST = "ending", "rest_of_epoch"  # the latter is a cause of the former, whatever it takes


class CostlyPart(msgspec.Struct, frozen=True):
    """What judge_run says of a part."""

    rep: int
    rank: int
    part: str
    detail: str
    cause: str
    dur_ns: int
    loop_share: float | None
    loop_ns: int

    def has(self, row: RunAccount) -> bool:
        """Whether a row of its rank is of it."""
        return (row.part, row.cause) == (self.part, self.cause) and self.detail in ("", row.detail)


def unrecorded(rep: int, rank: int, dur_ns: int) -> dict[str, Any]:
    """The one row of a run whose parts were not recorded."""
    row = {"rep": rep, "rank": rank, "part": "not_recorded", "detail": "", "cause": "", "site": "", "count": 1}
    return row | {"start_ns": 0, "dur_ns": dur_ns, "share": 1.0 if dur_ns else None}


def judge_run(rows: Sequence[RunAccount], *, excerpt: bool = False) -> list[dict[str, Any]]:
    """The parts that take a tenth of the run or more (in the median of the repetitions), largest first.

    `share`: of the run; `loop_share`: of the training steps and all that interrupts them, null for what happens once;
    `loop_ns`: that time; `site`: file:line of what takes most of the part, where that is known. Numbers are of the rank
    that spends most on the part, in the repetition in the middle.
    `excerpt`: the rows are of a few steps of a training, of which short times tell, too.
    """
    parts = []
    for key in {_key(row) for row in rows}:
        if key[0] not in (*RECURRING, *ONCE):
            continue
        ranks = [_part(key, own) for own in _by_rank(rows).values()]
        reps: dict[int, dict[str, Any]] = {}
        for one in ranks:
            if one["rep"] not in reps or one["dur_ns"] > reps[one["rep"]]["dur_ns"]:
                reps[one["rep"]] = one
        ordered = sorted(reps.values(), key=lambda one: (one["dur_ns"], one["rep"]))
        middle = ordered[(len(ordered) - 1) // 2]
        share = max(middle["share"], middle["loop_share"] or 0.0)
        if (excerpt or middle["dur_ns"] >= LEAST_NS) and share >= LEAST_SHARE:
            parts.append(middle)
    return sorted(parts, key=lambda one: (-one["dur_ns"], one["part"], one["detail"], one["cause"]))


def costly_parts(parts: Sequence[Row]) -> list[Row]:
    """Of these parts the recurring ones that take a tenth of the training or more, largest first."""
    return [part for part in parts if (part["loop_share"] or 0.0) >= LEAST_SHARE]


def costly_drift(rows: Sequence[Row], training: Mapping[tuple[int, int], int]) -> dict[str, Any] | None:
    """The drift that costs a tenth of the training or more, with `cost_share` of it; else None.

    `rows`: of judge_course; `training`: time of the training steps by (rep, rank). Every repetition must have one.
    """
    costly = []
    for row in rows:
        length, share = training.get((row["rep"], row["rank"]), 0), drift_share(row)
        if length >= LEAST_COURSE_NS and share >= LEAST_SHARE:
            costly.append({**row, "cost_share": share})
    if len({row["rep"] for row in costly}) < len({row["rep"] for row in rows}):
        return None
    return max(costly, key=lambda row: row["cost_share"], default=None)


def drift_share(row: Row) -> float:
    """How much of the time of the steps was lost to their becoming slower; 0 for those that do not."""
    before, after = row["before_ns"], row["after_ns"]
    if row["verdict"] == "step":
        late = row["late_steps"]
        total = (row["steps"] - late) * before + late * after
        return float(late * (after - before) / total) if total else 0.0
    if row["verdict"] == "drift":
        return float((after - before) / (after + before))
    return 0.0


def training_ns(rows: Iterable[RunAccount]) -> dict[tuple[int, int], int]:
    """Time of the training steps without what interrupts them, by (rep, rank)."""
    lengths: dict[tuple[int, int], int] = defaultdict(int)
    for row in rows:
        lengths[row.rep, row.rank] += row.dur_ns if row.part == TRAINING else 0
    return dict(lengths)


def training_share(rows: Sequence[RunAccount]) -> float:
    """The training steps' part of the training with what interrupts it: the median of the ranks; 1 where not known."""
    shares = []
    for own in _by_rank(rows).values():
        steps = sum(row.dur_ns for row in own if row.part == TRAINING)
        shares += [steps / _loop_ns(own)] if steps else []
    return float(median(shares or [1.0]))


def _loop_ns(rows: Sequence[RunAccount]) -> int:
    """Of one rank: the training steps, what interrupts them, and what follows them where that is long."""
    loop = sum(row.dur_ns for row in rows if row.part in (TRAINING, *RECURRING))
    return int(loop) + _ending_ns(rows, loop)


def _ending_ns(rows: Sequence[RunAccount], loop: int) -> int:
    """What follows the last step, where it is long; else what the pipeline goes on for.

    `loop`: the training with what interrupts it.
    """
    ending = sum(row.dur_ns for row in rows if row.part == ENDING)
    is_long = ending >= max(LEAST_ENDING_NS, LEAST_ENDING * (loop + ending))
    counted = (row.dur_ns for row in rows if row.part == ENDING and (is_long or row.cause == REST))
    return int(sum(counted)) if loop > 0 else 0


def _key(row: RunAccount) -> tuple[str, str, str]:
    """What is judged as one: callbacks by class, graphs compiled again by cause."""
    part = row.part
    return part, row.detail if part in ("callback", "recompile") else "", row.cause


def _by_rank(rows: Sequence[RunAccount]) -> dict[tuple[int, int], list[RunAccount]]:
    ranks: dict[tuple[int, int], list[RunAccount]] = defaultdict(list)
    for row in rows:
        ranks[row.rep, row.rank].append(row)
    return ranks


def _part(key: tuple[str, str, str], rows: Sequence[RunAccount]) -> dict[str, Any]:
    own = [row for row in rows if _key(row) == key]
    dur = sum(row.dur_ns for row in own)
    total, loop = sum(row.dur_ns for row in rows), _loop_ns(rows)
    part, detail, cause = key
    steps = sum(row.dur_ns for row in rows if row.part in (TRAINING, *RECURRING))
    whole = sum(row.dur_ns for row in rows if row.part == ENDING)
    costs = part in RECURRING or (steps > 0 and cause == REST) or (part == ENDING and _ending_ns(rows, steps) == whole)
    return {
        "rep": rows[0].rep, "rank": rows[0].rank, "part": part, "detail": detail, "cause": cause,
        "site": max(own, key=lambda row: row.dur_ns).site if own else "",
        "count": sum(row.count for row in own), "dur_ns": dur, "share": dur / total if total else 0.0,
        "loop_share": (dur / loop if loop else 0.0) if costs else None, "loop_ns": loop,
    }  # fmt: skip
