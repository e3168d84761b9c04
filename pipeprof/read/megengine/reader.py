"""A whole import: static-graph profiles, timelines, logs of load_and_run, and memory files, into a run.

Memory files of MegEngine: lifetimes of tensors, and the plan of a static graph, to the rank of their process.

memory_flow.svg has one rectangle per tensor, from the time it was produced to its release. The attributes of the
writer's own namespace hold what the picture shows: `tag:address` (hex), `tag:size` as `3MB 12KB 5B `, `tag:produced`,
`tag:erased` and `tag:duration` as `1s 2ms 3us 4ns `. Values are not escaped, so the file may be no XML; it is read as
text. Source: MegEngine's `imperative/src/impl/profiler/memory_chunk.cpp`.

StaticMemoryInfo.json (`--get-static-mem-info DIR`) has `chunk`: id -> type (static_mem, weight_mem), time_begin and
time_end (positions in the order of execution), and logical addresses; `opr`: id -> name. Every value is text. There
are no clock times: positions stand in their place.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from pathlib import Path

import msgspec
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeprof.errors import SourceError
from pipeprof.read.megengine import files
from pipeprof.read.megengine.files import MEMORY_FLOW, STATIC_MEMORY, FileRows, by_pid, write
from pipeprof.read.megengine.load_and_run import read_log_steps
from pipeprof.read.megengine.profile import read_profile
from pipeprof.read.megengine.profile_rows import Tables
from pipeprof.read.megengine.timeline import add_timelines
from pipeprof.read.source.content import Content, text
from pipeprof.read.source.json_stream import Scan, of_map
from pipeprof.read.source.numbers import LARGEST, integer
from pipeprof.read.tables.rows import Rows
from pipeprof.read.tables.share import Damage, count, decide, leave_out, say_problems
from pipeprof.read.tables.writer import TableWriter
from pipeprof.record import limits, store
from pipeprof.record.run import Rank, Rep, Run
from pipeprof.record.text import reachable
from pipeprof.units import format_count

KIND = "megengine"
WHAT = (
    "MegEngine profiles (static-graph JSON, chrome timelines, memory_flow.svg, StaticMemoryInfo.json) and logs of "
    "load_and_run"
)

_MISSING = {
    "step": "no step() of MegEngine's profiler is in a timeline; a static-graph profile has one iteration",
    "op": "no file with operators",
    "queue": "MegEngine's files have no dataset queues",
    "op_service": "MegEngine's files have no dataset operators",
    "memory": "no timeline with memory samples (sample_rate)",
    "cpu": "MegEngine's files have no CPU samples",
}


def recognise(path: Path) -> bool:
    """Whether a file is one of these, by its content. Raises SourceError when it cannot be read."""
    return files.identify(path) is not None


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """Read the files into a run and fill in its manifest, which is not saved.

    Each static-graph profile is a repetition (such a file holds one iteration); without one, each timeline is a rank;
    without either, each log of load_and_run is a repetition. Memory files go beside the first of them. Raises
    SourceError when nothing usable is in any file.
    """
    recognised = [(files.identify(path), path) for path in paths]
    profiles = [path for kind, path in recognised if kind == files.PROFILE]
    timelines = sorted((path for kind, path in recognised if kind == files.TIMELINE), key=by_pid)
    logs = [path for kind, path in recognised if kind == files.LOG]
    others = [(kind, path) for kind, path in recognised if kind in (files.MEMORY_FLOW, files.STATIC_MEMORY)]
    damage = [
        SourceError(f"`{path}` is a footprint dump: it has no times", "record them with `load_and_run --profile FILE`")
        for kind, path in recognised
        if kind == files.FOOTPRINT
    ]
    if profiles:
        _each_a_repetition(profiles, run, progress, damage)
        leave_out(run.manifest, timelines, "a static-graph profile was read; import the timelines by themselves")
    elif timelines:
        add_timelines(timelines, run, progress, damage)
    else:
        _each_log_a_repetition(logs, run, progress, damage)
    if profiles or timelines:
        leave_out(run.manifest, logs, "a profile was read; import the logs by themselves")
    add_beside(others, run, progress, damage)
    if not run.manifest.tables:
        raise damage[0] if damage else _empty(paths, timelines)
    run.manifest.reps = run.manifest.reps or [_rep(0)]
    run.manifest.options["kinds"] = sorted({f"MegEngine {kind}" for kind, _ in recognised if kind})
    decide(run.manifest, [Damage(error.message, error.hint) for error in damage], _MISSING)


def _each_a_repetition(
    profiles: Sequence[Path], run: Run, progress: Callable[[str], None], damage: list[SourceError]
) -> None:
    for path in profiles:
        rep = len(run.manifest.reps)
        progress(f"reading {path.name}")
        try:
            profile = read_profile(path)
        except SourceError as error:
            damage.append(error)
            continue
        if profile.damage is not None:
            damage.append(profile.damage)
        tables = Tables(profile)
        progress(f"writing the tables of {path.name}")
        for table, pieces in (("op", tables.op()), ("op_info", tables.op_info()), ("allocation", tables.allocation())):
            with TableWriter(run, table, rep, 0) as out:
                for piece in pieces:
                    out.add(piece)
            count(run.manifest, table, out.rows)
        if profile.compat:
            run.manifest.warn("time_unit", _UNIT, rep=rep)
        say_problems(run.manifest, {**profile.problems, **tables.problems}, rep, 0)
        run.manifest.options["profile"] = "static graph; times in seconds"
        run.manifest.reps.append(_rep(rep))


_UNIT = (
    "this profile is of MegEngine 1.0 to 1.2, which counted in milliseconds; its times are taken as seconds here, "
    "as profile_analyze takes them"
)


def _each_log_a_repetition(
    logs: Sequence[Path], run: Run, progress: Callable[[str], None], damage: list[SourceError]
) -> None:
    checks: list[dict[str, object]] = []
    for path in logs:
        rep = len(run.manifest.reps)
        progress(f"reading {path.name}")
        try:
            outcome, log_checks = read_log_steps(path)
        except SourceError as error:
            damage.append(error)
            continue
        write(outcome, run, rep, 0, damage)
        checks += [{"file": path.name, "rep": rep, **check} for check in log_checks]
        run.manifest.reps.append(_rep(rep, outcome.end_ns, files.LOG))
    if checks:
        run.manifest.options["load_and_run"] = checks


def _rep(number: int, end: int | None = None, evidence: str | None = None) -> Rep:
    rank = Rank(rank=0, pid=0, host="", zero_realtime_ns=0, zero_monotonic_ns=0, step_evidence=evidence)
    return Rep(rep=number, zero_realtime_ns=0, zero_monotonic_ns=0, dur_ns=end, ranks=[rank])


def _empty(paths: Sequence[Path], timelines: Sequence[Path]) -> SourceError:
    if timelines:
        return SourceError(
            f"`{timelines[0]}` is a chrome timeline without events that can be kept, not a static-graph profile",
            "for operator tables record one with `load_and_run --profile FILE`; a timeline opens in ui.perfetto.dev",
        )
    return SourceError(
        f"nothing to import: {format_count(len(paths), 'file')} without a time", "give the profiler's files"
    )


_CHUNK = 1 << 20
_LONGEST = 1 << 18  # characters of one rectangle
_RECT = re.compile(r"<rect\b")
_TAG = re.compile(r'\btag:(type|name|address|size|produced|erased|duration|group)\s*=\s*"([^"]*)"')
_LONGEST_NAME = 1000
_PART = re.compile(r"([0-9]{1,20})\s*([A-Za-z]+)")
_TIMES = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_SIZES = {"TB": 1 << 40, "GB": 1 << 30, "MB": 1 << 20, "KB": 1 << 10, "B": 1}


def read_memory_flow(path: Path, first_op: int = 0, later_ns: int = 0) -> FileRows:
    """Rows of `allocation`, with numbers of operators from `first_op` on, and times moved by `later_ns`.

    Raises SourceError when no tensor is in the file.
    """
    out = FileRows(Rows(0, 0, first_op, most=limits.most_imported_rows(in_memory=True)))
    for rectangle in _rectangles(path):
        tags = dict(_TAG.findall(rectangle))
        if tags.get("type") == "tensor":
            _add_tensor(out, tags, later_ns)
        elif "size" in tags:
            out.problems["rectangles that are not tensors"] += 1
    if not out.tables.rows.get("allocation"):
        raise SourceError(f"no tensor with a time in `{path}`", "was it written to the end?")
    return out


def _add_tensor(out: FileRows, tags: dict[str, str], later_ns: int) -> None:
    produced, size = _sum(tags.get("produced", ""), _TIMES), _sum(tags.get("size", ""), _SIZES)
    released, lived = _sum(tags.get("erased", ""), _TIMES), _sum(tags.get("duration", ""), _TIMES)
    if produced is None:
        out.problems["tensors without a time"] += 1
        return
    if size is None and tags.get("size"):
        out.problems["sizes of no known unit, or too large: these tensors have none"] += 1
    if released is not None and released < produced:
        released = None  # one that was never released has an undefined end
    if released is None and lived and tags.get("erased") is None:
        released = produced + lived
    out.end_ns = max(out.end_ns, (released or produced) + later_ns)
    out.tables.add(
        "allocation", address=_address(tags.get("address", "")), bytes=size, produced_ns=produced + later_ns,
        released_ns=None if released is None else released + later_ns, op_id=_maker(out, tags),
    )  # fmt: skip


def _maker(out: FileRows, tags: dict[str, str]) -> int | None:
    """What a tensor is called, for want of the name of the operator that made it; else that operator's number."""
    name = unescape(tags.get("name", "")).strip()[:_LONGEST_NAME]
    if not name and tags.get("group"):
        name = f"operator {tags['group'][:_LONGEST_NAME]}"
    return out.tables.op_id(name, "other") if name else None


