"""What a training's storage costs it, and what a cache would bring: from the rows of one recording. Pure.

A cached row is handed out without the waiting of whatever reads it; what is computed stays. A pipeline is as fast as
its slowest stage, so a cache brings nothing where another stage limits. "Cached after an operator" means that neither
that operator nor any before it works any more.

A source that waits for a small file, or more of them, for each row: worth one large file. Pure.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipeprof.verdict.capacity import CHEAP, SOURCE, Change, Loop, Stage, rate_now, rate_with
from pipeprof.verdict.loop import loop_of
from pipeprof.verdict.predict import is_cheap, tried
from pipeprof.verdict.rules import LOCK_HELD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeprof.query.rows import JudgedStage, StorageUse
    from pipeprof.verdict.capacity import Trial


SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
READS_BYTES = 64  # a row's calls that read less than this from files do not read data
LEAST_WORK = 1e-3  # of a row's time that is left at least when it is not read any more
MEMORY_ROW_NS = 35e3  # CPU time of a Python source for a row that it holds, of any size: lab/notes/storage.md
CACHE_BYTES = 2 << 30  # that a cache may take at most where it is tried
WORTH = 1.02  # a cache that brings less is not recommended; of those within it of the best the smallest is
KEEPS_ROWS = CHEAP | {"EpochCtrlOp"}  # operators that hand on the rows that they get
NO_POINT = frozenset(["EpochCtrlOp", "RepeatOp"])  # nothing can be cached after these that could not be before
# Names of what draws random numbers; of MindSpore's own it is not all that is called Random... (RandAugment, MixUp).
RANDOM = re.compile(r"(?i:random|mixup|cutmix|cutout)|\b(?:[A-Z]\w*)?Aug")


@dataclass(frozen=True)
class _Op:
    """An operator on the way from the source to the loop, with what is known of the rows that it hands on."""

    row: StorageUse
    rows: float | None  # that it hands on for one batch
    bytes: float | None  # of one of them


@dataclass(frozen=True)
class CachePoint:
    """A cache behind an operator: its size, and how many times as fast the loop is with it.

    `rows` of an epoch; `rate`: batches/s, `ratio`: times now, both in memory; `disk_ratio`: on the storage of now;
    `trial`: the verb that measured such a cache before, with its `ratio`, `low` and `high`; `untimed`: another operator
    may limit; `changes`: why rows that were kept are others; `python`: Python in front of it may make others.
    """

    op_id: int
    op_type: str
    name: str | None
    site: str | None
    rows: float | None
    row_bytes: float | None
    bytes: float | None
    rate: float
    ratio: float
    trial: str | None
    low: float | None
    high: float | None
    untimed: bool
    disk_ratio: float | None
    changes: str | None
    python: bool

    @property
    def op(self) -> dict[str, Any]:
        """The operator by its number, type and name."""
        return {"op_id": self.op_id, "op_type": self.op_type, "name": self.name}


def storage_of(
    load: Sequence[JudgedStage], facts: Sequence[StorageUse], cores: float, trials: Sequence[Trial] = ()
) -> list[dict[str, Any]]:
    """The advice for each training pipeline of each rank.

    `trials`: what was measured of changes before; a cache among them has what was measured in place of a prediction.
    Pipelines whose pace or whose operators' times are not known are left out.
    """
    advice = []
    for pipeline in dict.fromkeys(_pipeline(row) for row in facts):
        mine = [row for row in load if _pipeline(row) == pipeline]
        loop = loop_of(mine, cores, trials)
        if loop.rate and loop.consumer and any(stage.rate for stage in loop.stages):
            about = [row for row in facts if _pipeline(row) == pipeline]
            names = ("rep", "rank", "pipeline_key")
            advice.append(dict(zip(names, pipeline, strict=True)) | _advice(loop, mine, about))
    return advice


def _pipeline(row: JudgedStage | StorageUse) -> tuple[int, int, str]:
    return row.rep, row.rank, row.pipeline_key


def _advice(loop: Loop, load: Sequence[JudgedStage], facts: Sequence[StorageUse]) -> dict[str, Any]:
    shares = reading_shares(facts)
    hand_over = min((row.hand_over_ns or 0.0 for row in facts), default=0.0)
    wait_ns = (load[0].wait_share or 0.0) * 1e9 / (loop.rate or 1.0)
    floor = replace(loop, consumer=1e9 / (1e9 / (loop.consumer or 1.0) + min(hand_over, wait_ns)))
    curve = [_expected(floor, [cached(floor, stage, share * shares.get(stage.op_id, 0.0)) for stage in floor.stages])
             | {"cached": share} for share in SHARES]  # fmt: skip
    points = [] if _branches(facts) else list(_points(floor, load, facts, shares))
    best = best_point(points)
    untimed = not shares and any(row.wait_share is None for row in facts if not row.producers)
    return {
        "split": split(floor, load, None if untimed else curve[-1]["ratio"], hand_over),
        "curve": curve,
        "points": points,
        "best": None if best is None else best.op_id,
        "readers": sorted(shares),
        "branches": _branches(facts),
        "doubts": _doubts(loop, shares),
    }


def reading_shares(facts: Sequence[StorageUse]) -> dict[int, float]:
    """The part of a row's time that each operator that reads waits for what it reads."""
    return {
        row.op_id: min(row.wait_share, 1.0)
        for row in facts
        if row.wait_share and (not row.producers or (row.read_bytes or 0.0) >= READS_BYTES)
    }


