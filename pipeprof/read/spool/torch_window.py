"""A window of a recording that PyTorch's profiler took: what was executed, in the form of MindSpore's op recorder.

The trace has the work of one thread: that which trains. Each execution has its own time, without what it called; a
backward one has the number of the forward operator whose gradient it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipeprof.errors import SourceError
from pipeprof.read.chrome.container import Trace
from pipeprof.read.chrome.dialect import LOADER, Info, shapes_shown
from pipeprof.read.chrome.events import Event, int64
from pipeprof.read.chrome.ops import flops_of, is_communication
from pipeprof.read.chrome.tree import ENGINE
from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.source.numbers import raw_ns

TRACES = "torch-*.json"
_OPERATOR, _RANGE = "cpu_op", "user_annotation"
_UPDATE = "Optimizer.step#"


def read_windows(folder: Path, offset: int = 0) -> list[Execution]:
    """Executions in order of start, ns since the epoch and `offset`; none where the folder has no such trace.

    Raises SourceError for a damaged one.
    """
    found: list[Execution] = []
    for path in sorted(folder.glob(TRACES)):
        found += _executions(path, offset)
    return sorted(found, key=lambda execution: execution.start_ns)


def _executions(path: Path, offset: int) -> Iterator[Execution]:
    trace = Trace(path)
    events = [event for batch in trace.batches() for event in batch.events]
    if trace.damage:
        raise SourceError(f"`{path}` is damaged: {trace.damage[0]}", "record again")
    base, calls = trace.header.base_ns + offset, []
    for event in events:
        start, lasted = raw_ns(bytes(event.ts), "us"), raw_ns(bytes(event.dur), "us")
        if event.ph == "X" and event.cat in (_OPERATOR, _RANGE) and start is not None and lasted is not None:
            calls.append(_Call(event, base + start, lasted))
    calls.sort(key=lambda call: (call.start, -call.lasted))
    open_calls: list[_Call] = []
    for call in calls:
        while open_calls and open_calls[-1].end <= call.start:
            open_calls.pop()
        call.inside(open_calls)
        open_calls.append(call)
    known: dict[bytes, tuple[str | None, int | None]] = {}
    return (call.execution(known) for call in calls if call.is_operator)


class _Call:
    """An operator, or a range around operators."""

    def __init__(self, event: Event, start: int, lasted: int) -> None:
        self.event, self.start, self.lasted = event, start, lasted
        self.own = lasted
        self.phase: str | None = None
        self.sequence = None if event.args is None else int64(event.args.sequence)
        name = event.name
        self.is_operator = event.cat == _OPERATOR and not name.startswith(ENGINE)
        if name.startswith(ENGINE):
            self.phase = "backward"
        elif event.cat == _RANGE:
            self.phase = "optimizer" if name.startswith(_UPDATE) else "data" if name.startswith(LOADER) else None
        elif is_communication(name):
            self.phase = "communication"

    @property
    def end(self) -> int:
        return self.start + self.lasted

    def inside(self, around: list[_Call]) -> None:
        """Take the phase, and in a backward pass the number, of what called it, and its time from that one's own."""
        if not around:
            return
        caller = around[-1]
        self.phase = self.phase or caller.phase
        if self.phase == "backward" and caller.phase == "backward":
            self.sequence = caller.sequence
        operator = next((call for call in reversed(around) if call.is_operator), None)
        if operator is not None and self.is_operator:
            operator.own -= self.lasted

    def execution(self, known: dict[bytes, tuple[str | None, int | None]]) -> Execution:
        """As an execution. `known`: shapes and operations of what was seen, by its name and arguments."""
        name, args = self.event.name, self.event.args
        dims, values = (b"", b"") if args is None else (bytes(args.dims), bytes(args.concrete))
        key = b"\0".join((name.encode(), dims, values))
        if key not in known:
            types = b"" if args is None else bytes(args.types)
            known[key] = shapes_shown(dims), flops_of(Info(_OPERATOR, name, dims, types, b"", values))
        shapes, flops = known[key]
        return Execution(
            name, self.start, self.lasted, type=name, shapes=shapes, self_ns=max(0, self.own), phase=self.phase,
            sequence=self.sequence, flops=flops,
        )  # fmt: skip
