"""Everything that the files of one rank hold. A damaged file is left out, and said; the others are read.

And one saved folder as our own recordings have them: one graph, its samples and its fetches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, TypeVar

from pipeprof.errors import SourceError
from pipeprof.read.minddata import files
from pipeprof.read.minddata.fetches import DeviceFetch, FetchRecord, read_device_side, read_records
from pipeprof.read.minddata.files import LARGEST_MS, Block, align, ratio, read_blocks, read_json, whole_number
from pipeprof.read.minddata.graph import Graph, PipelineOp, read_pipeline, read_raw_csv, unmatched
from pipeprof.read.source.content import listed, mapping
from pipeprof.read.tables.share import Notes
from pipeprof.record import limits
from pipeprof.units import NS_PER_MS

Paths = Mapping[str, Path]

_NEARLY = 0.75  # of the spacing: a reading may come a little early


def read_folder(folder: Path) -> RankFiles:
    """Read the pipeline, CPU and iterator files of a folder; what is missing stays empty.

    Raises SourceError for a file that is there and cannot be read.
    """
    content = RankFiles()
    notes = content.notes
    pipeline = _first(folder, "pipeline_profiling*.json")
    stamps = _first(folder, "minddata_cpu_utilization*.json")
    records = _first(folder, "dataset_iterator_profiling*.txt")
    content.ops = read_pipeline(pipeline, notes).ops if pipeline else []
    content.times = attach(content.ops, read_cpu(stamps, notes), pipeline, notes) if stamps else []
    if pipeline and not stamps:
        for said in unmatched(pipeline, content.ops, 0):
            notes.add("samples", said)
    content.records = read_records(records, notes) if records else []
    return content


def thin_out(data: RankFiles, spacing_ns: int) -> None:
    """Leave samples that are about `spacing_ns` apart, so that each stands for as much time.

    The recorder reads ever more rarely: without this the beginning of a long run would outweigh all of its rest.
    """
    keep: list[int] = []
    for index, time in enumerate(data.times):
        if not keep or time - data.times[keep[-1]] >= spacing_ns * _NEARLY:
            keep.append(index)
    for op in data.ops:
        op.keep(keep)
    data.times = [data.times[index] for index in keep]


def attach(ops: list[PipelineOp], cpu: CpuFile, path: Path | None, notes: Notes) -> list[int]:
    """Give the operators their CPU, and return the times of the samples, which have the same positions in `depths`.

    Samples without a possible time are taken out of both.
    """
    if path is not None:
        for said in unmatched(path, ops, len(cpu.times)):
            notes.add("samples", said)
    keep = cpu.stamped()
    for op in ops:
        op.cpu = cpu.ops.get(op.op_id, [])
        if len(keep) < len(cpu.times):
            op.keep(keep)
    return [time for time in cpu.times if time is not None]


def _first(folder: Path, pattern: str) -> Path | None:
    return next(iter(sorted(folder.glob(pattern))), None)


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

    def said(self) -> list[str]:
        """What was odd in a folder of our own recordings, which have the host from elsewhere."""
        return [message for code, message in self.notes.all() if code != "host_cpu_half"]

    def all_times(self) -> list[int]:
        """Every time in any file, in no order."""
        times = [*self.times, *(time for one in self.device for time in (one.start_ns, one.start_ns + one.wait_ns))]
        times += [start for record in self.records if (start := begin_ns(record, sink=self.sink)) is not None]
        times += [record.t_ns for record in self.records if record.t_ns is not None]
        return times if self.loose else times + [block.wall_ns for block in self.blocks]


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
    content = RankFiles()
    graph = _graph(paths, content)
    content.ops, content.interval_ns = graph.ops, graph.interval_ns
    cpu = _tried(content, paths.get(files.CPU), read_cpu)
    if cpu is not None:
        named = paths.get(files.PIPELINE) or paths.get(files.RAW_CSV)
        content.cpu = cpu
        content.times = attach(content.ops, cpu, named if cpu.stamped() else None, content.notes)
        described = {op.op_id for op in content.ops}
        for number in sorted(cpu.ops.keys() - described) if described else []:
            content.notes.count(paths[files.CPU], f"CPU of operator {number}, which the graph does not have")
    _read_batches(paths, content)
    blocks = _tried(content, paths.get(files.LOG), read_blocks)
    if blocks:
        content.blocks = _of_one_process(paths[files.LOG], blocks, content)
        _to_one_clock(paths[files.LOG], content)
    if not content.times and any(op.depths for op in content.ops):
        _spread(content)
    return content


def _tried(content: RankFiles, path: Path | None, read: Callable[[Path, Notes], T]) -> T | None:
    if path is None:
        return None
    try:
        return read(path, content.notes)
    except limits.TooManyRows:
        raise
    except SourceError as error:
        content.damage.append(error)
        return None


def _graph(paths: Paths, content: RankFiles) -> Graph:
    graph = _tried(content, paths.get(files.PIPELINE), read_pipeline)
    if graph is None:
        graph = _tried(content, paths.get(files.RAW_CSV), read_raw_csv)
    elif not graph.ops:
        content.damage.append(SourceError(f"no operators in `{paths[files.PIPELINE]}`, expected some in op_info"))
    return graph or Graph([], None)


def _read_batches(paths: Paths, content: RankFiles) -> None:
    host, feed = paths.get(files.DEVICE_QUEUE), paths.get(files.ITERATOR)
    content.records = _tried(content, host, _some_records) or []
    content.sink = bool(content.records)
    if not content.records:
        content.records = _tried(content, feed, _some_records) or []
    elif host and feed:
        content.notes.add("two_queue_files", f"`{feed.name}` was left out: `{host.name}` of the same rank counts")
    aicpu, getnext = paths.get(files.AICPU), paths.get(files.GETNEXT)
    content.device = _tried(content, aicpu, lambda path, notes: read_device_side(path, 1_000, notes)) or []
    if not content.device:
        content.device = _tried(content, getnext, lambda path, notes: read_device_side(path, 1, notes)) or []
    elif aicpu and getnext:
        content.notes.add("two_queue_files", f"`{getnext.name}` was left out: `{aicpu.name}` of the same rank counts")


def _some_records(path: Path, notes: Notes) -> list[FetchRecord]:
    records = read_records(path, notes)
    if not records:
        raise SourceError(
            f"no batch in `{path}`, expected lines `type extra batch value time_ms`", "restore the file, or remove it"
        )
    return records


def _of_one_process(path: Path, blocks: list[Block], content: RankFiles) -> list[Block]:
    """The blocks of this rank's graph: of the process that printed most of them."""
    types = {op.op_id: op.op_type.removesuffix("Op") for op in content.ops}
    fitting = [
        block
        for block in blocks
        if not types or all(types.get(op.op_id) == op.op_type.removesuffix("Op") for op in block.ops)
    ]
    content.notes.count(path, "timing block of another dataset graph", len(blocks) - len(fitting))
    if not fitting:
        return []
    (pid, mine), *others = Counter(block.pid for block in fitting).most_common()
    content.pid = pid
    for other, count in others:
        content.notes.add(
            "log_processes", f"`{path.name}`: {count} timing blocks of process {other} left out, {mine} of {pid} used"
        )
    return [block for block in fitting if block.pid == pid]


