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
from pipeprof.verdict.predict import Prediction, predict, without_lock
from pipeprof.verdict.rules import DOUBTED_CORES, LOCK_HELD
from pipeprof.verdict.workers import enough_workers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Row = Mapping[str, Any]

WORTH = 1.02  # a smaller predicted gain is not suggested
CPU_SHORT = 0.10  # of the machine idle; where more is, workers that have nothing to do harm nobody


@dataclass(frozen=True)
class Suggestion:
    """One change. `gain` is the predicted speed-up of the loop, within [`gain_low`, `gain_high`]; None: not known.

    `text` says it in one sentence, gain included; `action` what to do alone. `old` and `new` are values of `parameter`;
    `place` is the file:line to edit; `not_when` the counter-indication; `then` what limits afterwards: an op_id or
    "consumer".
    """

    text: str
    action: str | None = None
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
    then: int | str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"basis": list(self.basis), "action": self.action or self.text}


def suggestions(row: Row, kind: str | None, loop: Loop) -> list[Suggestion]:
    """What to do about the stage of this row of diagnose/load: largest gain first, the bound of all last."""
    found: list[Suggestion] = []
    if kind == "host_saturated":
        found.append(
            Suggestion(
                "stop the other programs that keep the CPU busy, or measure on a quiet machine", op_id=row["op_id"]
            )
        )
    if row["op_type"] == SOURCE:
        found += _source(row, kind, loop)
    elif row["op_type"] in SCALING:
        found += _workers(row, kind, loop)
    elif row["op_type"] == "ShuffleOp":
        found.append(
            Suggestion(
                "make the shuffle's buffer smaller: all of it is read before the first batch",
                None, row["op_id"], "buffer_size", place=row["site"],
            )
        )  # fmt: skip
    else:
        found.append(
            Suggestion(
                "read fewer, larger files (MindRecord), use faster storage, or raise num_parallel_workers of "
                f"{label(row)} (now {row['workers']})",
                None, row["op_id"], "num_parallel_workers", row["workers"], place=row["site"],
            )
        )  # fmt: skip
    if not found:
        found.append(_cheaper(row, kind))
    found.sort(key=lambda item: -(item.gain or 0.0))
    stage = next((stage for stage in loop.stages if stage.op_id == row["op_id"]), None)
    others = loop if stage is None else without_lock(loop, stage)
    bound = most(row, others)
    if bound is not None and bound >= WORTH:
        limit, then = _next(row, others)
        found.append(
            Suggestion(
                f"no change of {label(row)} makes the training more than {bound:.2f} times as fast: "
                f"then {limit} limits",
                op_id=row["op_id"], gain_high=bound, basis=("capacity of the next stage / of this one",),
                place=row["code"], then=then,
            )
        )  # fmt: skip
    return found


def _cheaper(row: Row, kind: str | None) -> Suggestion:
    """Where no setting is known to help: less work."""
    how = (
        "keep what it waits for in memory, or wait for several rows at once"
        if kind == "wait"
        else "a faster algorithm, an operation of MindSpore in C++, or work that is done ahead of time (MindRecord)"
    )
    return Suggestion(f"make the rows of {label(row)} cheaper: {how}", op_id=row["op_id"], place=row["code"])


def for_consumer(rows: Sequence[Row], loop: Loop) -> list[Suggestion]:
    """A loop that does not wait: what its data pipeline takes from it; where CPU is short, what that could give up."""
    found = [
        _lock_holder(row)
        for row in rows
        if (row["python_cores"] or 0) >= DOUBTED_CORES and (row["gil_share"] or 0) >= LOCK_HELD
    ]
    if loop.free_cores is not None and loop.free_cores < CPU_SHORT * loop.cpu_count:
        found += [spare for row in rows if (spare := _fewer(row, loop)) is not None]
    return found


def _lock_holder(row: Row) -> Suggestion:
    holds = f"{label(row)} computes in Python and holds the interpreter's lock (GIL), which the training needs too: "
    if row["op_type"] not in SCALING:
        text = "do it ahead of time (MindRecord), or in a map with python_multiprocessing=True"
        return Suggestion(holds + text, op_id=row["op_id"], place=row["code"])
    return Suggestion(
        holds + "move it to processes, or use a C++ operation",
        None, row["op_id"], "python_multiprocessing", old=False, new=True, place=row["site"],
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


def _next(row: Row, loop: Loop) -> tuple[str, int | str]:
    """What limits when this stage no longer does: in words, and its op_id."""
    rated: list[tuple[float | None, str, int | str]] = [
        (stage.rate, f"{stage.op_type} {stage.op_id}", stage.op_id)
        for stage in loop.stages
        if stage.rate is not None and stage.op_id != row["op_id"]
    ]
    if loop.consumer is not None:
        rated.append((loop.consumer, "the training itself", "consumer"))
    _, words, then = min(rated, key=lambda item: item[0] or math.inf)
    return words, then


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
            row, change, loop, _workers_text(who, now, wanted), "num_parallel_workers", now, wanted,
            "the machine's cores are busy" if kind == "cpu" else f"the machine has fewer than {wanted} CPUs",
        )  # fmt: skip
    elif now >= loop.cpu_count:
        yield Suggestion(
            ("make a row cheaper, or do the work ahead of time" if kind == "cpu"
             else "wait for several rows at once inside the function, or in batch's per_batch_map")
            + f": {who} has {now} workers, and MindSpore allows no more than the {loop.cpu_count} CPUs of this machine",
            None, row["op_id"], "num_parallel_workers", now, now, place=row["code"],
        )  # fmt: skip
    if kind == "cpu" and row["is_python"] and not row["uses_processes"]:
        yield from _processes(row, loop)


def _workers_text(who: str, now: int, wanted: int) -> str:
    return f"set num_parallel_workers of {who} to {wanted} (now {now})"