def _rectangles(path: Path) -> Iterator[str]:
    """Text from one `<rect` to the next, in bounded memory."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with Content(path) as file:
        rest = ""
        while block := file.read(_CHUNK):
            pieces = _RECT.split(rest + decoder.decode(block))
            for piece in pieces[:-1]:
                yield piece[:_LONGEST]
            rest = "<rect" + pieces[-1][:_LONGEST] if len(pieces) > 1 else pieces[-1][-_LONGEST:]
        if rest.startswith("<rect"):
            yield rest


def _sum(text: str, units: dict[str, int]) -> int | None:
    """`3MB 12KB 5B ` as a number; None when it is something else or does not fit."""
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip() or any(unit not in units for _, unit in parts):
        return None
    total = sum(int(number) * units[unit] for number, unit in parts)
    return total if total < LARGEST else None


def _address(text: str) -> int | None:
    try:
        value = int(text, 16)
    except ValueError:
        return None
    return value if 0 <= value < LARGEST else None


class _Chunk(msgspec.Struct):
    time_begin: str | int | None = None
    time_end: str | int | None = None
    logic_addr_begin: str | int | None = None
    logic_addr_end: str | int | None = None


class _Opr(msgspec.Struct):
    id: str | int | None = None
    name: str | None = None


_CHUNKS, _OPRS = of_map(_Chunk), of_map(_Opr)


def read_static_memory(path: Path) -> FileRows:
    """Rows of `allocation` (times are positions in the order of execution) and `op_info`.

    Raises SourceError when no chunk can be read.
    """
    out = FileRows()
    out.problems["memory plan without clock times: positions in the order of execution stand in their place"] += 1
    with Content(path) as file:
        scan = Scan(file, path)
        try:
            _read(scan, out)
        except SourceError as error:
            out.damage = error
    if not out.tables.rows.get("allocation"):
        raise out.damage or SourceError(f"no memory chunk in `{path}`", "was it written to the end?")
    out.problems += scan.problems
    return out


def _read(scan: Scan, out: FileRows) -> None:
    for key in scan.members():
        if key == "chunk":
            for batch in scan.maps(*_CHUNKS):
                for chunk in batch.values():
                    _add_chunk(out, chunk)
        elif key == "opr":
            for batch in scan.maps(*_OPRS):
                for key_of, opr in batch.items():
                    number = _number(opr.id if opr.id is not None else key_of)
                    if number is not None:
                        out.tables.add("op_info", op_id=number, name=opr.name, source_id=str(number))
        else:
            scan.skip()


def _add_chunk(out: FileRows, chunk: _Chunk) -> None:
    begin, end = _number(chunk.logic_addr_begin), _number(chunk.logic_addr_end)
    produced, released = _number(chunk.time_begin), _number(chunk.time_end)
    if begin is None or end is None or end < begin or produced is None:
        out.problems["chunks without an address or a time"] += 1
        return
    out.tables.add("allocation", address=begin, bytes=end - begin, produced_ns=produced, released_ns=released)


def _number(value: str | int | None) -> int | None:
    return integer(text(value))


def add_beside(
    files: Sequence[tuple[str | None, Path]], run: Run, progress: Callable[[str], None], damage: list[SourceError]
) -> None:
    """Add memory files to repetition 0: to the rank with the process number of their names, else to the next one."""
    reps = run.manifest.reps
    ranks = {rank.pid: rank.rank for rank in reps[0].ranks if rank.pid} if reps else {}
    following = {MEMORY_FLOW: 0, STATIC_MEMORY: 0}
    for kind, path in sorted(files, key=lambda item: by_pid(item[1])):
        if kind is None:
            continue
        progress(f"reading {path.name}")
        pid = by_pid(path)[0]
        if ranks and pid and pid not in ranks:
            leave_out(run.manifest, [path], f"process {pid} has no timeline here; import it by itself")
            continue
        rank = ranks.get(pid, following[kind])
        following[kind] = rank + 1
        if store.partition(run, "allocation", 0, rank).exists():
            leave_out(run.manifest, [path], "the rank has the lifetimes of another file already")
            continue
        try:
            _add_file(kind, path, run, rank, damage)
        except SourceError as error:
            damage.append(error)


def _add_file(kind: str, path: Path, run: Run, rank: int, damage: list[SourceError]) -> None:
    """One file. Its operators come behind those that the rank has."""
    op_info = store.partition(run, "op_info", 0, rank) / store.part_name(0)
    first = 0
    if op_info.exists():
        ids = pq.read_table(reachable(op_info), columns=["op_id"], partitioning=None)["op_id"]
        first = pc.max(ids).as_py() + 1
    if kind == MEMORY_FLOW:
        outcome = read_memory_flow(path, first, _later(run, rank))
    else:
        outcome = read_static_memory(path)
        if op_info.exists():
            outcome.tables.rows.pop("op_info", None)  # of the same graph, and no lifetime refers to them
    write(outcome, run, 0, rank, damage, part=int(op_info.exists()))


def _later(run: Run, rank: int) -> int:
    """Time in ns that a process's recording began after the first one."""
    for rep in run.manifest.reps[:1]:
        for entry in rep.ranks:
            if entry.rank == rank and entry.zero_realtime_ns:
                return entry.zero_realtime_ns - rep.zero_realtime_ns
    return 0
