"""MegEngine's chrome timelines, three generations, to rows: operators, spans, counters, memory, flows.

v1.0 to 1.2: a list of B and E events; the thread is "host" or a device's text. Until mid 2021: devices are threads from
256 on, and a first event `Metadata` has localTime in us. Now: `{traceEvents, metadata: {localTime: "<ns>"}}`. Each
process is a rank; its timeline is looked through, then read, in any process of ours.

One event of a MegEngine timeline and what it stands for, and what to know first: names of threads may come last.

Source: MegEngine's `imperative/src/impl/profiler/{chrome_timeline.cpp,events.h}` (2024) and its earlier Python writer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pipeprof import processes
from pipeprof.errors import SourceError
from pipeprof.read.megengine.files import FileRows, by_pid
from pipeprof.read.source.content import Content
from pipeprof.read.source.json_stream import Scan, of_list
from pipeprof.read.source.numbers import LARGEST
from pipeprof.read.tables.ranks import as_nodes_see, check_folder, spread
from pipeprof.read.tables.rows import FULL, Rows
from pipeprof.read.tables.share import Outcome, count_ranks, folder_alone, leave_out, left_out, size_of
from pipeprof.read.tables.steps import Steps
from pipeprof.read.tables.writer import Streamed
from pipeprof.record.document import BAD_JSON
from pipeprof.record.run import Rank, Rep, Run

MOST_OPEN = 100_000  # events of a file that have begun and not ended
_CLOCK = "file"
_MEMORY = "_alloc_mem"
_HUGE = 2**1023
_FLOW = {"s": "start", "t": "step", "f": "end"}


def read_timeline(path: Path, survey: Survey, rows: Rows) -> FileRows:
    """Rows of one process's timeline, or of one process of a merged one, into `rows`.

    A file that is damaged or ends too early gives what was read until then, with `damage` set; raises SourceError when
    nothing was.
    """
    reading = _Reading(survey, rows)
    problems, damage = each_event(path, reading.take)
    reading.finish()
    reading.out.problems += problems + survey.problems
    reading.out.damage = damage
    if damage is not None and not rows.counts:
        raise damage
    return reading.out


def _add_steps(survey: Survey, rows: Rows) -> Steps:
    """Steps from mark to mark, the first from where the recording begins; who starts the profiler is training."""
    steps, begin = Steps(), survey.first_ns or 0
    for number, (start, end) in enumerate(pairwise([begin, *sorted({stop for stop in survey.stops if stop > begin})])):
        steps.add(number, start, end, _CLOCK)
        rows.add(
            "step", step=number, kind_step=number, kind="train", start_ns=start, end_ns=end, in_window=False,
            source_step=number,
        )  # fmt: skip
    return steps


class _Open:
    """A begun event and the time that operators within it took."""

    __slots__ = ("event", "inner", "start")

    def __init__(self, event: Event, start: int) -> None:
        self.event = event
        self.start = start
        self.inner = 0


class _Reading:
    """The state while events go by."""

    def __init__(self, survey: Survey, rows: Rows) -> None:
        self.out = FileRows(rows, survey.zero_ns)
        self._survey = survey
        self._devices: dict[str, bool] = {}
        self._steps = _add_steps(survey, rows)
        self._open: dict[str, list[_Open]] = {}
        self._opened = 0
        self._handlers: dict[Any, Callable[[Event], None]] = {
            "B": self._begin, "E": self._end, "X": self._complete, "C": self._counter, "M": lambda _event: None,
            "i": self._instant, "I": self._instant, "s": self._flow, "t": self._flow, "f": self._flow,
        }  # fmt: skip

    def take(self, event: Event) -> None:
        """Use one event of the survey's process; what cannot be used is counted."""
        if self._survey.pid not in (None, event.pid):
            return
        handler = self._handlers.get(event.ph)
        if handler is None:
            self.out.problems["events of a kind that is not known"] += 1
        else:
            handler(event)

    def finish(self) -> None:
        """Count what never ended."""
        if self._opened:
            self.out.problems["events that never end"] += self._opened

    def _is_device(self, track: str) -> bool:
        """Whether operators on a thread ran on a device: by its number or text, and now by the category Kernel."""
        device = self._devices.get(track)
        if device is None:
            numbered = track.isdecimal() and len(track) < 9
            named = _LOCATOR.fullmatch(track) is not None
            device = track in self._survey.kernels or (int(track) >= FIRST_DEVICE if numbered else named)
            if len(self._devices) < MOST_OPEN:
                self._devices[track] = device
        return device

    def _time(self, event: Event) -> int | None:
        time = ns_of(event.ts)
        if time is None:
            self.out.problems["events without a time"] += 1
        else:
            self.out.end_ns = max(self.out.end_ns, time)
        return time

    def _begin(self, event: Event) -> None:
        start = self._time(event)
        if start is None:
            return
        if self._opened >= MOST_OPEN:
            self.out.problems["events that begin within so many others"] += 1
            return
        self._opened += 1
        self._open.setdefault(text_of(event.tid), []).append(_Open(event, start))

    def _end(self, event: Event) -> None:
        end, stack = self._time(event), self._open.get(text_of(event.tid))
        if end is None:
            return
        if not stack:
            self.out.problems["events that end but never begin"] += 1
            return
        begun = stack.pop()
        self._opened -= 1
        if end < begun.start:
            self.out.problems["events that end before they start"] += 1
            return
        args = args_of(event)
        if args.op_id is None and args.op_name is None:
            args = args_of(begun.event)
        inside = self._pair(begun.event, args, begun, end - begun.start)
        if stack:
            stack[-1].inner += inside

    def _complete(self, event: Event) -> None:
        start, dur = self._time(event), ns_of(event.dur if event.dur is not None else 0.0)
        if start is None:
            return
        if dur is None or dur < 0:
            self.out.problems["events that end before they start"] += 1
            return
        self.out.end_ns = max(self.out.end_ns, start + dur)
        self._pair(event, args_of(event), _Open(event, start), dur)

    def _pair(self, event: Event, args: Args, begun: _Open, dur: int) -> int:
        """Keep an interval; returns the time of operators in it."""
        track = text_of(event.tid)
        if not is_operator(event, args, device=self._is_device(track)):
            self._span(track, event, begun.start, dur)
            return begun.inner
        name = text_of(event.name)
        full = text_of(args.op_name) if isinstance(args.op_name, str) and args.op_name else name
        device, own = self._is_device(track), max(dur - begun.inner, 0)
        self.out.tables.add(
            "op", op_id=self.out.tables.op_id(full, None, type=name), start_ns=begun.start, dur_ns=dur, self_ns=own,
            step=self._steps.at(begun.start, _CLOCK), side="device" if device else "host", track=self._shown(track),
            device_total_ns=dur if device else None, device_self_ns=own if device else None,
        )  # fmt: skip
        return dur

    def _span(self, track: str, event: Event, start: int, dur: int) -> None:
        self.out.tables.add(
            "span", track=self._shown(track), category=text_of(event.cat), name=text_of(event.name), start_ns=start,
            dur_ns=dur,
        )  # fmt: skip

    def _shown(self, track: str) -> str:
        return self._survey.names.get(track, track)

    def _instant(self, event: Event) -> None:
        if event.name == "Metadata":
            return
        start = self._time(event)
        if start is not None:
            self._span(text_of(event.tid), event, start, 0)

    def _counter(self, event: Event) -> None:
        at, value, name = self._time(event), args_of(event).value, text_of(event.name)
        if at is None:
            return
        if not _is_number(value):
            self.out.problems["counters without a number"] += 1
        elif name.endswith(_MEMORY) and 0 <= value < LARGEST:
            self.out.tables.add("memory", t_ns=at, device=name.removesuffix(_MEMORY), allocated_bytes=int(value))
        else:
            track = text_of(event.pid)
            self.out.tables.add("counter", t_ns=at, track=track, name=name, series="value", value=float(value))

    def _flow(self, event: Event) -> None:
        at = self._time(event)
        if at is not None:
            self.out.tables.add(
                "flow", track=self._shown(text_of(event.tid)), flow_id=text_of(event.id), category=text_of(event.cat),
                name=text_of(event.name), side=_FLOW[str(event.ph)], t_ns=at,
            )  # fmt: skip


