"""A whole import: the files of all ranks, into a run, in two passes: what they hold, then their rows.

One rank's files to rows of the record.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pipeprof import processes
from pipeprof.errors import SourceError
from pipeprof.read.minddata import files
from pipeprof.read.minddata.folder import RankFiles, begin_ns, read_rank
from pipeprof.read.minddata.graph import structure_key
from pipeprof.read.tables.ranks import NAMED_RANK, Waiting, as_nodes_see, check_folder, halfway, spread
from pipeprof.read.tables.rows import RankRows
from pipeprof.read.tables.share import Damage, Outcome, decide, folder_alone, size_of, take_in
from pipeprof.record import limits, store
from pipeprof.record.run import Manifest, Rank, Rep, Run
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.read.minddata.files import SourceFile

MEASURED = ("queue", "cpu", "memory", "op_service", "step", "fetch")


class Files(NamedTuple):
    """A rank's files by kind, and a folder for what is read of them."""

    rank: int
    paths: dict[str, Path]
    folder: Path


class Half(NamedTuple):
    """A rank after the first pass; `earliest` is the first time in its files, ns."""

    rank: int
    waiting: Waiting
    earliest: int | None


class Written(NamedTuple):
    """What came of a rank, and facts of its files; `spans` are the first and last time of each part of them, ns."""

    outcome: Outcome
    pid: int
    sink: bool
    timeless: bool
    cores: int | None
    latest: int | None
    spans: list[tuple[int, int, str]]


def read_files(files: Files) -> Half:
    """First pass. Raises TooManyRows."""
    check_folder(files.folder)
    processes.say(f"rank {files.rank}: reading {format_count(len(files.paths), 'file')}")
    content = read_rank(files.paths)
    return Half(files.rank, Waiting(content, files.folder), min(content.all_times(), default=None))


def write_rank(part: tuple[Path, Half, int]) -> Written:
    """Second pass: a rank's tables into a run's folder, with times from a zero on."""
    folder, half, zero = part
    check_folder(folder)
    processes.say(f"rank {half.rank}: writing its tables")
    content: RankFiles = half.waiting.take()
    out = RankRows(0, half.rank, zero, most=limits.most_imported_rows(in_memory=True))
    add_rows(content, out)
    counts = {}
    if any(out.rows.get(table) for table in MEASURED):
        run = folder_alone(folder)
        counts = {table: store.write(run, table, 0, half.rank, rows) for table, rows in out.rows.items()}
    damage = [(error.message, error.hint) for error in content.damage]
    return Written(
        Outcome(half.rank, counts, content.notes.all(), damage, steps=_evidence(content)),
        pid=content.pid or 0,
        sink=content.sink,
        timeless=any(record.t_ns is None for record in content.records),
        cores=content.cpu.machine_cores,
        latest=max(content.all_times(), default=None),
        spans=_spans(content, half.rank),
    )


def _evidence(content: RankFiles) -> str | None:
    if content.records and not content.sink:
        return "iterator file"
    return "device side of the queue" if content.device else None


def _spans(content: RankFiles, rank: int) -> list[tuple[int, int, str]]:
    parts = {
        "samples": content.times,
        "batches": [record.t_ns for record in content.records if record.t_ns is not None],
        "device side": [fetch.start_ns for fetch in content.device],
    }
    return [(min(times), max(times), f"{name} of rank {rank}") for name, times in parts.items() if times]


KIND = "minddata"
WHAT = "MindSpore dataset profiling (pipeline_profiling_0.json and the files beside it)"
_APART_NS = 3_600 * 1_000_000_000