def _processes(row: Row, loop: Loop) -> Iterator[Suggestion]:
    who = label(row)
    if row["uses_processes"]:
        return
    workers = max(row["workers"], min(2, loop.cpu_count))
    prediction = predict(loop, Change(row["op_id"], workers=workers, processes=True))
    sure = prediction.ratio is not None and (prediction.low or 0.0) >= 1.0
    action = (
        f"run {who} in worker processes (python_multiprocessing=True, num_parallel_workers={workers}), or replace it "
        "by an operation of MindSpore in C++"
    )
    why = "it computes in Python, and threads take turns with the interpreter's lock (GIL)"
    yield Suggestion(
        f"{action}: {why}" + (f": {_stated(prediction)}" if sure else ""), action,
        row["op_id"], "python_multiprocessing", old=False, new=True, place=row["site"],
        not_when="rows are large: each one is copied to the process and back; more threads never help",
        verify=_verify(row, f"--workers {workers} --processes"),
        gain=prediction.ratio if sure else None, gain_low=prediction.low if sure else None,
        gain_high=prediction.high if sure else None, then=prediction.limited_by if sure else None,
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
            _workers_text(who, now, wanted), "num_parallel_workers", now, wanted, None,
            why=": with several workers a source sleeps 100 ms whenever the next row is not there yet, which limits it "
            f"to {rows_s or 160 * now:.0f} rows/s",
        )  # fmt: skip
    elif kind == "gil":
        yield Suggestion(
            f"do the work of {who} ahead of time (MindRecord), in a C++ operation, or in a map with "
            "python_multiprocessing=True: it computes in Python, and threads take turns with the interpreter's lock "
            "(GIL)",
            op_id=row["op_id"], place=row["code"], not_when="more num_parallel_workers with threads never help here",
        )  # fmt: skip
    elif wanted is not None and wanted > now:
        yield from _predicted(
            row, Change(row["op_id"], workers=wanted), loop, _workers_text(who, now, wanted),
            "num_parallel_workers", now, wanted, f"a row takes less than {100 / 16 / wanted:.1f} ms",
        )  # fmt: skip
    yield Suggestion(
        f"make the rows of {who} cheaper: read in blocks, or store the data as MindRecord", op_id=row["op_id"],
        place=row["code"], not_when=None if now > 1 else "do not just add workers to a source with fast rows: from two "
        "on, its master polls and makes at most 160 rows/s for each thread",
    )  # fmt: skip


def _deeper(row: Row, loop: Loop) -> Iterator[Suggestion]:
    """Bursts: a queue that holds what is taken during the stall, if the source is fast enough on average."""
    mean = row["rate"] or 0.0
    if row["longest_ns"] is None or loop.consumer is None or mean < loop.consumer:
        yield Suggestion(
            f"make the stalls of {label(row)} rarer: it is too slow even on average, so a longer queue cannot help",
            op_id=row["op_id"], place=row["code"],
        )  # fmt: skip
        return
    depth = math.ceil(row["longest_ns"] * loop.consumer / 1e9) + 1
    yield Suggestion(
        f"raise the prefetch size to {depth} batches (ds.config.set_prefetch_size): {label(row)} stalls for "
        f"{row['longest_ns'] / 1e6:.0f} ms now and then, and a queue of that length outlasts it; more workers do not",
        None, row["op_id"], "prefetch_size", row["capacity"], max(depth, row["capacity"] or 0), place=row["site"],
        not_when="memory is short: that many batches are held",
        verify=_verify(row, f"--prefetch {max(depth, row['capacity'] or 0)}"),
    )  # fmt: skip


def _predicted(
    row: Row,
    change: Change,
    loop: Loop,
    text: str,
    parameter: str,
    old: Any,
    new: Any,
    not_when: str | None,
    why: str = "",
) -> Iterator[Suggestion]:
    """The change, unless it is predicted to bring nothing. `why` goes on with the sentence, but not with the action."""
    prediction = predict(loop, change)
    if prediction.ratio is not None and prediction.ratio < WORTH:
        return
    if prediction.ratio is None and (prediction.high or 0) < WORTH and prediction.high is not None:
        return
    yield Suggestion(
        f"{text}{why}: {_stated(prediction)}", text, row["op_id"], parameter, old, new,
        gain=prediction.ratio, gain_low=prediction.low, gain_high=prediction.high,
        basis=prediction.basis, not_when=not_when, place=row["site"],
        verify=_verify(row, f"--workers {new}"), then=prediction.limited_by,
    )  # fmt: skip


def _stated(prediction: Prediction) -> str:
    if prediction.ratio is None:
        return f"the gain cannot be predicted ({prediction.reason})"
    low, high = prediction.low or prediction.ratio, prediction.high or prediction.ratio
    if high / low > 1.25:
        return f"{low:.2f} to {high:.2f} times as fast"
    return f"about {prediction.ratio:.2f} times as fast"


def _fewer(row: Row, loop: Loop) -> Suggestion | None:
    """Workers that are not needed: 1.3 times what the loop takes is enough."""
    if row["op_type"] not in SCALING or not row["work_ns"] or not loop.rate or row["workers"] < 2:
        return None
    enough = math.ceil(loop.rate * row["work_ns"] / 1e9 * 1.3)
    if enough >= row["workers"]:
        return None
    return Suggestion(
        f"{_workers_text(label(row), row['workers'], max(1, enough))}: CPU is short, and that is enough",
        None, row["op_id"],
        "num_parallel_workers", row["workers"], max(1, enough), place=row["site"],
        not_when="the training is about to become faster",
    )  # fmt: skip


def _verify(row: Row, options: str) -> str:
    return f"pipeprof whatif RUN --op {row['op_id']} {options}"