def cached(loop: Loop, stage: Stage, share: float) -> Stage:
    """The stage when that part of its rows' time is gone, in the mean over all rows."""
    if stage.rate is None or share <= 0:
        return stage
    left = max(1 - share, LEAST_WORK)
    row = None if stage.row_ns is None else stage.row_ns * left
    faster = replace(stage, rate=stage.rate / left, row_ns=row)
    if stage.op_type != SOURCE or stage.workers < 2:
        return faster
    return replace(faster, rate=max(rate_with(faster, stage.workers) or 0.0, rate_now(loop, stage)))


def split(
    loop: Loop, load: Sequence[JudgedStage], without_reading: float | None, hand_over: float
) -> dict[str, float | None]:
    """The loop's waiting as shares of its time: for reading, for preparing, for the hand-over of batches made before.

    `without_reading`: how many times as fast the loop would be with all data cached; None where that is not known.
    """
    step_ns = 1e9 / (loop.rate or 1.0)
    wait: float = load[0].wait_share or 0.0
    handed = min(hand_over / step_ns, wait)
    if without_reading is None:
        return {"wait": wait, "reading": None, "preparing": None, "hand_over": handed}
    reading = min(max(1 - 1 / without_reading, 0.0), wait - handed)
    return {"wait": wait, "reading": reading, "preparing": wait - handed - reading, "hand_over": handed}


def best_point(points: Sequence[CachePoint]) -> CachePoint | None:
    """Of the caches that bring most without changing what the network sees, the smallest; None where none pays.

    Of equally large ones the one nearest the source: what comes behind it can still change.
    """
    sound = [one for one in points if one.changes is None]
    most = max((one.ratio for one in sound), default=0.0)
    if most < WORTH:
        return None
    good = [one for one in sound if one.ratio >= WORTH and one.ratio * WORTH >= most]
    return min(good, key=lambda one: (math.inf if one.bytes is None else one.bytes, -one.op_id))


def _expected(loop: Loop, stages: Sequence[Stage]) -> dict[str, float]:
    """Batches/s of the loop with these stages, and how many times as fast as now that is."""
    now = min([loop.consumer or math.inf, *(rate_now(loop, one) for one in loop.stages if one.rate is not None)])
    then = min([loop.consumer or math.inf, *(rate_now(loop, one) for one in stages if one.rate is not None)])
    return {"rate": (loop.rate or 0.0) * then / now, "ratio": then / now}