def _is_number(value: object) -> bool:
    """Whether a value is a number that a double can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < _HUGE


class _Timeline(NamedTuple):
    run: Path
    rank: int
    path: Path
    survey: Survey
    by_ns: int  # from its own zero to the run's


def add_timelines(paths: Sequence[Path], run: Run, progress: Callable[[str], None], damage: list[SourceError]) -> None:
    """Read them into repetition 0 of a run. One that cannot be read is damage, and its rank is not in the run."""
    sizes, names = [size_of(path) for path in paths], [path.name for path in paths]
    surveys = spread(_survey, [as_nodes_see(path) for path in paths], sizes, names, progress)
    damage += [surveyed for surveyed in surveys if isinstance(surveyed, SourceError)]
    seen = _processes(
        [(path, each) for path, each in zip(paths, surveys, strict=True) if not isinstance(each, SourceError)], run
    )
    first = min((surveyed.zero_ns for _, surveyed in seen if surveyed.zero_ns is not None), default=0)
    parts = [
        _Timeline(run.path.resolve(), rank, as_nodes_see(path), surveyed, (surveyed.zero_ns or first) - first)
        for rank, (path, surveyed) in enumerate(seen)
    ]
    outcomes = spread(
        _read, parts, [size_of(part.path) for part in parts], [part.path.name for part in parts], progress
    )
    count_ranks(run.manifest, outcomes)
    damage += [SourceError(message, hint) for one in outcomes for message, hint in one.damage]
    ranks = [_entry(part, one) for part, one in zip(parts, outcomes, strict=True) if one.last]
    if ranks:
        end = max(0, *(time for one in outcomes for time in one.last.values()))
        run.manifest.reps = [Rep(rep=0, zero_realtime_ns=first, zero_monotonic_ns=0, dur_ns=end, ranks=ranks)]


def _processes(surveys: Sequence[tuple[Path, list[Survey]]], run: Run) -> list[tuple[Path, Survey]]:
    """The processes, each once: what is in a merged file beside the files of its processes is left out."""
    own = set().union(*(each[0].pids for _, each in surveys if len(each) == 1))
    seen = []
    for path, each in surveys:
        new = [(path, one) for one in each if one.pid is None or one.pid not in own]
        if len(new) < len(each):
            shown = "" if not new else "in part "
            leave_out(run.manifest, [path], f"{shown}its processes have timelines of their own")
        seen += new
    return seen


def _survey(path: Path) -> list[Survey] | SourceError:
    processes.say(f"looking through {path.name}")
    try:
        return by_process(path, survey(path))
    except SourceError as error:
        return error


def _read(part: _Timeline) -> Outcome:
    """What came of it; `last` is empty when it could not be read."""
    check_folder(part.run)
    processes.say(f"reading {part.path.name}")
    try:
        with Streamed(folder_alone(part.run), part.rank, part.by_ns) as tables:
            outcome = read_timeline(part.path, part.survey, tables)
    except SourceError as error:
        return Outcome(part.rank, damage=[(error.message, error.hint)])
    full = [("operators", FULL)] if tables.operators.full else []
    cut = [] if outcome.damage is None else [(outcome.damage.message, outcome.damage.hint)]
    return Outcome(
        part.rank, tables.counts, left_out(outcome.problems) + full, cut,
        last={_CLOCK: outcome.end_ns + part.by_ns}, steps=MARK if "step" in tables.counts else None,
    )  # fmt: skip


def _entry(part: _Timeline, outcome: Outcome) -> Rank:
    pid, zero = part.survey.pid, part.survey.zero_ns
    return Rank(
        rank=part.rank, pid=pid if isinstance(pid, int) else by_pid(part.path)[0], host="", zero_realtime_ns=zero or 0,
        zero_monotonic_ns=0, step_evidence=outcome.steps,
    )  # fmt: skip


_LARGEST_US = 2.0**52
_LOCATOR = re.compile(
    r"(CompNode\(.*|(xpu|gpu|cpu|atlas|rocm|cambricon|multithread)[0-9a-z]*:[0-9A-Z_a-z:]+)", re.DOTALL
)
_TENSOR = re.compile(r"(Input|Output|Put|Drop|Del|RecFree|ReGen|GetValue) [0-9]+")
_HOST_WORDS = frozenset({"OpDispatch", "TensorWaitProp", "TensorGetProp", "AutoEvict", "StartProfile", "StopProfile"})
FIRST_DEVICE = 256  # thread numbers of devices began here until 2021


class Event(msgspec.Struct, gc=False):
    """An event as written; `args` is still JSON."""

    name: str | int | float | None = None
    cat: str | int | float | None = None
    ph: str | int | float | None = None
    tid: str | int | float | None = None
    pid: str | int | float | None = None
    id: str | int | float | None = None
    ts: float | str | None = None
    dur: float | str | None = None
    args: msgspec.Raw = msgspec.Raw(b"null")


class Args(msgspec.Struct):
    """The arguments that are used."""

    name: Any = None
    value: Any = None
    local_time: Any = msgspec.field(default=None, name="localTime")
    op_id: Any = msgspec.field(default=None, name="__id__")
    op_name: Any = msgspec.field(default=None, name="__name__")
    execution_time: Any = None


_args = msgspec.json.Decoder(Args)
BATCH = of_list(Event)


def args_of(event: Event) -> Args:
    """The event's arguments; empty when it has none or they are no object."""
    try:
        return _args.decode(event.args)
    except BAD_JSON:
        return Args()


