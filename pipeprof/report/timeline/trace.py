"""The whole run as one trace for Perfetto and chrome://tracing: every rank on one clock, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
from pipeprof.report.timeline.sink import Sink
from pipeprof.report.timeline.slices import SliceRows
from pipeprof.report.timeline.text import Bodies, slice_texts
from pipeprof.report.timeline.tracks import Tracks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.record.run import Manifest, Run, Share

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