def _points(
    loop: Loop, load: Sequence[JudgedStage], facts: Sequence[StorageUse], shares: Mapping[int, float]
) -> Iterator[CachePoint]:
    """A cache after each operator, the source first: its size, what it brings in memory and on the same storage."""
    load_of = {row.op_id: row for row in load}
    speed = _storage_speed(loop, facts, shares)
    gone: set[int] = set()
    changes = None
    ops = _chain(facts)
    for op in ops:
        op_id = op.row.op_id
        gone.add(op_id)
        stage_of = load_of.get(op_id)
        changes = changes or _changes(op.row.op_type, stage_of.name if stage_of else None)
        if op.row.op_type in NO_POINT:
            continue
        rest = [stage for stage in loop.stages if stage.op_id not in gone]
        memory = _expected(loop, [*rest, _source(op, MEMORY_ROW_NS)])
        stored = None if speed is None or op.bytes is None else _source(op, max(op.bytes / speed * 1e9, MEMORY_ROW_NS))
        disk = None if stored is None else _expected(loop, [*rest, stored])
        rows = _rows_of_epoch(op, ops)
        known = CachePoint(
            op_id=op_id,
            op_type=op.row.op_type,
            name=stage_of.name if stage_of else None,
            site=stage_of.site if stage_of else None,
            rows=rows,
            row_bytes=op.bytes,
            bytes=None if rows is None or op.bytes is None else rows * op.bytes,
            rate=memory["rate"],
            ratio=memory["ratio"],
            trial=None,
            low=None,
            high=None,
            untimed=any(stage.rate is None and not is_cheap(stage) for stage in rest),
            disk_ratio=None if disk is None else disk["ratio"],
            changes=changes,
            python=any(one in load_of and bool(load_of[one].is_python) for one in gone - {ops[0].row.op_id}),
        )
        measured = tried(loop, Change(op_id, cache=CACHE_BYTES))
        yield (
            known
            if measured is None
            else replace(
                known, trial=measured.trial, ratio=measured.ratio or known.ratio, low=measured.low, high=measured.high
            )
        )


def _source(op: _Op, row_ns: float) -> Stage:
    """What hands out the cached rows."""
    return Stage(-2, "cache", rate=1e9 / (row_ns * max(op.rows or 1.0, 1e-9)))


def _changes(op_type: str, name: str | None) -> str | None:
    """Why rows that were kept would not be what the operator makes the next time; None where nothing says so."""
    if op_type == "ShuffleOp":
        return "order"
    if RANDOM.search(name or ""):
        return "random"
    return "batches" if op_type == "BatchOp" else None  # MindSpore's sources shuffle unless they are told not to


def _storage_speed(loop: Loop, facts: Sequence[StorageUse], shares: Mapping[int, float]) -> float | None:
    """Bytes/s that all workers of the source read together; None where it is not known."""
    for row in facts:
        stage = next((one for one in loop.stages if one.op_id == row.op_id), None)
        if row.op_id in shares and stage is not None and stage.row_ns and row.read_bytes:
            return float(row.read_bytes) * stage.workers * 1e9 / (stage.row_ns * shares[row.op_id])
    return None


def _branches(facts: Sequence[StorageUse]) -> bool:
    """Whether rows come from several sources, so that there is no one cache after an operator."""
    return any(row.producers > 1 for row in facts)


def _chain(facts: Sequence[StorageUse]) -> list[_Op]:
    """The operators from the source to the sink, with their rows' number and size as far as both can be known."""
    feeds = {row.consumer_id: row for row in facts}
    ops = []
    row = feeds.get(None)
    while row is not None:
        ops.append(row)
        row = feeds.get(row.op_id)
    ops.reverse()
    rows = _numbers(ops)
    sizes = _sizes(ops, rows)
    return [_Op(*parts) for parts in zip(ops, rows, sizes, strict=True)]


def _numbers(ops: Sequence[StorageUse]) -> list[float | None]:
    """Rows that each hands on for one batch."""
    numbers: list[float | None] = []
    for row in ops:
        before = numbers[-1] if numbers else None
        is_batch = row.op_type == "BatchOp"
        numbers.append(1.0 if is_batch else row.rows_per_batch or before)
    return numbers


