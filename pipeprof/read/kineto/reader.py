"""A whole import: the traces of all ranks, into a run."""

from __future__ import annotations

import gc
import re
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.errors import SourceError
from pipeprof.read.kineto.container import Trace, open_bytes
from pipeprof.read.kineto.gather import Gathered
from pipeprof.read.kineto.spill import Spill
from pipeprof.read.kineto.steps import Steps
from pipeprof.read.kineto.tables import RankTables, shifted
from pipeprof.record.run import NotMeasured, Rank, Rep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pipeprof.record.run import Manifest, Run

KIND = "kineto"
WHAT = "a chrome trace of torch.profiler or a relative of it (*.pt.trace.json, trace_view.json, also .gz)"
_HEAD = 1 << 16
_PROGRESS_EVENTS = 50_000
_KINETO = re.compile(
    rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:'
    rb'|"cat"\s*:\s*"(?:cpu_op|python_function|user_annotation|cuda_runtime|kernel|gpu_memcpy)"'
)
_TRACE_VIEW = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|python_function|user_annotation|async_npu|HostToDevice)"|"Fwd thread id"'
    rb'|"name"\s*:\s*"(?:CANN|Ascend Hardware|Overlap Analysis|CPU OP|Scope Layer)"'
)
_NAMED_RANK = re.compile(r"rank[_=-]?([0-9]{1,6})")


class _Read(NamedTuple):
    path: Path
    trace: Trace
    found: Gathered

    @property
    def base_ns(self) -> int:
        return self.trace.header.base_ns

    @property
    def first(self) -> int:
        return self.base_ns + self.found.first

    @property
    def last(self) -> int:
        return self.base_ns + self.found.last


def recognise(path: Path) -> bool:
    """Whether a file is such a trace, by its beginning. Raises SourceError when it cannot be read."""
    with open_bytes(path) as file:
        try:
            head = file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n")
        except (OSError, EOFError, ValueError) as error:
            raise SourceError(f"cannot read `{path}`: {error}", "copy the file again") from error
    if head[:1] == b"{":
        return b'"traceEvents"' in head and _KINETO.search(head) is not None
    return head[:1] == b"[" and b'"ph"' in head and _TRACE_VIEW.search(head) is not None


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """Read traces into repetition 0 of a run and fill in its manifest, which is not saved.

    Traces of one rank must follow each other in time. Raises SourceError when they overlap, when a file has no events,
    or when no event has a time.
    """
    with ExitStack() as exits:
        exits.enter_context(_without_collector())
        read = []
        for number, path in enumerate(paths):
            spill = exits.enter_context(Spill(run.path / f".kineto-{number}.tmp"))
            read.append(_gather(path, spill, progress))
        _write(read, run, progress)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Millions of small tuples and no cycles: the cyclic collector would only take time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _gather(path: Path, spill: Spill, progress: Callable[[str], None]) -> _Read:
    trace, found = Trace(path), Gathered(spill)
    told = 0
    for batch in trace.batches():
        found.add(batch)
        if found.events >= told + _PROGRESS_EVENTS:
            told = found.events
            progress(f"{path.name}: {found.events:,} events read")
    spill.finish()
    found.launches.finish(spill)
    return _Read(path, trace, found)


def _write(read: Sequence[_Read], run: Run, progress: Callable[[str], None]) -> None:
    timed = [one for one in read if one.found.first <= one.found.last]
    if not timed:
        damage = next((one.trace.damage[0] for one in read if one.trace.damage), "no event has a time")
        raise SourceError(
            f"nothing to import in `{read[0].path}`: {damage}", "export the trace again, and copy it as a whole"
        )
    zero = min(one.first for one in timed)
    if not (-(2**62) < zero < 2**62 and max(one.last for one in timed) - zero < 2**62):
        raise SourceError(
            f"the times in `{timed[0].path}` do not fit 64 bits of ns", "check the trace's `baseTimeNanoseconds`"
        )
    rep = Rep(rep=0, zero_realtime_ns=zero, zero_monotonic_ns=0, dur_ns=max(one.last for one in timed) - zero)
    for rank, mine in sorted(_by_rank(timed).items()):
        progress(f"rank {rank}: writing its tables")
        _write_rank(run, rank, mine, zero)
        rep.ranks.append(
            Rank(
                rank=rank, pid=0, host=str(mine[0].trace.header.fields.get("host_name") or ""),
                zero_realtime_ns=zero, zero_monotonic_ns=0,
                step_evidence="ProfilerStep" if any(one.found.steps for one in mine) else None,
            )
        )  # fmt: skip
    run.manifest.reps = [rep]
    _decide(run.manifest, read)


