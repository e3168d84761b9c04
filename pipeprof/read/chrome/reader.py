"""A whole import: the traces of all ranks, into a run.

The programs whose traces are read here: each declares its kind, how its files begin, and its dialect.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pipeprof.errors import SourceError
from pipeprof.read.chrome import passes
from pipeprof.read.chrome.container import LARGEST_HEADER
from pipeprof.read.chrome.dialect import API, LINES, PLANES, RECORDS, TORCH, Dialect, pattern
from pipeprof.read.chrome.passes import File, Half, Written, read_file, write_rank
from pipeprof.read.chrome.xplane_wire import is_space
from pipeprof.read.source.content import Content
from pipeprof.read.tables.ranks import as_nodes_see, halfway, spread
from pipeprof.read.tables.share import count, note_missing, size_of
from pipeprof.record.note import note
from pipeprof.record.run import Manifest, Rank, Rep, Run

KIND = "kineto"
_HEAD = 1 << 16
_LIST = b'"traceEvents"'
_KINETO = re.compile(
    rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:'
    rb'|"cat"\s*:\s*"(?:cpu_op|python_function|user_annotation|cuda_runtime|kernel|gpu_memcpy)"'
)
_OURS = re.compile(rb'"pipeprof"\s*:\s*\{\s*"ranks"\s*:\s*\[')
_TRACE_VIEW = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|python_function|user_annotation|async_npu|HostToDevice)"|"Fwd thread id"'
    rb'|"name"\s*:\s*"(?:CANN|Ascend Hardware|Overlap Analysis|CPU OP|Scope Layer)"'
    rb'|"pid"\s*:\s*"(?:CPU|CUDA) functions"'
)
_OTHER_TORCH = "2.11 or earlier, or a relative"

_MISSING = {
    "op": "the traces have no operators",
    "step": "no event is named as a step: call step() of the profiler after every batch, or name them with --step",
    "fetch": "no wait for a DataLoader is in the traces",
    "memory": "the profiler ran without profile_memory",
    "stack": "the profiler ran without stacks, or without the verbose experimental config",
    "queue": "a trace has no queues of the dataset pipeline",
    "cpu": "a trace has no CPU samples",
}
_MISSING_OF_OTHERS = {
    "step": "no event is named as a step: name them with --step PATTERN",
    "memory": "such a trace has no memory",
    "stack": "such a trace has no call stacks",
}


def is_torch(file: Content) -> bool:
    """Whether a file is a trace of torch's or of a relative, by its beginning. Raises SourceError as `Content`."""
    head = file.read(_HEAD).lstrip(b" \t\r\n")
    if head[:1] == b"{":
        return (_KINETO.search(head) is not None and _has_events(head, file)) or _OURS.search(head) is not None
    return head[:1] == b"[" and b'"ph"' in head and _TRACE_VIEW.search(head) is not None


def _has_events(head: bytes, file: Content) -> bool:
    """Whether `traceEvents` is in the head or behind it: the header of a large job lists all its process groups."""
    read = len(head)
    while _LIST not in head:
        more = file.read(_HEAD) if read < LARGEST_HEADER else b""
        if not more:
            return False
        head, read = head[-len(_LIST) :] + more, read + len(more)
    return True


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None], dialect: Dialect = TORCH) -> None:
    """Read traces of a dialect into a run and fill in its manifest, which is not saved.

    A trace that `pipeprof timeline` wrote has its repetitions and ranks again; any other is a rank of repetition 0.
    Traces of one rank must follow each other in time. Raises SourceError when they overlap, when a file has no events,
    or when no event has a time.
    """
    dialect = replace(dialect, step=pattern(run.manifest.options.get("step_pattern")))
    with halfway(run) as folder:
        files = [File(as_nodes_see(path), folder, dialect) for path in paths]
        names = [path.name for path in paths]
        halves = spread(read_file, files, [size_of(path) for path in paths], names, progress)
        read = [half._replace(path=path) for path, mine in zip(paths, halves, strict=True) for half in mine]
        _write(read, run, progress)