def _to_one_clock(path: Path, content: RankFiles) -> None:
    stamps = [record.t_ns for record in content.records if record.t_ns is not None]
    if not content.blocks:
        return
    if stamps:
        fit = align([block.wall_ns for block in content.blocks], stamps)
        offset = fit.offset_ns
        if fit.doubtful:
            content.notes.add(
                "log_clock",
                f"`{path.name}`: {len(content.blocks)} timing blocks fit the {len(stamps)} batches in several ways; "
                "their times may be off by a few steps",
            )
    else:
        content.loose, offset = True, content.blocks[0].wall_ns
        content.notes.add(
            "log_clock",
            f"`{path.name}`: no batch has a time, so the timing blocks are placed from the start of the import, "
            "not where the other samples are",
        )
    for block in content.blocks:
        block.wall_ns -= offset


def _spread(content: RankFiles) -> None:
    """Sample times from the nominal interval, where no file has any."""
    if not content.interval_ns:
        content.notes.add("sample_times", "queue samples have neither times nor an interval and were left out")
        return
    start = min(content.all_times(), default=0)
    content.times = [start + index * content.interval_ns for index in range(max(len(op.depths) for op in content.ops))]
    content.notes.add(
        "sample_times",
        f"queue samples have no times: spread evenly at the nominal {content.interval_ns // 1_000_000} ms, while "
        "MindSpore's real interval is longer by 5 to 200 %",
    )