def _by_rank(read: Sequence[_Read]) -> dict[int, list[_Read]]:
    """The files of each rank by time. The rank is what the trace says, else what its name or folder says, else 0."""
    ranks: dict[int, list[_Read]] = {}
    for one in sorted(read, key=lambda one: one.first):
        rank = one.trace.header.rank
        if rank is None:
            named = _NAMED_RANK.findall("/".join(one.path.parts[-3:]))
            rank = int(named[-1]) if named else 0
        mine = ranks.setdefault(rank, [])
        if mine and one.first < mine[-1].last:
            raise SourceError(
                f"two traces of rank {rank} overlap in time: `{mine[-1].path}` and `{one.path}`",
                "import them one by one, or name their folders rank_0, rank_1, ...",
            )
        mine.append(one)
    return ranks


def _write_rank(run: Run, rank: int, read: Sequence[_Read], zero: int) -> None:
    names: list[str] = []
    steps, loads = [], []
    for one in read:
        offset, first = one.base_ns - zero, len(names)
        names += one.found.texts.values
        steps += shifted(one.found.steps, offset)
        loads += [mark._replace(number=mark.number + first) for mark in shifted(one.found.loads, offset)]
    device_rows = any(one.found.launches.count for one in read)
    with RankTables(run, rank, Steps(steps, loads, names), device_rows=device_rows) as tables:
        for one in read:
            tables.add(one.found, one.base_ns - zero)
        tables.finish()
    for table, count in tables.counts.items():
        run.manifest.tables[table] = run.manifest.tables.get(table, 0) + count


def _decide(manifest: Manifest, read: Sequence[_Read]) -> None:
    """State, warnings, and what the traces do not hold."""
    manifest.state, manifest.reason = "complete", None
    for one in read:
        trace, found = one.trace, one.found
        if trace.damage:
            manifest.state = "partial"
            more = f" (and {trace.damaged - 1} more)" if trace.damaged > 1 else ""
            manifest.reason = manifest.reason or f"`{one.path.name}` is damaged: {trace.damage[0]}{more}"
            manifest.warn("damaged_file", f"`{one.path}`: {'; '.join(trace.damage)}{more}")
        if trace.mended:
            what = "NaN, bytes that are not UTF-8, or arguments of an unexpected form"
            manifest.warn("mended", f"`{one.path.name}`: {trace.mended} events had {what}; these were left out")
        if found.dropped:
            shown = ", ".join(f"{count} with {what}" for what, count in sorted(found.dropped.items())[:10])
            manifest.warn("left_out", f"`{one.path.name}`: events left out: {shown}")
        if found.infos.left_out or found.texts.left_out:
            manifest.state = "partial"
            manifest.reason = (
                manifest.reason or f"`{one.path.name}` has too many different names: the rest is `(other)`"
            )
        if found.overlaps:
            manifest.warn(
                "overlaps",
                f"`{one.path.name}`: {found.overlaps} events overlap another of their thread only partly: "
                "own times of what is above both may be too small or negative",
            )
        if found.launches.unlinked:
            manifest.warn(
                "links",
                f"`{one.path.name}`: {found.launches.unlinked} device events without the call that launched them",
            )
    why = {
        "op": "the traces have no operators",
        "step": "no event is named ProfilerStep#N: call step() of the profiler after every batch",
        "fetch": "no wait for a DataLoader is in the traces",
        "memory": "the profiler ran without profile_memory",
        "stack": "the profiler ran without stacks, or without the verbose experimental config",
        "queue": "a trace has no queues of the dataset pipeline",
        "cpu": "a trace has no CPU samples",
    }
    manifest.tables = {table: count for table, count in manifest.tables.items() if count}
    manifest.not_measured = [
        NotMeasured(what=table, why=text) for table, text in why.items() if not manifest.tables.get(table)
    ]
