"""Second pass: who called whom, by containment in time within a thread; own time, device time and memory.

The rules are those of torch/autograd/profiler_util.py (EventList), so that sums by name equal `key_averages()`:

- by start, then the longest first; an event is called by the innermost open event of its thread that wholly contains
  it; one that overlaps an open event only partly ends that one's calls;
- an event that is the only callee of an event of the same name is folded into it;
- own time and memory are those without the direct callees; memory of an event is all that was allocated less freed
  while it was open (both ends included), in any thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.kineto.ops import BACKWARD, FORWARD, HANDED_DOWN, OTHER, own_phase
from pipeprof.read.kineto.spill import ALLOCATE, CALL, NONE
from pipeprof.read.kineto.times import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeprof.read.kineto.gather import Gathered
    from pipeprof.read.kineto.ops import Ops
    from pipeprof.read.kineto.rows import Info
    from pipeprof.read.kineto.spill import Columns

_Rows = list[tuple[int, ...]]
_Emit = Callable[[_Rows], None]
COLUMNS = (
    "op_id", "start", "end", "self_ns", "track", "exec_id", "parent_id", "device_total_ns", "device_self_ns",
    "memory_bytes", "self_memory_bytes", "device_memory_bytes", "self_device_memory_bytes",
)  # fmt: skip
FLUSH = 1 << 13
_SEQUENCES = 100_000
ENGINE = "autograd::engine::evaluate_function: "


class Call:
    """An open event. Sums are over its direct callees."""

    __slots__ = (
        "backward", "callees", "device_own", "device_sum", "dur_sum", "end", "exec_id", "held", "host",
        "host_sum", "name", "on_device", "on_device_sum", "op_id", "parent", "phase", "slots", "start", "track",
    )  # fmt: skip

    def __init__(
        self, start: int, end: int, track: int, exec_id: int, parent: Call | None, host: int, on_device: int
    ) -> None:
        self.start = start
        self.end = end
        self.track = track
        self.exec_id = exec_id
        self.parent = parent
        self.op_id = 0
        self.name = ""
        self.phase = OTHER
        self.backward: int | None = None
        self.callees = 0
        self.held: Call | None = None
        self.dur_sum = self.device_own = self.device_sum = 0
        self.host = host
        self.on_device = on_device
        self.host_sum = self.on_device_sum = 0
        self.slots: list[int] | None = None


class Tree:
    """Feeds on blocks by start; hands finished rows to `emit` in batches."""

    def __init__(self, found: Gathered, ops: Ops, first_exec: int, emit: _Emit, emit_allocations: _Emit) -> None:
        self.found = found
        self.ops = ops
        self.memory = found.memory.finish()
        self.allocations = Allocations(emit_allocations)
        self.next_exec = first_exec
        self._emit = emit
        self._open: dict[int, list[Call]] = defaultdict(list)
        self._rows: _Rows = []
        self._op_ids: dict[tuple[int, int, int | None], int] = {}
        self._own: dict[int, tuple[int | None, int, int | None, str, str]] = {}
        self._sequences: dict[int, int | None] = {}

    def add(self, block: Columns) -> None:
        """Take in rows of `call` by start."""
        launches = self.found.launches
        kinds, start, end = block["kind"], block["start"], block["end"]
        slots = launches.slots(np.where((kinds == CALL) == launches.by_link, block["link"], NONE))
        slots[kinds == ALLOCATE] = NONE
        host, device = self.memory.between(start, end)
        names = ("track", "info", "sequence", "backward", "delta", "address", "device")
        columns = [kinds, start, end, slots, host, device, *(block[name] for name in names)]
        self._walk(zip(*(column.tolist() for column in columns), strict=True))
        if len(self._rows) >= FLUSH:
            self._flush()
        self.allocations.flush(FLUSH)

    def _walk(self, rows: Iterable[tuple[int, ...]]) -> None:
        """The loop over all events; what it calls for each of them is kept short."""
        stacks, close, describe = self._open, self._close, self._describe
        for kind, start, end, slot, host, device, track, info, sequence, backward, delta, address, place in rows:
            stack = stacks[track]
            if kind != CALL:
                above = next((call for call in reversed(stack) if call.end >= start), None)
                if kind == ALLOCATE:
                    op_id = NONE if above is None else above.op_id
                    self.allocations.add(start, delta=delta, address=address, device=place, op_id=op_id)
                elif slot != NONE and above is not None:
                    self._take(above, slot)
                continue
            above = None
            while stack:
                above = stack[-1]
                if start < above.end and end <= above.end:
                    break
                self.found.overlaps += start < above.end
                close(stack.pop())
                above = None
            call = Call(start, end, track, self.next_exec, above, host, device)
            self.next_exec += 1
            describe(call, info, sequence, backward)
            if slot != NONE:
                self._take(call, slot)
            stack.append(call)

    def finish(self) -> None:
        """Close what is open."""
        for stack in self._open.values():
            while stack:
                self._close(stack.pop())
        self._flush()
        self.allocations.finish()

    def _describe(self, call: Call, info: int, sequence: int, backward: int) -> None:
        """Operator and phase. The source location of backward work is that of its forward operator."""
        own = self._own.get(info)
        if own is None:
            own = self._own[info] = self._own_of(self.found.infos.values[info])
        above = call.parent
        phase, default, stack_id, call.name, engine_name = own
        if above is not None:
            backward = backward or above.name == engine_name
        if phase is None:
            inherits = above is not None and above.phase in HANDED_DOWN
            phase = above.phase if above is not None and inherits else BACKWARD if backward else default
        call.phase = phase
        call.backward = sequence if backward else above.backward if above is not None else None
        if self.found.with_stacks:
            if call.backward is not None:
                stack_id = self._sequences.get(call.backward)
            elif sequence >= 0:
                self._remember(sequence, stack_id)
        key = (info, phase, stack_id)
        op_id = self._op_ids.get(key)
        if op_id is None:
            op_id = self._op_ids[key] = self.ops.number(self.found.infos.values[info], phase, stack_id)
        call.op_id = op_id

    def _own_of(self, info: Info) -> tuple[int | None, int, int | None, str, str]:
        """Phase by name, phase otherwise, source location, name, and the engine's name for running it backward."""
        default = FORWARD if info.category == "cpu_op" else OTHER
        engine_name = ENGINE + info.name if info.category == "cpu_op" else ""
        return own_phase(info), default, self.ops.stacks.number(info.stack), info.name, engine_name

    def _remember(self, sequence: int, stack_id: int | None) -> None:
        self._sequences.setdefault(sequence, stack_id)
        if len(self._sequences) > _SEQUENCES:
            for old in list(self._sequences)[: _SEQUENCES // 2]:
                del self._sequences[old]

    def _close(self, call: Call) -> None:
        """Sums of an event are final: fold its only callee of the same name, and hand it on."""
        inner = call.held
        if inner is not None:
            call.held = None
            call.dur_sum, call.device_own, call.device_sum = inner.dur_sum, inner.device_own, inner.device_sum
            call.host_sum, call.on_device_sum = inner.host_sum, inner.on_device_sum
            call.exec_id = inner.exec_id  # its callees were written with it
            call.slots = inner.slots
        above = call.parent
        if above is None:
            self._write(call)
            return
        above.callees += 1
        above.dur_sum += call.end - call.start
        above.device_sum += call.device_own + call.device_sum
        above.host_sum += call.host
        above.on_device_sum += call.on_device
        if above.callees == 1 and above.name == call.name:
            above.held = call
            return
        if above.held is not None:
            self._write(above.held)
            above.held = None
        self._write(call)

    def _write(self, call: Call) -> None:
        dur, above = call.end - call.start, call.parent
        if call.slots is not None:
            self.found.launches.execs[call.slots] = call.exec_id
        self._rows.append(
            (
                call.op_id, call.start, call.end, dur - call.dur_sum, call.track, call.exec_id,
                NONE if above is None else above.exec_id, call.device_own + call.device_sum, call.device_own,
                call.host, call.host - call.host_sum, call.on_device, call.on_device - call.on_device_sum,
            )
        )  # fmt: skip

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self._emit(rows)

    def _take(self, call: Call, slot: int) -> None:
        """Device work that this call launched."""
        launches = self.found.launches
        if launches.starts[slot] != NONE:
            return
        call.device_own += int(launches.durations[slot])
        launches.phases[slot], launches.starts[slot] = call.phase, call.start
        call.slots = [*(call.slots or ()), slot]


class Allocations:
    """Blocks: (address, bytes, produced, released, op_id); MISSING for a time that is not known."""

    def __init__(self, emit: _Emit) -> None:
        self.rows: _Rows = []
        self._emit = emit
        self._held: dict[tuple[int, int], tuple[int, int, int]] = {}

    def add(self, time: int, *, delta: int, address: int, device: int, op_id: int) -> None:
        """A block was allocated (bytes above 0) or freed."""
        key = (device, address)
        held = self._held.pop(key, None)
        if delta > 0:
            if held is not None:
                self.rows.append((address, held[0], held[1], MISSING, held[2]))
            self._held[key] = (delta, time, op_id)
        elif held is not None:
            self.rows.append((address, held[0], held[1], time, held[2]))
        elif delta < 0:
            self.rows.append((address, -delta, MISSING, time, NONE))

    def finish(self) -> None:
        """What was never freed."""
        self.rows += [(address, size, at, MISSING, op_id) for (_, address), (size, at, op_id) in self._held.items()]
        self._held.clear()
        self.flush(1)

    def flush(self, least: int) -> None:
        """Hand on the rows, if there are so many."""
        if len(self.rows) >= least:
            self._emit(self.rows)
            self.rows = []