Pair = tuple["float | None", "float | None"]
OTHERS = -1  # op_id of what no operator's thread did
MOST_CORES = 1 << 16  # no machine has more
_MIB = 1 << 20


@dataclass
class CpuFile:
    """Series by sample, as long as the file has them; None where a value is impossible.

    `times` are ns of the monotonic clock. Operators and process in cores, host (user, system, idle) in shares.
    `machine_cores`: logical CPUs of the host; None when the file does not say.
    """

    times: list[int | None]
    ops: dict[int, list[Pair]] = field(default_factory=dict)
    process: list[Pair] = field(default_factory=list)
    host: list[tuple[float | None, float | None, float | None]] = field(default_factory=list)
    rss: list[int | None] = field(default_factory=list)
    used: list[int | None] = field(default_factory=list)
    machine_cores: int | None = None

    def stamped(self) -> list[int]:
        """Positions that have a time."""
        return [index for index, time in enumerate(self.times) if time is not None]


def read_cpu(path: Path, notes: Notes) -> CpuFile:
    """Read a CPU file. Impossible values become None and are counted in `notes`. Raises SourceError as `read_json`."""
    content = read_json(path)
    stamps = [whole_number(stamp, LARGEST_MS) for stamp in listed(content.get("time_stamp"))]
    notes.count(path, "impossible time stamp", stamps.count(None))
    file = CpuFile([None if stamp is None else stamp * NS_PER_MS for stamp in stamps])
    file.machine_cores = whole_number(content.get("cpu_processor_num"), MOST_CORES) or None
    times = [time for time in file.times if time is not None]
    if any(later < earlier for earlier, later in pairwise(times)):
        notes.add("clock", f"time stamps in `{path.name}` go backwards")
    for entry in map(mapping, listed(content.get("op_info"))):
        number = whole_number(entry.get("op_id"))
        if number is None:
            if entry.get("op_id") != OTHERS:
                notes.count(path, "CPU of an operator without an id")
        elif number in file.ops:
            notes.count(path, f"CPU of operator {number} a second time")
        else:
            file.ops[number] = _pairs(path, entry.get("metrics"), f"operator {number}: impossible CPU", notes)
    file.process = _pairs(path, content.get("process_info"), "impossible CPU of the process", notes)
    file.host = _host(path, mapping(content.get("device_info")), len(stamps), notes)
    memory, machine = mapping(content.get("process_memory_info")), mapping(content.get("system_memory_info"))
    file.rss = _bytes(path, memory.get("rss_mbytes"), "impossible resident set", notes)
    file.used = _bytes(path, machine.get("used_sys_memory_mbytes"), "impossible host memory", notes)
    return file


def _pairs(path: Path, metrics: object, what: str, notes: Notes) -> list[Pair]:
    user, system = (_ratios(mapping(metrics).get(name)) for name in ("user_utilization", "sys_utilization"))
    notes.count(path, what, user.count(None) + system.count(None))
    return list(zip(user, system, strict=False))


def _ratios(values: object) -> list[float | None]:
    return [ratio(value) for value in listed(values)]


def _host(
    path: Path, info: Mapping[str, Any], samples: int, notes: Notes
) -> list[tuple[float | None, float | None, float | None]]:
    """Shares of the whole machine by sample.

    MindSpore 2.10 samples twice and every second entry is 0: idle has two entries for each time, user and system end
    in the middle of the run. Idle alone is used then, without the first sample, which has nothing before it.
    """
    idle, user, system = (_ratios(info.get(f"{name}_utilization")) for name in ("idle", "user", "sys"))
    if samples > 1 and len(idle) >= 2 * samples - 1 and not any(idle[1::2]):
        notes.add("host_cpu_half", f"host CPU from half of the samples: every second one in `{path.name}` is 0")
        single = [value if value is None or value <= 1 else None for value in idle[::2]]
        if single[0] == 0:
            single[0] = None
        return [(None, None, value) for value in single]
    impossible = sum(value is None or value > 1 for values in (user, system, idle) for value in values)
    notes.count(path, "impossible CPU of the host", impossible)
    rows = zip_longest(user, system, idle)
    return [tuple(value if value is not None and value <= 1 else None for value in row) for row in rows]  # type: ignore[misc]


def _bytes(path: Path, values: object, what: str, notes: Notes) -> list[int | None]:
    sizes = [
        round(value * _MIB)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < LARGEST_MS
        else None
        for value in listed(values)
    ]
    notes.count(path, what, sizes.count(None))
    return sizes
