"""Everything that the files of one rank hold. A damaged file is left out, and said; the others are read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from pipeprof.errors import SourceError
from pipeprof.read.minddata import files
from pipeprof.read.minddata.align import align
from pipeprof.read.minddata.cpu import CpuFile, read_cpu
from pipeprof.read.minddata.fetches import DeviceFetch, FetchRecord, read_device_side, read_records
from pipeprof.read.minddata.graph import Graph, PipelineOp, read_pipeline, read_raw_csv
from pipeprof.read.minddata.saved import attach
from pipeprof.read.minddata.timings import Block, read_blocks
from pipeprof.read.source.notes import Notes
from pipeprof.record import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Paths = Mapping[str, Path]

T = TypeVar("T")


@dataclass
class RankFiles:
    """The content of one rank's files, on one clock (ns, monotonic).

    `times` belong to the operators' depths by position. `sink` says which kind of file `records` come from. Blocks
    have their time in `wall_ns`, and no longer on the wall clock, unless `loose`: then nothing relates them to others.
    """

    ops: list[PipelineOp] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    cpu: CpuFile = field(default_factory=lambda: CpuFile([]))
    records: list[FetchRecord] = field(default_factory=list)
    sink: bool = False
    device: list[DeviceFetch] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    loose: bool = False
    interval_ns: int | None = None
    pid: int | None = None
    notes: Notes = field(default_factory=Notes)
    damage: list[SourceError] = field(default_factory=list)

    def earliest(self) -> int | None:
        """The first time in any file; None when there is none."""
        times = [*self.times, *(fetch.start_ns for fetch in self.device)]
        times += [start for record in self.records if (start := begin_ns(record, sink=self.sink)) is not None]
        times += [] if self.loose else [block.wall_ns for block in self.blocks]
        return min(times, default=None)

    def latest(self) -> int | None:
        """The last time in any file; None when there is none."""
        times = [*self.times, *(fetch.start_ns + fetch.wait_ns for fetch in self.device)]
        times += [record.t_ns for record in self.records if record.t_ns is not None]
        times += [] if self.loose else [block.wall_ns for block in self.blocks]
        return max(times, default=None)


def begin_ns(record: FetchRecord, *, sink: bool) -> int | None:
    """When a batch was asked for: its stamp is taken when it was handed over, or, in a sink, pushed on."""
    spent = record.wait_ns
    if sink and record.batch_ns is not None:
        spent = record.batch_ns
    elif sink and spent is not None:
        spent += record.push_ns or 0
    return None if record.t_ns is None or spent is None else record.t_ns - spent


def read_rank(paths: Paths) -> RankFiles:
    """Read one rank's files by kind, at most one of each. `damage` has what could not be read.

    Raises TooManyRows.
    """
    found = RankFiles()
    graph = _graph(paths, found)
    found.ops, found.interval_ns = graph.ops, graph.interval_ns
    cpu = _tried(found, paths.get(files.CPU), read_cpu)
    if cpu is not None:
        named = paths.get(files.PIPELINE) or paths.get(files.RAW_CSV)
        found.cpu = cpu
        found.times = attach(found.ops, cpu, named if cpu.stamped() else None, found.notes)
        _unknown_operators(paths[files.CPU], found)
    _read_batches(paths, found)
    blocks = _tried(found, paths.get(files.LOG), read_blocks)
    if blocks:
        found.blocks = _of_one_process(paths[files.LOG], blocks, found)
        _to_one_clock(paths[files.LOG], found)
    if not found.times and any(op.depths for op in found.ops):
        _spread(found)
    return found


def _tried(found: RankFiles, path: Path | None, read: Callable[[Path, Notes], T]) -> T | None:
    if path is None:
        return None
    try:
        return read(path, found.notes)
    except limits.TooManyRows:
        raise
    except SourceError as error:
        found.damage.append(error)
        return None


def _graph(paths: Paths, found: RankFiles) -> Graph:
    graph = _tried(found, paths.get(files.PIPELINE), read_pipeline)
    if graph is None:
        graph = _tried(found, paths.get(files.RAW_CSV), read_raw_csv)
    elif not graph.ops:
        found.damage.append(SourceError(f"no operators in `{paths[files.PIPELINE]}`, expected some in op_info"))
    return graph or Graph([], None)


def _read_batches(paths: Paths, found: RankFiles) -> None:
    host, feed = paths.get(files.DEVICE_QUEUE), paths.get(files.ITERATOR)
    found.records = _tried(found, host, _some_records) or []
    found.sink = bool(found.records)
    if not found.records:
        found.records = _tried(found, feed, _some_records) or []
    elif host and feed:
        found.notes.add("two_queue_files", f"`{feed.name}` was left out: `{host.name}` of the same rank counts")
    aicpu, getnext = paths.get(files.AICPU), paths.get(files.GETNEXT)
    found.device = _tried(found, aicpu, lambda path, notes: read_device_side(path, 1_000, notes)) or []
    if not found.device:
        found.device = _tried(found, getnext, lambda path, notes: read_device_side(path, 1, notes)) or []
    elif aicpu and getnext:
        found.notes.add("two_queue_files", f"`{getnext.name}` was left out: `{aicpu.name}` of the same rank counts")


def _some_records(path: Path, notes: Notes) -> list[FetchRecord]:
    records = read_records(path, notes)
    if not records:
        raise SourceError(
            f"no batch in `{path}`, expected lines `type extra batch value time_ms`", "restore the file, or remove it"
        )
    return records


def _unknown_operators(path: Path, found: RankFiles) -> None:
    known = {op.op_id for op in found.ops}
    for number in sorted(found.cpu.ops.keys() - known) if known else []:
        found.notes.count(path, f"CPU of operator {number}, which the graph does not have")


def _of_one_process(path: Path, blocks: list[Block], found: RankFiles) -> list[Block]:
    """The blocks of this rank's graph: of the process that printed most of them."""
    types = {op.op_id: op.op_type.removesuffix("Op") for op in found.ops}
    fitting = [
        block
        for block in blocks
        if not types or all(types.get(op.op_id) == op.op_type.removesuffix("Op") for op in block.ops)
    ]
    found.notes.count(path, "timing block of another dataset graph", len(blocks) - len(fitting))
    if not fitting:
        return []
    (pid, mine), *others = Counter(block.pid for block in fitting).most_common()
    found.pid = pid
    for other, count in others:
        found.notes.add(
            "log_processes", f"`{path.name}`: {count} timing blocks of process {other} left out, {mine} of {pid} used"
        )
    return [block for block in fitting if block.pid == pid]