def _sizes(ops: Sequence[StorageUse], rows: Sequence[float | None]) -> list[float | None]:
    """Bytes of a row behind each: from the source on, and back from the batch, whose size was seen."""
    sizes: list[float | None] = []
    for number, row in enumerate(ops):
        sizes.append(_after(row, sizes[-1], _fold(rows, number)) if sizes else row.out_bytes)
    if ops and ops[0].batch_bytes is not None:
        sizes[-1] = float(ops[0].batch_bytes)
    for number in range(len(ops) - 1, 0, -1):
        if sizes[number - 1] is None:
            sizes[number - 1] = _before(ops[number], sizes[number], _fold(rows, number))
    return sizes


def _fold(rows: Sequence[float | None], number: int) -> float | None:
    """Rows that go into one row of an operator's."""
    before, after = rows[number - 1], rows[number]
    return None if before is None or not after else before / after


def _after(row: StorageUse, size: float | None, fold: float | None) -> float | None:
    if size is None:
        return None
    if row.op_type == "BatchOp":
        return None if fold is None else size * fold
    if row.op_type in KEEPS_ROWS:
        return size
    return _exchanged(size, row.in_bytes, row.out_bytes)


def _before(row: StorageUse, size: float | None, fold: float | None) -> float | None:
    if size is None:
        return None
    if row.op_type == "BatchOp":
        return None if not fold else size / fold
    if row.op_type in KEEPS_ROWS:
        return size
    return _exchanged(size, row.out_bytes, row.in_bytes)


def _exchanged(size: float, off: float | None, on: float | None) -> float | None:
    """The bytes of a row with some taken off and others put on: means of rows that differ, so the rest may be none."""
    return None if off is None or on is None else max(size - off, 0.0) + on


def _rows_of_epoch(op: _Op, ops: Sequence[_Op]) -> float | None:
    """Rows behind an operator in one pass over the data: as many as the source has, or as an epoch takes if less.

    A shard, a sampler or a `take` hands out a part of the source; with a `repeat` an epoch is several passes.
    """
    source = ops[0]
    counts: list[float] = []
    if source.row.source_rows and source.rows and op.rows:
        counts.append(math.ceil(source.row.source_rows * op.rows / source.rows))
    repeats = any(one.row.op_type == "RepeatOp" for one in ops)
    if op.row.epoch_batches and op.rows and (counts or not repeats):
        counts.append(op.row.epoch_batches * op.rows)
    return float(min(counts)) if counts else None


def _doubts(loop: Loop, shares: Mapping[int, float]) -> list[str]:
    """Codes of what makes the figures doubtful."""
    doubts = []
    threads = any(stage.op_id in shares and stage.is_python and not stage.uses_processes for stage in loop.stages)
    if threads and (loop.gil_share or 0.0) >= LOCK_HELD:
        doubts.append("lock")
    if loop.has_no_core:
        doubts.append("no_core")
    if any(stage.rate is None and stage.op_type not in CHEAP for stage in loop.stages):
        doubts.append("not_timed")
    return doubts


SMALL_FILE = 1 << 20  # bytes of a row up to which finding its file may take as long as reading it
FOLDERS = frozenset(["AlbumOp", "CelebAOp", "CocoOp", "DIV2KOp", "Food101Op", "ImageFolderOp", "ManifestOp", "VOCOp"])


def small_files(
    advice: Mapping[str, Any], load: Sequence[JudgedStage], facts: Sequence[StorageUse]
) -> dict[str, Any] | None:
    """The source of a pipeline, where it does; None where that costs the loop next to nothing.

    `most`: times that the loop would be as fast if no row had to be waited for. One file that is read from its
    beginning to its end can come near that, where finding and opening files is what takes time.
    """
    most = advice["curve"][-1]["ratio"]
    shares = reading_shares(facts)
    for row in facts:
        read = row.read_bytes
        by_file = row.op_type in FOLDERS or (row.op_type == SOURCE and bool(read))  # else it waits for no file
        if row.producers or row.op_id not in shares or not by_file or most < WORTH or (read or 0) > SMALL_FILE:
            continue
        made = next((one for one in load if one.op_id == row.op_id), None)
        return {
            "op_id": row.op_id, "op_type": row.op_type, "name": made.name if made else None,
            "site": made.site if made else None,
            "share": shares[row.op_id], "read_bytes": read, "most": most,
        }  # fmt: skip
    return None