def recognise(path: Path) -> bool:
    """Whether a file is one of these, by its content. Raises SourceError when it cannot be read."""
    return files.identify(path) is not None


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """Read the files into repetition 0 of a run and fill in its manifest, which is not saved.

    Raises SourceError when a rank has two files of a kind, or when nothing usable is in any file.
    """
    manifest = run.manifest
    ranks = _by_rank([item for path in paths if (item := files.identify(path)) is not None], manifest)
    sizes = [sum(map(size_of, mine.values())) for _, mine in sorted(ranks.items())]
    names = [f"rank {rank}" for rank in sorted(ranks)]
    with halfway(run) as folder:
        files_of = [
            Files(rank, {kind: as_nodes_see(path) for kind, path in mine.items()}, folder)
            for rank, mine in sorted(ranks.items())
        ]
        halves = spread(read_files, files_of, sizes, names, progress)
        zero = min((half.earliest for half in halves if half.earliest is not None), default=0)
        parts = [(run.path.resolve(), half, zero) for half in halves]
        written = spread(write_rank, parts, sizes, names, progress)
    nothing = Damage(
        f"nothing to import: no sample and no batch in {format_count(len(paths), 'file')} has a time",
        "import a folder that has the time stamps (minddata_cpu_utilization) too",
    )
    damage = take_in(manifest, [one.outcome for one in written], nothing, measured=MEASURED)
    latest = max((one.latest for one in written if one.latest is not None), default=zero)
    manifest.reps = [
        Rep(
            rep=0, zero_realtime_ns=0, zero_monotonic_ns=zero, dur_ns=latest - zero,
            ranks=[
                Rank(
                    rank=one.outcome.rank, pid=one.pid, host="", zero_realtime_ns=0, zero_monotonic_ns=zero,
                    step_evidence=one.outcome.steps,
                )
                for one in written if one.outcome.counts
            ],
        )
    ]  # fmt: skip
    cores = {one.cores for one in written if one.cores}
    if len(cores) == 1:  # machines that differ have no number in common
        manifest.fingerprint["cpu_cores"] = cores.pop()
    decide(manifest, damage, _missing(written), "left out: ")
    _clocks(manifest, written)


def _by_rank(recognised: Sequence[SourceFile], manifest: Manifest) -> dict[int, dict[str, Path]]:
    ranks: dict[int, dict[str, Path]] = {}
    for item in recognised:
        if item.rank is not None:
            _assign(ranks.setdefault(item.rank, {}), item.rank, item)
    for item in recognised:
        if item.rank is None or item.kind == files.LOG:
            _assign_log(ranks, item, recognised, manifest)
    return ranks


def _assign(mine: dict[str, Path], rank: int, item: SourceFile) -> None:
    if item.kind == files.LOG:
        return
    other = mine.get(item.kind)
    if other is not None:
        raise SourceError(
            f"two files of the same kind for rank {rank}: `{other}` and `{item.path}`, expected those of one training",
            "import one of their folders",
        )
    mine[item.kind] = item.path


def _assign_log(
    ranks: dict[int, dict[str, Path]], item: SourceFile, recognised: Sequence[SourceFile], manifest: Manifest
) -> None:
    """A log's rank is that in its own or its folder's name, that of the files beside it, or the only one there is."""
    beside = {other.rank for other in recognised if other.path.parent == item.path.parent and other.kind != files.LOG}
    named = NAMED_RANK.search(item.path.parent.name)
    others = {rank for rank, mine in ranks.items() if mine.keys() - {files.LOG}}
    wanted = [item.rank, int(named[1]) if named else None, next(iter(beside)) if len(beside) == 1 else None]
    rank = next((rank for rank in wanted if rank is not None and rank in others), None)
    if rank is None and len(others) <= 1:
        rank = next(iter(others), item.rank or 0)
    if rank is None or files.LOG in ranks.setdefault(rank, {}):
        why = "its rank is not known" if rank is None else f"rank {rank} has another log"
        manifest.warn("left_out", f"`{item.path}` with timing blocks was left out: {why}")
        return
    ranks[rank][files.LOG] = item.path


def _missing(written: Sequence[Written]) -> dict[str, str]:
    """Why a table may be absent."""
    sink = any(one.sink for one in written)
    timeless = any(one.timeless for one in written)
    batches = "the queue file has no time stamps" if timeless else "no queue file with batches"
    return {
        "step": "in data sink mode only the device's file has steps, and it is missing" if sink else batches,
        "op": "dataset profiling does not record operators of the network",
        "queue": "no queue samples with a time",
        "op_service": "no log with MindSpore's timing blocks (VLOG_v=10900)",
        "memory": "no CPU file with memory",
        "cpu": "no CPU file",
        "fetch": batches,
    }


def _clocks(manifest: Manifest, written: Sequence[Written]) -> None:
    """Warn when parts of the import lie more than an hour apart: they are not of one clock, or not of one training."""
    for (_, end, one), (start, _, other) in pairwise(sorted(span for rank in written for span in rank.spans)):
        if start - end > _APART_NS:
            hours = (start - end) / _APART_NS
            manifest.warn(
                "clocks",
                f"{one} end {hours:.0f} h before {other} begin: their clocks differ, or they are of two trainings",
            )


