"""The whole run as one trace for Perfetto and chrome://tracing: every rank on one clock, in bounded memory.

What becomes a slice: stages, steps and their phases, waits for data, operators, collectives and other intervals.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.compute as pc

from pipeprof.errors import UsageError
from pipeprof.escape import command
from pipeprof.query.engine import Engine
from pipeprof.query.part import Part
from pipeprof.report.timeline import counters as timeline_counters
from pipeprof.report.timeline.clock import Process, aligned, check_stored, numbers_text, stored_ranks, within_steps
from pipeprof.report.timeline.counters import (
    SIDES,
    PipelineNames,
    busy_texts,
    counter_texts,
    counters,
    flow_texts,
    source_counter_texts,
)
from pipeprof.report.timeline.read import Source, batches, distinct, integers, merged
from pipeprof.report.timeline.text import NONE, Bodies, Body, Slices, args, body, quoted, slice_texts
from pipeprof.report.timeline.tracks import COLLECTIVE, FETCH, PHASES, SETUP, STEPS, TRACK, Tracks
from pipeprof.report.words.names import INTERVALS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    import pyarrow as pa
    from numpy.typing import NDArray
    from typing_extensions import Self

    from pipeprof.record.run import Manifest, Run, Share


TABLES = ("stage", "step", "fetch", "op", "span", "collective")
_SHAPES = 160  # characters of shapes that are shown
# Categories by which other programs tell operators from device work; see pipeprof.read.chrome.rows.
_KNOWN = frozenset({"cpu_op", "user_annotation", "python_function", "kernel", "gpu_memcpy", "gpu_memset", "hpu_op"})
_UNNAMED = "(unknown)"
_COLLECTIVE = ("track", "name", "kind", "group_name", "bytes")


class SliceRows:
    """Makes slices of the tables of one rank; one without a time or a duration has NONE for it."""

    def __init__(
        self, files: Callable[[str], Sequence[Share]], tracks: Tracks, bodies: Bodies, names: Callable[[object], str]
    ) -> None:
        self.files, self.tracks, self.bodies = files, tracks, bodies
        self._pipeline = names
        self._ops: dict[tuple[object, ...], Body] = {}
        self._infos: dict[object, dict[str, object]] | None = None

    def sources(self) -> list[Source]:
        """Everything that is a slice. Those of one list share tracks, so they are merged."""
        timed = ("start_ns", "dur_ns")
        steps = ("start_ns", "fp_ns", "bp_ns", "end_ns", "step", "kind", "epoch")
        return [
            Source(self.files("stage"), (*timed, "stage"), self._stages),
            Source(self.files("step"), steps, self._steps),
            Source(self.files("step"), steps, self._phases),
            Source(self.files("fetch"), ("start_ns", "wait_ns", "step", "pipeline_id", "side"), self._fetches),
            Source(self.files("op"), (*timed, "op_id", "step", "track", "side", "exec_id"), self._op_rows),
            Source(self.files("span"), (*timed, "track", "category", "name"), self._spans),
            Source(self.files("collective"), (*timed, *_COLLECTIVE, "step"), self._collectives),
        ]

    def _stages(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(table, ("stage",))
        made = [body("stage", _name(stage)) for (stage,) in keys]
        return self._slices(table, "dur_ns", [(SETUP, "set-up")] * len(made), made, kinds)

    def _steps(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(table, ("kind", "epoch"))
        start = ',"cat":"step","name":"step '
        made = [Body(start, '","args":{' + args(kind=kind, epoch=epoch) + "}}", numbered=True) for kind, epoch in keys]
        dur = pc.subtract(table.column("end_ns"), table.column("start_ns"))
        table = table.append_column("dur_ns", dur)
        return self._slices(table, "dur_ns", [(STEPS, "steps")] * len(made), made, kinds)

    def _phases(self, table: pa.Table) -> Slices:
        """The phases up to FP, up to BP, and the tail; what follows the fetch when BP is not known."""
        both = pc.is_valid(table.column("bp_ns"))
        parts = [
            self._phase(table, INTERVALS["data_wait"], "start_ns", "fp_ns"),
            self._phase(table.filter(both), INTERVALS["forward_backward"], "fp_ns", "bp_ns"),
            self._phase(table.filter(both), INTERVALS["tail"], "bp_ns", "end_ns"),
            self._phase(table.filter(pc.invert(both)), INTERVALS["compute"], "fp_ns", "end_ns"),
        ]
        return Slices.joined(parts)

    def _phase(self, table: pa.Table, name: str, begin: str, end: str) -> Slices:
        table = table.filter(pc.and_(pc.is_valid(table.column(begin)), pc.is_valid(table.column(end))))
        start = integers(table, begin)
        tid, made = self.tracks.number(PHASES, "step phases"), self.bodies.number(body("phase", name, with_step=True))
        same = np.full(len(start), 1, np.int64)
        return Slices(start, integers(table, end) - start, same * tid, same * made, integers(table, "step", NONE), same)

    def _fetches(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(_marked(table), ("pipeline_id", "side", "has_step"))
        made = [
            body("fetch", "wait for a batch", args(pipeline=pipeline), with_step=bool(step))
            for pipeline, _, step in keys
        ]
        return self._slices(table, "wait_ns", [(FETCH, self._source(*key[:2])) for key in keys], made, kinds)

    def _source(self, pipeline: object, side: object) -> str:
        """The track of its waits: the loop's own, and each queue between host and device, apart."""
        of = [] if pipeline is None else [self._pipeline(pipeline)]
        of += [] if side in (None, "iterator") else [SIDES.get(str(side), str(side))]
        return f"data: {' · '.join(of)}" if of else "data"

    def _spans(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(table, ("track", "category", "name"))
        made = [body(str(category or "span"), _name(name)) for _, category, name in keys]
        return self._slices(table, "dur_ns", [(TRACK, _name(track)) for track, _, _ in keys], made, kinds)

    def _collectives(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(_marked(table), (*_COLLECTIVE, "has_step"))
        made = [
            body("collective", _name(name), args(kind=kind, group=group, bytes=moved), with_step=bool(step))
            for _, name, kind, group, moved, step in keys
        ]
        tracks = [(COLLECTIVE, f"collectives: {_name(track)}") for track, *_ in keys]
        return self._slices(table, "dur_ns", tracks, made, kinds)

    def _op_rows(self, table: pa.Table) -> Slices:
        kinds, keys = distinct(_marked(table), ("op_id", "side", "has_step", "track"))
        made = [self._op(*key[:3]) for key in keys]
        return self._slices(table, "dur_ns", [(TRACK, _name(key[3])) for key in keys], made, kinds)

    def _op(self, *key: object) -> Body:
        if key not in self._ops:
            op_id, side, with_step = key
            info = self._info().get(op_id, {})
            name, kind, phase = info.get("name"), info.get("type"), info.get("phase")
            shapes = info.get("in_shapes")
            arguments = args(
                op_id=op_id,
                type=kind if kind != name else None,
                phase=phase if phase != "other" else None,
                in_shapes=None if shapes is None else str(shapes)[:_SHAPES],
            )
            self._ops[key] = body(_category(info, side), _name(name), arguments, with_step=bool(with_step))
        return self._ops[key]

    def _info(self) -> dict[object, dict[str, object]]:
        if self._infos is None:
            columns = ("op_id", "name", "type", "phase", "device", "category", "in_shapes")
            rows = (row for table in batches(self.files("op_info"), columns) for row in table.to_pylist())
            self._infos = {row["op_id"]: row for row in rows}
        return self._infos

    def _slices(
        self,
        table: pa.Table,
        length: str,
        tracks: Sequence[tuple[int, str]],
        made: Sequence[Body],
        kinds: NDArray[np.int64],
    ) -> Slices:
        """One slice per row; `tracks` and `made` by the row's kind."""
        tids = np.array([self.tracks.number(*track) for track in tracks], np.int64)
        numbers = np.array([self.bodies.number(one) for one in made], np.int64)
        number = integers(table, "step", NONE) if "step" in table.column_names else np.full(table.num_rows, NONE)
        start, dur = integers(table, "start_ns", NONE), integers(table, length, NONE)
        order = integers(table, "exec_id") if "exec_id" in table.column_names else np.zeros(table.num_rows, np.int64)
        return Slices(start, dur, tids[kinds], numbers[kinds], number, order)


def _marked(table: pa.Table) -> pa.Table:
    return table.append_column("has_step", pc.is_valid(table.column("step")))


def _name(text: object) -> str:
    return _UNNAMED if text in (None, "") else str(text)


def _category(info: dict[str, object], side: object) -> str:
    """The source's own category where other programs know it, else `kernel` for work of a device, else `cpu_op`."""
    if info.get("category") in _KNOWN:
        return str(info["category"])
    on_device = side == "device" or (side is None and info.get("device") not in (None, "CPU", "host"))
    return "kernel" if on_device else "cpu_op"


_GZIP = 31  # window of 32 KiB, with gzip's header and checksum
_LEVEL = 1  # level 6 takes three times as long for a file 20 % smaller


class Sink:
    """An object of the Trace Event Format. Use it in a `with`: the file appears when the block ends without an error.

    `pipeprof.ranks` in it says which process is which rank: what reads the trace back needs it.
    Raises UsageError when the file cannot be written.
    """

    def __init__(self, path: Path, base_ns: int, about: dict[str, str], processes: Sequence[Process]) -> None:
        self.path = path
        self.bytes = 0
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}")
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP) if path.suffix == ".gz" else None
        other = ",".join(f"{quoted(key)}:{quoted(value)}" for key, value in about.items())
        ranks = ",".join(_rank(process) for process in processes)
        self._head = (
            f'{{"displayTimeUnit":"ms","baseTimeNanoseconds":"{base_ns}","otherData":{{{other}}},'
            f'"pipeprof":{{"ranks":[{ranks}]}},"traceEvents":[\n'
        )
        self._empty = True
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._file = self._temporary.open("wb")
        except OSError as error:
            raise self._explained(error) from error
        try:
            self._put(self._head.encode())
        except UsageError:
            self._discard()
            raise
        return self

    def write(self, text: bytes | memoryview) -> None:
        """Add events; each begins with a comma and a line break."""
        if not len(text):
            return
        if self._empty:
            text, self._empty = memoryview(text)[2:], False
        self._put(text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._discard()

    def _discard(self) -> None:
        """What is not whole goes, on a full disk too, where closing fails again; after a renaming nothing is left."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        self._temporary.unlink(missing_ok=True)

    def _finish(self) -> None:
        self._put(b"\n]}\n")
        try:
            if self._file is not None:
                self._file.write(self._packer.flush() if self._packer else b"")
                self._file.close()
            self._temporary.replace(self.path)
        except OSError as error:
            raise self._explained(error) from error

    def _put(self, text: bytes | memoryview) -> None:
        self.bytes += len(text)
        try:
            if self._file is not None:
                self._file.write(self._packer.compress(text) if self._packer else text)
        except OSError as error:
            raise self._explained(error) from error

    def _explained(self, error: OSError) -> UsageError:
        return UsageError(f"cannot write `{self.path}`: {error.strerror}", "choose another file with -o")


def _rank(process: Process) -> str:
    return f'{{"pid":{process.pid},"rep":{process.rep},"rank":{process.rank},"host":{quoted(process.host)}}}'


BUSY_POINTS = 200  # about, of a device; at least one for each step
_TABLES = (*TABLES, *timeline_counters.TABLES)


class Choice(NamedTuple):
    """What is drawn: steps from the first up to, and without, the second; ranks; a repetition. None: all."""

    steps: tuple[int | None, int | None] | None = None
    ranks: frozenset[int] | None = None
    rep: int | None = None


class Written(NamedTuple):
    """What a trace holds: events, of how many ranks and repetitions, bytes before packing, rows without a time."""

    events: int
    ranks: int
    reps: int
    bytes: int
    left_out: int


def write(run: Run, output: Path, choice: Choice, progress: Callable[[str], None] = lambda _text: None) -> Written:
    """Write the trace; a name that ends in `.gz` is packed. The file appears when it is whole.

    Raises UsageError when nothing is chosen or the file cannot be written, RunError when a stored file is damaged.
    """
    base, processes = chosen_processes(run, choice)
    writer = _Writer(run, progress)
    with Sink(output, base, _about(run.manifest), processes) as sink:
        for process in processes:
            writer.write(process, sink)
    ranks, reps = ({getattr(process, part) for process in processes} for part in ("rank", "rep"))
    return Written(writer.events, len(ranks), len(reps), sink.bytes, writer.left_out)


def chosen_processes(run: Run, choice: Choice) -> tuple[int, list[Process]]:
    """Wall-clock zero of the trace (ns), and the ranks that are drawn. Raises UsageError when there are none."""
    stored = stored_ranks(run, _TABLES)
    if not stored:
        raise UsageError(f"nothing to draw: `{run.path}` has no tables with times", "see `pipeprof report` for why")
    check_stored("repetition", () if choice.rep is None else (choice.rep,), (rep for rep, _ in stored))
    check_stored("rank", choice.ranks or (), (rank for _, rank in stored))
    chosen = [
        (rep, rank)
        for rep, rank in stored
        if choice.rep in (None, rep) and (choice.ranks is None or rank in choice.ranks)
    ]
    if not chosen:
        ranks = numbers_text(rank for rep, rank in stored if rep == choice.rep)
        raise UsageError(f"repetition {choice.rep} has none of these ranks: it has {ranks}", "choose among these")
    base, processes = aligned(run.manifest, chosen)
    if choice.steps is None:
        return base, processes
    with Engine.open(run) as engine:
        return base, within_steps(processes, engine, choice.steps)


def _about(manifest: Manifest) -> dict[str, str]:
    return {
        "producer": f"pipeprof {manifest.pipeprof_version}",
        "run_id": manifest.run_id,
        "state": manifest.state,
        "command": command(manifest.command),
    }


class _Writer:
    def __init__(self, run: Run, progress: Callable[[str], None]) -> None:
        self.run = run
        self.progress = progress
        self.events = 0
        self.left_out = 0

    def write(self, process: Process, sink: Sink) -> None:
        def files(table: str) -> Sequence[Share]:
            return self.run.shares(table, process.rep, process.rank)

        tracks, names = Tracks(process), PipelineNames(files)
        sink.write(tracks.described())
        self._slices(process, sink, tracks, SliceRows(files, tracks, Bodies(), names.pipeline))
        for count, text in flow_texts(process, files("flow"), tracks):
            sink.write(tracks.described())
            self._put(process, sink, count, text)
        for counter in counters(names):
            for count, text in counter_texts(process, files(counter.table), counter):
                self._put(process, sink, count, text)
        for count, text in source_counter_texts(process, files("counter")):
            self._put(process, sink, count, text)
        if files("op"):
            with Engine.open(self.run, lazily=True, part=Part.of_rank(process.rep, process.rank)) as engine:
                busy = engine.rows("op/busy_curve", rep=process.rep, rank=process.rank, points=BUSY_POINTS)
            for count, text in busy_texts(process, busy):
                self._put(process, sink, count, text)

    def _slices(self, process: Process, sink: Sink, tracks: Tracks, rows: SliceRows) -> None:
        for part in merged(rows.sources(), process.first_ns, process.last_ns, self._leave_out):
            if not len(part.start):
                continue
            apart = tracks.apart(part)
            sink.write(tracks.described())
            for text in slice_texts(process.pid, apart._replace(start=apart.start + process.offset_ns), rows.bodies):
                sink.write(text)
            self._put(process, sink, len(part.start), memoryview(b""))

    def _leave_out(self, rows: int) -> None:
        self.left_out += rows

    def _put(self, process: Process, sink: Sink, count: int, text: memoryview) -> None:
        sink.write(text)
        self.events += count
        self.progress(f"{process.title}: {self.events:,} events")