def _to_one_clock(path: Path, found: RankFiles) -> None:
    stamps = [record.t_ns for record in found.records if record.t_ns is not None]
    if not found.blocks:
        return
    if stamps:
        fit = align([block.wall_ns for block in found.blocks], stamps)
        offset = fit.offset_ns
        if fit.doubtful:
            found.notes.add(
                "log_clock",
                f"`{path.name}`: {len(found.blocks)} timing blocks fit the {len(stamps)} batches in several ways; "
                "their times may be off by a few steps",
            )
    else:
        found.loose, offset = True, found.blocks[0].wall_ns
        found.notes.add(
            "log_clock",
            f"`{path.name}`: no batch has a time, so the timing blocks are placed from the start of the import, "
            "not where the other samples are",
        )
    for block in found.blocks:
        block.wall_ns -= offset


def _spread(found: RankFiles) -> None:
    """Sample times from the nominal interval, where no file has any."""
    if not found.interval_ns:
        found.notes.add("sample_times", "queue samples have neither times nor an interval and were left out")
        return
    start = found.earliest() or 0
    found.times = [start + index * found.interval_ns for index in range(max(len(op.depths) for op in found.ops))]
    found.notes.add(
        "sample_times",
        f"queue samples have no times: spread evenly at the nominal {found.interval_ns // 1_000_000} ms, while "
        "MindSpore's real interval is longer by 5 to 200 %",
    )