PIPELINE_ID = 0  # a folder holds one iterator's tree
ROUNDING_NS = 2_000_000  # stamp and wait are whole ms each


def add_rows(content: RankFiles, out: RankRows) -> None:
    """Add all rows of a rank. What the rows cannot say is added to the rank's notes."""
    if content.loose:
        for block in content.blocks:
            block.wall_ns += out.zero
    _add_graph(content, out)
    _add_samples(content, out)
    _add_machine(content, out)
    _add_service(content, out)
    step_of = _add_loop_steps(content, out) if content.records and not content.sink else {}
    _add_host_side(content, out, step_of)
    _add_device_side(content, out)


def _add_graph(content: RankFiles, out: RankRows) -> None:
    out.pipelines += 1
    out.add(
        "pipeline", pipeline_id=PIPELINE_ID, pipeline_key=structure_key(content.ops), role="train",
        batch_size=_batch_size(content), queues=_queues(content),
    )  # fmt: skip
    for op in content.ops:
        out.add(
            "pipeline_op", pipeline_id=PIPELINE_ID, op_id=op.op_id, op_type=op.op_type, workers=op.workers,
            capacity=op.capacity, is_python=True if op.op_type.removesuffix("Op") == "Generator" else None,
            inlined=not op.has_queue, stated_fill_ratio=op.stated_ratio,
        )  # fmt: skip
        for child in op.children:
            out.add("pipeline_edge", pipeline_id=PIPELINE_ID, producer_id=child, consumer_id=op.op_id)
    if not content.ops:
        for number, kind in sorted({(op.op_id, op.op_type) for block in content.blocks[:100] for op in block.ops}):
            out.add("pipeline_op", pipeline_id=PIPELINE_ID, op_id=number, op_type=kind)


def _queues(content: RankFiles) -> str:
    if not content.ops:
        return "not_recorded: no file with the operators could be read"
    if not any(op.depths for op in content.ops):
        return "not_recorded: the file has no samples"
    return "recorded" if content.times else "not_recorded: the samples have no times"


def _batch_size(content: RankFiles) -> int | None:
    """Rows per batch as the timing blocks count them below the outermost batch operator, in most blocks."""
    batch = next((op for op in content.ops if op.op_type.removesuffix("Op") == "Batch"), None)
    if batch is None or len(batch.children) != 1:
        return None
    counts = Counter(op.rows for block in content.blocks for op in block.ops if op.op_id == batch.children[0])
    return counts.most_common(1)[0][0] if counts else None


def _add_samples(content: RankFiles, out: RankRows) -> None:
    for op in content.ops:
        for time, depth in zip(content.times, op.depths, strict=False):
            if depth is not None:
                out.add(
                    "queue", pipeline_id=PIPELINE_ID, op_id=op.op_id, t_ns=out.at(time), depth=depth,
                    capacity=op.capacity,
                )  # fmt: skip
        for time, (user, system) in zip(content.times, op.cpu, strict=False):
            if user is not None or system is not None:
                out.add(
                    "cpu", t_ns=out.at(time), scope="pipeline_op", pipeline_id=PIPELINE_ID, op_id=op.op_id,
                    user_ratio=user, sys_ratio=system,
                )  # fmt: skip


def _add_machine(content: RankFiles, out: RankRows) -> None:
    """CPU and memory of the process and of the host, by the samples' own times."""
    cpu, peak = content.cpu, 0
    times = [None if time is None else out.at(time) for time in cpu.times]
    for time, (user, system) in zip(times, cpu.process, strict=False):
        if time is not None and (user is not None or system is not None):
            out.add(
                "cpu", t_ns=time, scope="process", name="trainer", pid=content.pid, user_ratio=user, sys_ratio=system
            )
    for time, (user, system, idle) in zip(times, cpu.host, strict=False):
        if time is not None and (user, system, idle) != (None, None, None):
            out.add("cpu", t_ns=time, scope="host", user_ratio=user, sys_ratio=system, idle_ratio=idle)
    for time, used in zip(times, cpu.used, strict=False):
        if time is not None and used is not None:
            out.add("memory", t_ns=time, device="host", allocated_bytes=used)
    for time, rss in zip(times, cpu.rss, strict=False):
        if time is not None and rss is not None:
            peak = max(peak, rss)
            out.add(
                "memory", t_ns=time, device="process", pid=content.pid, name="trainer", rss_bytes=rss,
                rss_peak_bytes=peak,
            )  # fmt: skip