def _write(read: Sequence[Half], run: Run, progress: Callable[[str], None]) -> None:
    timed = [one for one in read if one.first <= one.last]
    if not timed:
        damage = next((one.damage[0] for one in read if one.damage), "no event has a time")
        raise SourceError(
            f"nothing to import in `{read[0].path}`: {damage}", "export the trace again, and copy it as a whole"
        )
    first, last = min(one.first for one in timed), max(one.last for one in timed)
    if not (-(2**62) < first < 2**62 and last - first < 2**62):
        raise SourceError(
            f"the times in `{timed[0].path}` do not fit 64 bits of ns", "check the trace's `baseTimeNanoseconds`"
        )
    reps: dict[int, Rep] = {}
    ranks = sorted(_by_rank(timed).items())
    for (number, _), _mine in ranks:
        own = [one for one in timed if one.rep_rank[0] == number]
        zero, end = min(one.first for one in own), max(one.last for one in own)
        reps[number] = Rep(rep=number, zero_realtime_ns=zero, zero_monotonic_ns=0, dur_ns=end - zero)
    overlaps: Counter[int] = Counter()
    evidence = str(run.manifest.options.get("step_pattern", "ProfilerStep"))
    for ((number, rank), mine), written in zip(ranks, _write_ranks(ranks, reps, run, progress), strict=True):
        reps[number].ranks.append(
            Rank(
                rank=rank, pid=0, host=mine[0].host, zero_realtime_ns=reps[number].zero_realtime_ns,
                zero_monotonic_ns=0, step_evidence=evidence if written.has_steps else None,
            )
        )  # fmt: skip
        for table, rows in written.counts.items():
            count(run.manifest, table, rows)
        overlaps.update({id(one): partly for one, partly in zip(mine, written.overlaps, strict=True)})
    run.manifest.reps = list(reps.values())
    _decide(run.manifest, read, overlaps)


def _by_rank(read: Sequence[Half]) -> dict[tuple[int, int], list[Half]]:
    """The files of each repetition and rank by time."""
    places: dict[tuple[int, int], list[Half]] = {}
    for one in sorted(read, key=lambda one: one.first):
        mine = places.setdefault(one.rep_rank, [])
        if mine and one.first < mine[-1].last:
            raise SourceError(
                f"two traces of rank {one.rep_rank[1]} overlap in time: `{mine[-1].path}` and `{one.path}`",
                "import them one by one, or name their folders rank_0, rank_1, ...",
            )
        mine.append(one)
    return places


