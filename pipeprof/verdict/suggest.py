"""What to change at the stage that limits: the parameter, from what to what, what it buys, and when not to.

A change is only suggested when its predicted effect is not a loss. Where no number can be predicted the reason is
given, with the most that any cure of this stage can bring: the capacity of the next one.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pipeprof.verdict.capacity import SCALING, SOURCE, Change, Loop
from pipeprof.verdict.evidence import label
from pipeprof.verdict.predict import Prediction, predict
from pipeprof.verdict.workers import enough_workers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Row = Mapping[str, Any]

LOCK = 0.25  # of the time, from which a lock of the interpreter that the pipeline holds is spoken of
WORTH = 1.02  # a smaller predicted gain is not suggested
LEAF_ADVICE = "read fewer, larger files (MindRecord), from faster storage, or raise its num_parallel_workers"


@dataclass(frozen=True)
class Suggestion:
    """One change. `gain` is the predicted speed-up of the loop, within [`gain_low`, `gain_high`]; None: not known.

    `old` and `new` are values of `parameter`; `place` is the file:line to edit; `not_when` the counter-indication.
    """

    text: str
    op_id: int | None = None
    parameter: str | None = None
    old: Any = None
    new: Any = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    basis: tuple[str, ...] = ()
    not_when: str | None = None
    place: str | None = None
    verify: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"basis": list(self.basis)}


def suggestions(row: Row, kind: str | None, loop: Loop) -> list[Suggestion]:
    """What to do about the stage of this row of diagnose/load; the best founded first."""
    found: list[Suggestion] = []
    if row["op_type"] == SOURCE:
        found += _source(row, kind, loop)
    elif row["op_type"] in SCALING:
        found += _workers(row, kind, loop)
    elif row["op_type"] == "ShuffleOp":
        found.append(
            Suggestion(
                "make the shuffle's buffer smaller: it must be filled before the first batch, "
                "in buffer size / rate of the source",
                row["op_id"], "buffer_size", place=row["site"],
            )
        )  # fmt: skip
    else:
        found.append(
            Suggestion(f"{LEAF_ADVICE}", row["op_id"], "num_parallel_workers", row["workers"], place=row["site"])
        )
    bound = most(row, loop)
    if bound is not None and bound >= WORTH:
        limit = _next(row, loop)
        found.append(
            Suggestion(
                f"whatever makes {label(row)} faster brings at most x{bound:.2f}; then {limit} limits",
                row["op_id"], gain_high=bound, basis=("capacity of the next stage / of this one",), place=row["code"],
            )
        )  # fmt: skip
    return found


def for_consumer(rows: Sequence[Row], loop: Loop) -> list[Suggestion]:
    """A loop that does not wait: what its data pipeline could give up, or takes from it."""
    found = []
    for row in rows:
        spare = _fewer(row, loop)
        if spare is not None:
            found.append(spare)
        if (row["python_cores"] or 0) >= 0.3 and (row["gil_share"] or 0) >= LOCK:
            found.append(_lock_holder(row))
    return found


def _lock_holder(row: Row) -> Suggestion:
    holds = (
        f"{label(row)} computes in Python and holds the interpreter's lock, which the training's own Python needs too: "
    )
    if row["op_type"] not in SCALING:
        text = "do it ahead of time (MindRecord), or in a map with python_multiprocessing=True"
        return Suggestion(holds + text, row["op_id"], place=row["code"])
    return Suggestion(
        holds + "move it to processes, or use a C++ operation",
        row["op_id"], "python_multiprocessing", old=False, new=True, place=row["site"],
        not_when="rows are large: each one is copied to the process and back",
    )  # fmt: skip


def most(row: Row, loop: Loop) -> float | None:
    """Speed-up of the loop if this stage took no time: next lowest capacity / lowest. None when it is not known."""
    others = [stage.rate for stage in loop.stages if stage.rate is not None and stage.op_id != row["op_id"]]
    if loop.consumer is not None:
        others.append(loop.consumer)
    now = loop.rate
    if not others or not now:
        return None
    return min(others) / min(now, row["rate"] or math.inf)


def _next(row: Row, loop: Loop) -> str:
    rated = [(stage.rate, f"{stage.op_type} {stage.op_id}") for stage in loop.stages
             if stage.rate is not None and stage.op_id != row["op_id"]]  # fmt: skip
    if loop.consumer is not None:
        rated.append((loop.consumer, "the training itself"))
    return min(rated, key=lambda item: item[0] or math.inf)[1]


def _workers(row: Row, kind: str | None, loop: Loop) -> Iterator[Suggestion]:
    who, now = label(row), row["workers"]
    if kind == "burst":
        yield from _deeper(row, loop)
        return
    if kind == "gil":
        yield from _processes(row, loop)
        return
    wanted = enough_workers(loop, row["op_id"])
    if wanted is not None and wanted > now:
        change = Change(row["op_id"], workers=wanted)
        yield from _predicted(
            row, change, loop, f"num_parallel_workers of {who}: {now} -> {wanted}", "num_parallel_workers", now, wanted,
            "the machine's cores are busy" if kind == "cpu" else f"the machine has fewer than {wanted} CPUs",
        )  # fmt: skip
    elif now >= loop.cpu_count:
        yield Suggestion(
            f"{who} has {now} workers, and MindSpore allows no more than the {loop.cpu_count} CPUs of this machine: "
            + ("make a row cheaper, or move the work out of the training" if kind == "cpu"
               else "wait for several rows at once inside the function, or in batch's per_batch_map"),
            row["op_id"], "num_parallel_workers", now, now, place=row["code"],
        )  # fmt: skip
    if kind == "cpu" and row["is_python"] and not row["uses_processes"]:
        yield from _processes(row, loop)


def _processes(row: Row, loop: Loop) -> Iterator[Suggestion]:
    who = label(row)
    if row["uses_processes"]:
        return
    workers = max(row["workers"], min(2, loop.cpu_count))
    prediction = predict(loop, Change(row["op_id"], workers=workers, processes=True))
    sure = prediction.ratio is not None and (prediction.low or 0.0) >= 1.0
    yield Suggestion(
        f"{who} computes in Python, and threads take turns with the interpreter's lock (GIL): "
        f"python_multiprocessing=True with num_parallel_workers={workers}, or a C++ operation of MindSpore instead"
        + (f": {_stated(prediction)}" if sure else ""),
        row["op_id"], "python_multiprocessing", old=False, new=True, place=row["site"],
        not_when="rows are large: each one is copied to the process and back; more threads never help",
        verify=_verify(row, f"--workers {workers} --processes"),
        gain=prediction.ratio if sure else None, gain_low=prediction.low if sure else None,
        gain_high=prediction.high if sure else None,
    )  # fmt: skip


def _source(row: Row, kind: str | None, loop: Loop) -> Iterator[Suggestion]:
    who, now = label(row), row["workers"]
    if kind == "burst":
        yield from _deeper(row, loop)
        return
    wanted = enough_workers(loop, row["op_id"])
    rows_s = 1e9 / row["law_row_ns"] if row["law_row_ns"] else None
    if wanted is not None and wanted < now:
        yield from _predicted(
            row, Change(row["op_id"], workers=wanted), loop,
            f"num_parallel_workers of {who}: {now} -> {wanted}: its master sleeps 100 ms whenever the next row is not "
            f"there, so it makes at most {rows_s or 160 * now:.0f} rows/s",
            "num_parallel_workers", now, wanted, None,
        )  # fmt: skip
    elif kind == "gil":
        yield Suggestion(
            f"{who} computes in Python: do it ahead of time (MindRecord), in a C++ operation, or in a map with "
            "python_multiprocessing=True; more threads of the source take turns with the interpreter's lock (GIL)",
            row["op_id"], place=row["code"], not_when="more num_parallel_workers with threads never help here",
        )  # fmt: skip
    elif wanted is not None and wanted > now:
        yield from _predicted(
            row, Change(row["op_id"], workers=wanted), loop, f"num_parallel_workers of {who}: {now} -> {wanted}",
            "num_parallel_workers", now, wanted, f"a row takes less than {100 / 16 / wanted:.1f} ms",
        )  # fmt: skip
    yield Suggestion(
        f"make the rows of {who} cheaper: read in blocks, or store the data as MindRecord", row["op_id"],
        place=row["code"], not_when=None if now > 1 else "do not just add workers to a source with fast rows: from two "
        "on, its master polls and makes at most 160 rows/s for each thread",
    )  # fmt: skip


def _deeper(row: Row, loop: Loop) -> Iterator[Suggestion]:
    """Bursts: a queue that holds what is taken during the stall, if the source is fast enough on average."""
    mean = row["rate"] or 0.0
    if row["longest_ns"] is None or loop.consumer is None or mean < loop.consumer:
        yield Suggestion(
            f"{label(row)} stalls now and then and is too slow even on average: depth cannot help, "
            "make the stalls rarer",
            row["op_id"], place=row["code"],
        )  # fmt: skip
        return
    depth = math.ceil(row["longest_ns"] * loop.consumer / 1e9) + 1
    yield Suggestion(
        f"{label(row)} stalls for {row['longest_ns'] / 1e6:.0f} ms now and then: a prefetch_size of {depth} batches "
        "lives through that; more workers do not remove a stall",
        row["op_id"], "prefetch_size", row["capacity"], max(depth, row["capacity"] or 0), place=row["site"],
        not_when="memory is short: that many batches are held",
    )  # fmt: skip


def _predicted(
    row: Row, change: Change, loop: Loop, text: str, parameter: str, old: Any, new: Any, not_when: str | None
) -> Iterator[Suggestion]:
    """The change, unless it is predicted to bring nothing."""
    prediction = predict(loop, change)
    if prediction.ratio is not None and prediction.ratio < WORTH:
        return
    if prediction.ratio is None and (prediction.high or 0) < WORTH and prediction.high is not None:
        return
    yield Suggestion(
        f"{text}: {_stated(prediction)}", row["op_id"], parameter, old, new,
        gain=prediction.ratio, gain_low=prediction.low, gain_high=prediction.high,
        basis=prediction.basis, not_when=not_when, place=row["site"],
        verify=_verify(row, f"--workers {new}"),
    )  # fmt: skip


def _stated(prediction: Prediction) -> str:
    if prediction.ratio is None:
        return f"gain not predictable ({prediction.reason})"
    low, high = prediction.low or prediction.ratio, prediction.high or prediction.ratio
    if high / low > 1.25:
        return f"x{low:.2f} to x{high:.2f} expected"
    return f"about x{prediction.ratio:.2f} expected"


def _fewer(row: Row, loop: Loop) -> Suggestion | None:
    """Workers that are not needed: 1.3 times what the loop takes is enough."""
    if row["op_type"] not in SCALING or not row["work_ns"] or not loop.rate or row["workers"] < 2:
        return None
    enough = math.ceil(loop.rate * row["work_ns"] / 1e9 * 1.3)
    if enough >= row["workers"]:
        return None
    return Suggestion(
        f"{label(row)} could do with {max(1, enough)} of its {row['workers']} workers", row["op_id"],
        "num_parallel_workers", row["workers"], max(1, enough), place=row["site"],
        not_when="the training is about to become faster",
    )  # fmt: skip


def _verify(row: Row, options: str) -> str:
    return f"pipeprof whatif RUN --op {row['op_id']} {options}"
