"""Which part of a whole run costs much, and whether that is the answer. Pure: rows of run/account in, codes out.

What happens once (import, the first graphs, warm-up) is told, but leads nowhere: a longer training pays it once, too.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = Mapping[str, Any]

LEAST_SHARE = 0.10  # of the run: from here on a part has a verdict; of the training with what interrupts it: it leads
LEAST_NS = 300_000_000  # of a run; less is nothing to speak of, whatever its share
LEAST_COURSE_NS = 10_000_000_000  # of training steps: a change within seconds may be anything's
TRAINING = "training"
RECURRING = ("recompile", "compile_eval", "evaluation", "checkpoint", "callback", "epoch_gap")
ONCE = ("start", "import", "set_up", "dataset_build", "compile", "first_steps", "between_steps", "profiling", "ending")
_WORK = ("compute", "not_measured", "compile", None)  # limits of a step that no other time is set against


def unrecorded(rep: int, rank: int, dur_ns: int) -> dict[str, Any]:
    """The one row of a run whose parts were not recorded."""
    row = {"rep": rep, "rank": rank, "part": "not_recorded", "detail": "", "cause": "", "count": 1}
    return row | {"start_ns": 0, "dur_ns": dur_ns, "share": 1.0 if dur_ns else None}


def judge_run(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The parts that take a tenth of the run or more (in the median of the repetitions), largest first.

    `share`: of the run; `loop_share`: of the training steps and all that interrupts them, null for what happens once;
    `loop_ns`: that time; numbers are of the rank that spends most on the part, in the repetition in the middle.
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
        if middle["dur_ns"] >= LEAST_NS and max(middle["share"], middle["loop_share"] or 0.0) >= LEAST_SHARE:
            parts.append(middle)
    return sorted(parts, key=lambda one: (-one["dur_ns"], one["part"], one["detail"], one["cause"]))


def leading(parts: Sequence[Row], diagnosis: Row, training_ns: int) -> dict[str, Any] | None:
    """The recurring part that costs more than the verdict on the step could bring; None when none does."""
    worth = [one for one in parts if (one["loop_share"] or 0.0) >= LEAST_SHARE]
    if not worth:
        return None
    first = max(worth, key=lambda one: one["dur_ns"])
    return dict(first) if first["dur_ns"] > step_brings(diagnosis, training_ns) else None


def slower(rows: Sequence[Row], diagnosis: Row, training: Mapping[tuple[int, int], int]) -> dict[str, Any] | None:
    """The drift that costs more than the verdict on the step could bring, with `cost_share` of the training; else None.

    `rows`: of judge_course; `training`: time of the training steps by (rep, rank). Every repetition must have one.
    """
    costly = []
    for row in rows:
        length, share = training.get((row["rep"], row["rank"]), 0), drift_share(row)
        if length >= LEAST_COURSE_NS and share >= LEAST_SHARE and share * length > step_brings(diagnosis, length):
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


def step_brings(diagnosis: Row, training_ns: int) -> float:
    """The most that the verdict on the step could save, ns; nothing of computing, which is what a training is for."""
    waiting = diagnosis.get("verdict") in ("input_bound", "balanced")
    share = (diagnosis.get("data_wait_share") or 0.0) if waiting else 0.0
    network = diagnosis.get("network") or {}
    if network.get("limit") not in _WORK:
        share = max(share, network.get("limit_share") or 0.0)
    return float(share * training_ns)


def training_ns(rows: Iterable[Row]) -> dict[tuple[int, int], int]:
    """Time of the training steps without what interrupts them, by (rep, rank)."""
    lengths: dict[tuple[int, int], int] = defaultdict(int)
    for row in rows:
        lengths[row["rep"], row["rank"]] += row["dur_ns"] if row["part"] == TRAINING else 0
    return dict(lengths)


def middle_training_ns(rows: Iterable[Row]) -> int:
    """The median of that over repetitions and ranks."""
    return int(median(training_ns(rows).values() or [0]))


def _key(row: Row) -> tuple[str, str, str]:
    """What is judged as one: callbacks by class, graphs compiled again by cause."""
    part = row["part"]
    return part, row["detail"] if part in ("callback", "recompile") else "", row["cause"]


def _by_rank(rows: Sequence[Row]) -> dict[tuple[int, int], list[Row]]:
    ranks: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows:
        ranks[row["rep"], row["rank"]].append(row)
    return ranks


def _part(key: tuple[str, str, str], rows: Sequence[Row]) -> dict[str, Any]:
    own = [row for row in rows if _key(row) == key]
    dur = sum(row["dur_ns"] for row in own)
    total = sum(row["dur_ns"] for row in rows)
    loop = sum(row["dur_ns"] for row in rows if row["part"] in (TRAINING, *RECURRING))
    part, detail, cause = key
    return {
        "rep": rows[0]["rep"], "rank": rows[0]["rank"], "part": part, "detail": detail, "cause": cause,
        "count": sum(row["count"] for row in own), "dur_ns": dur, "share": dur / total if total else 0.0,
        "loop_share": (dur / loop if loop else 0.0) if part in RECURRING else None, "loop_ns": loop,
    }  # fmt: skip