def _write_ranks(
    ranks: Sequence[tuple[tuple[int, int], list[Half]]], reps: Mapping[int, Rep], run: Run,
    progress: Callable[[str], None],
) -> list[Written]:  # fmt: skip
    parts = [
        passes.Rank(
            run.path.resolve(), number, rank,
            [(one.waiting, one.header.base_ns - reps[number].zero_realtime_ns) for one in mine],
            any(one.has_device_work for one in mine),
        )
        for (number, rank), mine in ranks
    ]  # fmt: skip
    of_file = Counter(one.path for _, mine in ranks for one in mine)  # a file may hold several ranks
    sizes = [sum(size_of(one.path) // of_file[one.path] for one in mine) for _, mine in ranks]
    return spread(write_rank, parts, sizes, [f"rank {rank}" for (_, rank), _ in ranks], progress)


def _decide(manifest: Manifest, read: Sequence[Half], overlaps: Counter[int]) -> None:
    """State, warnings, and what the traces do not hold."""
    manifest.decide("complete")
    for half in read:
        where = {} if half.own is None else {"rep": half.own.rep, "rank": half.own.rank}
        if half.damage:
            more = f" (and {half.damaged - 1} more)" if half.damaged > 1 else ""
            damaged = note("file_damaged", file=half.path.name, damage=half.damage[0], more=half.damaged - 1)
            manifest.decide("partial", manifest.reason_facts or damaged)
            manifest.warn("damaged_file", f"`{half.path}`: {'; '.join(half.damage)}{more}")
        if half.mended:
            what = "NaN, bytes that are not UTF-8, or arguments of an unexpected form"
            manifest.warn("mended", f"`{half.path.name}`: {half.mended} events had {what}; these were left out")
        if half.dropped:
            shown = ", ".join(f"{count} with {what}" for what, count in sorted(half.dropped.items())[:10])
            manifest.warn("left_out", f"`{half.path.name}`: events left out: {shown}", **where)
        if half.has_too_many_names:
            manifest.decide("partial", manifest.reason_facts or note("too_many_names", file=half.path.name))
        if partly := overlaps[id(half)]:
            manifest.warn(
                "overlaps",
                f"`{half.path.name}`: {partly} events overlap another of their thread only partly: "
                "own times of what is above both may be too small or negative",
                **where,
            )
        if half.unlinked:
            manifest.warn(
                "links",
                f"`{half.path.name}`: {half.unlinked} device events without the call that launched them",
                **where,
            )
    _note_torch(manifest, read)
    if any(one.is_made_ahead for one in read):
        manifest.options["made_ahead"] = True
    note_missing(manifest, _MISSING if manifest.source == f"import:{KIND}" else _MISSING | _MISSING_OF_OTHERS)


def _note_torch(manifest: Manifest, read: Sequence[Half]) -> None:
    """Note which torch wrote the traces when they have Python functions, which its versions count differently.

    No trace says it in words, but it has the lines that called Python functions since torch 2.14, and the host's name
    since 2.12 (Kineto of March 2026), when `key_averages()` began to count Python functions.
    """
    theirs = [one for one in read if one.has_python_functions]
    if theirs:
        lines = any(one.has_call_lines for one in theirs)
        named = any("host_name" in one.header.fields for one in theirs)
        manifest.options["torch"] = "2.14 or later" if lines else "2.12 or 2.13" if named else _OTHER_TORCH


class Program(NamedTuple):
    """One program. `begins`: whether a file is its own, by the first bytes; `mode` is how it runs what it records."""

    kind: str
    what: str
    begins: Callable[[Content], bool]
    dialect: Dialect
    mode: str | None = None

    def recognise(self, path: Path) -> bool:
        """Whether a file is such a trace, by its beginning. Raises SourceError when it cannot be read."""
        with Content(path) as file:
            return self.begins(file)

    def add_files(self, paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
        """As `add_files`, in this program's dialect."""
        add_files(paths, run, progress, self.dialect)
        if self.mode is not None:
            run.manifest.fingerprint["mode"] = self.mode


def _matching(pattern: bytes) -> Callable[[Content], bool]:
    start = re.compile(pattern, re.DOTALL)
    return lambda file: start.match(file.read(_HEAD)) is not None


KINETO = Program(
    KIND,
    "a chrome trace of torch.profiler or a relative of it (*.pt.trace.json, trace_view.json, also .gz)",
    is_torch,
    TORCH,
)
PROGRAMS = (
    KINETO,
    # Names follow two conventions: those of DLIO (`TorchFramework.compute`, `NPZReader.open`), and those of DFTracer's
    # own `ai` decorators (`compute.step`, `dataloader.fetch.iter`).
    Program(
        "dftracer", "a trace of DFTracer (*.pfw, *.pfw.gz)",
        _matching(rb'\s*(?:\[\s*)?\{(?=[^\n]*"(?:hostname|hhash)"\s*:)[^\n]*"ph"\s*:\s*(?:"[XMC]"|\d)[^\n]*\}'),
        Dialect(None, form=LINES),
    ),
    # Calls of HIP and RCCL are operators of the host, and ranges of roctx their callers.
    Program(
        "rocprof", "JSON of rocprofv3 (*_results.json)", _matching(rb'\s*\{\s*"rocprofiler-sdk-tool"\s*:\s*\['),
        Dialect(API | {"user_annotation"}, form=RECORDS),
    ),
    # What XLA runs was compiled as a whole.
    Program(
        "xplane", "a profile of JAX or TensorFlow (*.xplane.pb)", lambda file: is_space(file.read(_HEAD)),
        Dialect(None, form=PLANES), mode="xla",
    ),
    # Every interval of a thread is an operator, in a tree of calls; asynchronous ones are spans. Which are steps, the
    # user says.
    Program(
        "chrome", "a Chrome trace of another program (VizTracer, Perfetto's JSON)",
        _matching(rb'\s*(?:\[|\{.*?"traceEvents"\s*:\s*\[)\s*\{.*?"ph"\s*:\s*"[A-Za-z]"'), Dialect(None),
    ),
)  # fmt: skip