def _add_service(content: RankFiles, out: RankRows) -> None:
    for block in content.blocks:
        at = out.at(block.wall_ns)
        for op in block.ops:
            out.add(
                "op_service", pipeline_id=PIPELINE_ID, op_id=op.op_id, t_ns=at, source="log", avg_ns=op.avg_ns,
                max_ns=op.max_ns, min_ns=op.min_ns, rows=op.rows, batches=1, io_ns=op.io_ns,
            )  # fmt: skip
        for name, dur in block.extras.items():
            out.add("span", track="dataset", category="timing", name=name, start_ns=at - dur, dur_ns=dur)


def _add_step(out: RankRows, start: int, handed: int, end: int) -> int:
    """One step of a rank, from one request to the next; returns its number."""
    number = out.steps
    out.add(
        "step", step=number, kind_step=number, kind="train" if number else "warmup", pipeline_id=PIPELINE_ID,
        start_ns=out.at(start), fp_ns=out.at(handed), end_ns=out.at(end), data_wait_ns=handed - start,
        fetch_wait_ns=handed - start, fp_source="fetch", in_window=False,
    )  # fmt: skip
    out.steps += 1
    return number


def _add_loop_steps(content: RankFiles, out: RankRows) -> dict[int, int]:
    """Steps from the loop's own requests; returns the step by batch.

    The next request may seem to come before this batch was handed over, by the rounding of both to whole ms: it is
    put where the batch was handed over. What is further off, or has a batch missing in between, is no step.
    """
    step_of: dict[int, int] = {}
    odd = 0
    previous = None
    for record, following in pairwise(content.records):
        handed, start, end = record.t_ns, begin_ns(record, sink=False), begin_ns(following, sink=False)
        if handed is None or start is None or end is None:
            odd += 1
            continue
        if previous is not None and 0 <= previous - start <= ROUNDING_NS:
            start = min(previous, handed)
        previous = handed
        if handed - ROUNDING_NS <= end < handed:
            end = handed
        if following.batch != record.batch + 1 or end < handed:
            odd += 1
            continue
        step_of[record.batch] = _add_step(out, start, handed, end)
    if odd:
        content.notes.add(
            "steps",
            f"{format_count(odd, 'batch')} without a step: times are missing or contradict each other, or the next "
            "batch is missing",
        )
    return step_of


def _add_host_side(content: RankFiles, out: RankRows, step_of: dict[int, int]) -> None:
    untimed = 0
    first = min((record.batch for record in content.records), default=1)
    for record in content.records:
        start = begin_ns(record, sink=content.sink)
        if start is None:
            untimed += 1
            continue
        out.add(
            "fetch", pipeline_id=PIPELINE_ID, fetch=record.batch - min(first, 1), step=step_of.get(record.batch),
            start_ns=out.at(start), wait_ns=record.wait_ns, push_ns=record.push_ns, batch_ns=record.batch_ns,
            depth=record.depth, capacity=record.capacity, side="host_queue" if content.sink else "iterator",
        )  # fmt: skip
    if untimed:
        content.notes.add("fetch_times", f"left out {format_count(untimed, 'batch')} without a time or a wait")


def _add_device_side(content: RankFiles, out: RankRows) -> None:
    """Batches taken from the device's queue; they make the steps when the loop itself does not."""
    makes_steps = not out.steps
    for number, fetch in enumerate(content.device):
        step = None
        if makes_steps and number + 1 < len(content.device):
            end, handed = content.device[number + 1].start_ns, fetch.start_ns + fetch.wait_ns
            step = _add_step(out, fetch.start_ns, handed, end) if end >= handed else None
        out.add(
            "fetch", pipeline_id=PIPELINE_ID, fetch=number, step=step, start_ns=out.at(fetch.start_ns),
            wait_ns=fetch.wait_ns, depth=fetch.depth, side="data_queue",
        )  # fmt: skip
    overlapping = makes_steps and len(content.device) - 1 - out.steps
    if content.device and overlapping:
        batches = format_count(overlapping, "batch")
        content.notes.add("steps", f"{batches} without a step: the next dequeue began before the end of theirs")
