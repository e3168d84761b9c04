"""The whole run as one trace for Perfetto and chrome://tracing: every rank on one clock, in bounded memory."""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import IO, TYPE_CHECKING, NamedTuple

from pipeprof.errors import UsageError
from pipeprof.escape import command
from pipeprof.query.engine import Engine
from pipeprof.query.part import Part
from pipeprof.report.timeline import counters as timeline_counters
from pipeprof.report.timeline import slices as timeline_slices
from pipeprof.report.timeline.clock import Process, aligned, check_stored, numbers_text, stored_ranks, within_steps
from pipeprof.report.timeline.counters import (
    PipelineNames,
    busy_texts,
    counter_texts,
    counters,
    flow_texts,
    source_counter_texts,
)
from pipeprof.report.timeline.read import merged
from pipeprof.report.timeline.slices import SliceRows
from pipeprof.report.timeline.text import Bodies, quoted, slice_texts
from pipeprof.report.timeline.tracks import Tracks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from pipeprof.record.run import Manifest, Run, Share

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
_TABLES = (*timeline_slices.TABLES, *timeline_counters.TABLES)


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