def ns_of(us: float | str | None) -> int | None:
    """Whole ns of a time in us; None when it is no number that fits."""
    if not isinstance(us, float) or not math.isfinite(us) or abs(us) >= _LARGEST_US:
        return None
    return round(us * 1000)


def is_operator(event: Event, args: Args, *, device: bool) -> bool:
    """Whether a begin/end pair is the execution of an operator (a kernel of its own, seen by CUPTI, is not).

    `device`: the thread is known to be a device's. The first generation has operators only, on threads named by text.
    """
    name = str(event.name or "")
    if _TENSOR.fullmatch(name) or name in _HOST_WORDS or args.execution_time is not None:
        return False
    if args.op_id is not None or args.op_name is not None or event.cat == "Kernel":
        return True
    return device or event.tid == "host"


def text_of(value: object) -> str:
    """A field as text; numbers of threads without a fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST:
        return str(int(value))
    return "" if value is None else str(value)


MARK = "StopStep"  # the event that step() of the profiler leaves at the end of each step
THREADS = 100_000  # whose names are kept
MARKS = 1_000_000  # ends of steps that are kept
PROCESSES = 1_000  # of one file that are told apart
_NAME = 200


@dataclass
class Survey:
    """Names of threads, threads of kernels, the first time and the ends of steps (ns), ns since the epoch at time 0.

    `pids` are the processes of the intervals; with a `pid`, it is of that process alone.
    """

    names: dict[str, str] = field(default_factory=dict)
    kernels: set[str] = field(default_factory=set)
    first_ns: int | None = None
    stops: list[int] = field(default_factory=list)
    zero_ns: int | None = None
    pid: str | int | float | None = None
    pids: set[str | int | float] = field(default_factory=set)
    problems: Counter[str] = field(default_factory=Counter)

    def take(self, event: Event) -> None:
        """Remember what matters of an event."""
        if event.ph in ("B", "X") and event.pid is not None and len(self.pids) <= PROCESSES:
            self.pids.add(event.pid)
        if event.ph == "M":
            self._name(event)
            return
        at = ns_of(event.ts)
        if at is not None and (self.first_ns is None or at < self.first_ns):
            self.first_ns = at
        if event.ph in ("i", "I"):
            self._instant(event, at)
        elif event.cat == "Kernel" and event.ph in ("E", "X") and len(self.kernels) < THREADS:
            track = text_of(event.tid)
            if track not in self.kernels and args_of(event).execution_time is None:
                self.kernels.add(track)

    def clock(self, value: Any, factor: int) -> None:
        """Set the zero of the times from localTime, in units of `factor` ns since the epoch."""
        try:
            zero = int(value) * factor
        except (TypeError, ValueError, OverflowError):
            zero = -1
        if 0 <= zero < LARGEST:
            self.zero_ns = zero
        else:
            self.problems["localTime that is not a time"] += 1

    def _name(self, event: Event) -> None:
        name = args_of(event).name
        if event.name != "thread_name" or not isinstance(name, str):
            return
        if len(self.names) < THREADS:
            self.names[text_of(event.tid)] = name[:_NAME]
        else:
            self.problems["names of threads after so many others"] += 1

    def _instant(self, event: Event, at: int | None) -> None:
        if event.name == "Metadata":
            self.clock(args_of(event).local_time, 1000)
        elif event.name == MARK and at is not None:
            if len(self.stops) < MARKS:
                self.stops.append(at)
            else:
                self.problems["ends of steps after so many others"] += 1


def survey(path: Path) -> Survey:
    """Read a timeline through. What is damaged or cut off is left for the reader of its rows to say."""
    result = Survey()
    each_event(path, result.take, result.clock)
    return result


def by_process(path: Path, whole: Survey) -> list[Survey]:
    """One for each process of a timeline that MegEngine's tool has merged of several; any other as it is."""
    if not 1 < len(whole.pids) <= PROCESSES:
        return [whole]
    pids = sorted(whole.pids, key=lambda pid: (len(text_of(pid)), text_of(pid)))
    parts = {pid: Survey(pid=pid, zero_ns=whole.zero_ns) for pid in pids}

    def take(event: Event) -> None:
        part = None if event.pid is None else parts.get(event.pid)
        if part is None:
            parts[pids[0]].problems["events of no process, beside several"] += 1
        else:
            part.take(event)

    each_event(path, take)
    return list(parts.values())


def each_event(
    path: Path, take: Callable[[Event], None], clock: Callable[[Any, int], None] = lambda _value, _factor: None
) -> tuple[Counter[str], SourceError | None]:
    """Hand out a timeline's events in the order of the file, and its localTime.

    Returns how many entries were left out, by what was wrong with them, and what ended the file too early. Raises
    SourceError for a file that cannot be opened.
    """
    with Content(path) as file:
        scan = Scan(file, path)
        try:
            _read_events(scan, take, clock)
        except SourceError as error:
            return scan.problems, error
    return scan.problems, None


def _read_events(scan: Scan, take: Callable[[Event], None], clock: Callable[[Any, int], None]) -> None:
    for key in ("traceEvents",) if scan.peek() == b"[" else scan.members():
        if key == "traceEvents":
            for batch in scan.entries(*BATCH):
                for event in batch if isinstance(batch, list) else ():
                    take(event)
        elif key == "metadata" and scan.peek() == b"{":
            for inner in scan.members():
                if inner == "localTime" and scan.peek() not in b"{[":
                    clock(scan.scalar(), 1)
                else:
                    scan.skip()
        else:
            scan.skip()
