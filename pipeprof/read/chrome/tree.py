"""Second pass: who called whom, by containment in time within a thread; own time, device time and memory.

The rules are those of torch/autograd/profiler_util.py (EventList), so that sums by name equal `key_averages()`:

- by start, then the longest first; an event is called by the innermost open event of its thread that wholly contains
  it; one that overlaps an open event only partly ends that one's calls;
- an event that is the only callee of an event of the same name is folded into it;
- own time and memory are those without the direct callees; memory of an event is all that was allocated less freed
  while it was open (both ends included), in any thread.

Events come in blocks. What is still open at the end of a block, and what may still be folded into it, waits in the
pool for the next one. A short loop finds the callers; everything else is done for a whole block at once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipeprof.read.chrome.memory import Allocations
from pipeprof.read.chrome.ops import BACKWARD, DATA, FORWARD, HANDED_DOWN, OTHER, UNKNOWN, Ops, own_phase
from pipeprof.read.chrome.spill import ALLOCATE, CALL, NONE, Columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeprof.read.chrome.gather import Gathered
    from pipeprof.read.source.numbers import Bools, Ints

_SEQUENCES = 100_000
_BUILT_IN = "<built-in"  # functions that say no place, and often name an object by its address
ENGINE = "autograd::engine::evaluate_function: "


class Called(NamedTuple):
    """Of each call of a block: the place of its caller in the pool (NONE for none), and its operator.

    `phases` are those of the whole pool; `above` is, for rows of other kinds, the place of the innermost open call.
    """

    parents: list[int]
    op_ids: Ints
    phases: Ints
    above: dict[int, int]


class Callers:
    """What is open in each thread. Lists are as long as the pool of calls, and in its order."""

    def __init__(self, gathered: Gathered, ops: Ops) -> None:
        self._gathered = gathered
        self._ops = ops
        self._facts = _Facts(gathered, ops)
        self._loaders = gathered.loader_tracks
        self._open: dict[int, list[int]] = defaultdict(list)
        self._ends: list[int] = []
        self._names: list[int] = []
        self._phases: list[int] = []
        self._frames: list[int | None] = []  # where no call has its stack, else none: the innermost function of Python
        self._own_stacks = self._facts.stacks if gathered.with_stacks else None
        self._by_functions = gathered.with_python_functions and not gathered.with_stacks
        self._forward: list[int | None] = []  # for backward work: number of its forward operator's sequence
        self._op_ids: dict[int, int] = {}
        self._sequences: dict[int, int] = {}

    def add(self, block: Columns) -> Called:
        """Walk over rows by start."""
        columns = [block[name].tolist() for name in ("kind", "start", "end", "track", "info", "sequence", "backward")]
        opened, ends, names, facts = self._open, self._ends, self._names, self._facts
        overlaps, above = 0, {}
        parents: list[int] = []
        stacks: list[int] = []
        for row, (kind, start, end, track, info, sequence, backward) in enumerate(zip(*columns, strict=True)):
            stack = opened[track]
            caller = NONE
            if kind != CALL:
                for call in reversed(stack):
                    if ends[call] >= start:
                        caller = call
                        break
                above[row] = caller
                continue
            while stack:
                caller = stack[-1]
                limit = ends[caller]
                if start < limit and end <= limit:
                    break
                overlaps += start < limit
                stack.pop()
                caller = NONE
            stack.append(len(ends))
            ends.append(end)
            names.append(facts.names[info])
            parents.append(caller)
            stacks.append(self._describe(info, caller, track, sequence, backward=bool(backward)))
        self._gathered.overlaps += overlaps
        phases = np.array(self._phases, np.int64)
        infos = block["info"][block["kind"] == CALL]
        return Called(parents, self._operators(infos, phases[len(phases) - len(infos) :], stacks), phases, above)

    def _describe(self, info: int, caller: int, track: int, sequence: int, *, backward: bool) -> int:
        """Note phase and sequence of a call; returns its source location, for backward work the forward operator's."""
        facts, forward = self._facts, None
        phase = facts.phases[info]
        if caller != NONE:
            backward = backward or self._names[caller] == facts.engines[info]
            if phase == NONE and self._phases[caller] in HANDED_DOWN:
                phase = self._phases[caller]
            forward = self._forward[caller]
        if phase == NONE:
            phase = DATA if track in self._loaders else BACKWARD if backward else facts.defaults[info]
        self._phases.append(phase)
        forward = sequence if backward else forward
        self._forward.append(forward)
        if self._own_stacks is not None:
            stack = self._own_stacks[info]
        elif self._by_functions:
            stack = self._stack(info, caller)
        else:
            return NONE
        if forward is not None:
            return self._sequences.get(forward, NONE)
        if sequence >= 0:
            self._remember(sequence, stack)
        return stack

    def _stack(self, info: int, caller: int) -> int:
        """The source location that a call has by the functions that it lies in."""
        facts = self._facts
        above = self._frames[caller] if caller != NONE else None
        function = facts.functions[info]
        self._frames.append(above if function is None else self._ops.stacks.inside(above, function))
        return NONE if above is None or facts.is_python[info] else above

    def _remember(self, sequence: int, stack: int) -> None:
        self._sequences.setdefault(sequence, stack)
        if len(self._sequences) > _SEQUENCES:
            for old in list(self._sequences)[: _SEQUENCES // 2]:
                del self._sequences[old]

    def _operators(self, infos: Ints, phases: Ints, stacks: Sequence[int]) -> Ints:
        """The operator of each call: its row is made the first time. (There are fewer than 2**24 source locations.)"""
        keys, which = np.unique((infos << 24 | np.array(stacks, np.int64) + 1) << 3 | phases, return_inverse=True)
        numbers = []
        for key in keys.tolist():
            if key not in self._op_ids:
                info, stack, phase = self._gathered.infos.values[key >> 27], (key >> 3) % (1 << 24) - 1, key % (1 << 3)
                self._op_ids[key] = self._ops.number(info, phase, None if stack == NONE else stack)
            numbers.append(self._op_ids[key])
        return np.array(numbers, np.int64)[which]

    def alike(self, parent: Ints) -> Bools:
        """Whether each call has the name of its caller; of those without one, it does not matter."""
        names = np.array(self._names, np.int64)
        same: Bools = names == names[parent]
        return same

    def open(self) -> list[int]:
        """Places of all open calls."""
        return [call for stack in self._open.values() for call in stack]

    def close(self) -> None:
        """Nothing is open any more."""
        self._open.clear()

    def keep(self, staying: Sequence[bool], places: Sequence[int]) -> None:
        """Forget calls; the others have new places."""
        self._ends, self._names, self._phases = (
            [value for value, stays in zip(values, staying, strict=True) if stays]
            for values in (self._ends, self._names, self._phases)
        )
        self._forward = [value for value, stays in zip(self._forward, staying, strict=True) if stays]
        if self._by_functions:
            self._frames = [value for value, stays in zip(self._frames, staying, strict=True) if stays]
        for track in [track for track, stack in self._open.items() if not stack]:
            del self._open[track]
        for stack in self._open.values():
            stack[:] = [places[call] for call in stack]


class _Facts:
    """What is the same for all calls of an info, by its number.

    `phases` is what its name tells (NONE for nothing), `engines` the name under which the engine runs it backward.
    """

    def __init__(self, gathered: Gathered, ops: Ops) -> None:
        infos = gathered.infos.values
        numbers: dict[str, int] = {}
        self.names = [numbers.setdefault(info.name, len(numbers)) for info in infos]
        own = [own_phase(info) for info in infos]
        self.phases = [NONE if phase is None else phase for phase in own]
        usual = UNKNOWN if gathered.dialect.lines else OTHER
        self.defaults = [FORWARD if info.category == "cpu_op" else usual for info in infos]
        self.engines = [numbers.get(ENGINE + info.name, -2) if info.category == "cpu_op" else -2 for info in infos]
        self.is_python = [info.category == "python_function" for info in infos]
        self.functions = [
            info.name if is_python and not info.name.startswith(_BUILT_IN) else None
            for info, is_python in zip(infos, self.is_python, strict=True)
        ]
        stacks = [ops.stacks.number(info.stack) for info in infos]
        self.stacks = [NONE if stack is None else stack for stack in stacks]


FLUSH = 1 << 13
_FIELDS = (
    "start", "end", "track", "info", "op_id", "exec_id", "parent", "depth", "callees", "closed", "host", "on_device",
    "dur_sum", "host_sum", "on_device_sum", "device_own", "device_sum",
)  # fmt: skip


class Tree:
    """Feeds on blocks by start; hands finished rows to `emit` in blocks.

    Rows of the pool are calls, callers in front of their callees; `parent` is a place in the pool, NONE for none.
    """

    def __init__(
        self,
        gathered: Gathered,
        ops: Ops,
        first_exec: int,
        emit: Callable[[Columns], None],
        emit_allocations: Callable[[list[tuple[int, ...]]], None],
    ) -> None:
        self.gathered = gathered
        self.memory = gathered.memory.finish()
        self.allocations = Allocations(emit_allocations)
        self.next_exec = first_exec
        self._emit = emit
        self._callers = Callers(gathered, ops)
        self._pool: Columns = {name: np.zeros(0, np.int64) for name in _FIELDS}
        self._taken: Ints = np.zeros((2, 0), np.int64)  # device work: its slot, and the place of its launcher
        self._with_device = gathered.launches.count > 0

    def add(self, block: Columns) -> None:
        """Take in rows of `call` by start."""
        calls = np.flatnonzero(block["kind"] == CALL)
        first = len(self._pool["start"])
        callers = self._callers.add(block)
        self._append({name: values[calls] for name, values in block.items()}, callers.parents, callers.op_ids)
        self._allocate(block, callers.above)
        if self._with_device:
            self._launch(block, calls, first, callers.above, callers.phases)
        self._settle(self._callers.open())

    def finish(self) -> None:
        """Close what is open."""
        self._callers.close()
        self._settle([])
        self.allocations.finish()

    def _append(self, rows: Columns, parents: Sequence[int], op_ids: Ints) -> None:
        """New calls at the end of the pool; their durations and memory belong to their callers' sums."""
        old, count = self._pool, len(op_ids)
        start, end = rows["start"], rows["end"]
        host, on_device = self.memory.between(start, end)
        nothing = np.zeros(count, np.int64)
        new = dict.fromkeys(_FIELDS, nothing) | {
            "start": start, "end": end, "track": rows["track"], "info": rows["info"], "op_id": op_ids,
            "exec_id": np.arange(self.next_exec, self.next_exec + count), "parent": np.array(parents, np.int64),
            "host": host, "on_device": on_device,
        }  # fmt: skip
        self.next_exec += count
        self._pool = pool = {name: np.concatenate([old[name], new[name]]) for name in _FIELDS}
        self._deepen(len(old["start"]))
        called = np.flatnonzero(new["parent"] != NONE)
        above = new["parent"][called]
        np.add.at(pool["callees"], above, 1)
        np.add.at(pool["dur_sum"], above, (end - start)[called])
        if len(self.memory.times):
            np.add.at(pool["host_sum"], above, host[called])
            np.add.at(pool["on_device_sum"], above, on_device[called])

    def _deepen(self, first: int) -> None:
        """Depths of the calls from a place on. They are only needed to add up device time, from below."""
        if self._with_device:
            depth, parent = self._pool["depth"].tolist(), self._pool["parent"].tolist()
            for call in range(first, len(depth)):
                above = parent[call]
                depth[call] = depth[above] + 1 if above != NONE else 0
            self._pool["depth"] = np.array(depth, np.int64)

    def _allocate(self, block: Columns, above: dict[int, int]) -> None:
        """Blocks of memory that were allocated or freed, in their order."""
        at = np.flatnonzero(block["kind"] == ALLOCATE)
        columns = [block[name][at].tolist() for name in ("start", "delta", "address", "device")]
        op_ids = self._pool["op_id"]
        for row, start, delta, address, device in zip(at.tolist(), *columns, strict=True):
            call = above[row]
            op_id = NONE if call == NONE else int(op_ids[call])
            self.allocations.add(start, delta=delta, address=address, device=device, op_id=op_id)
        self.allocations.flush(FLUSH)

    def _launch(self, block: Columns, calls: Ints, first: int, above: dict[int, int], phases: Ints) -> None:
        """Give device work to the first call that claims it: by its link, or as the caller of the launch."""
        launches, pool = self.gathered.launches, self._pool
        if launches.by_link:
            slots, places = launches.slots(block["link"][calls]), np.arange(first, first + len(calls))
        else:
            rows = np.array([row for row, call in above.items() if call != NONE], np.int64)
            rows = rows[block["kind"][rows] != ALLOCATE]
            slots = launches.slots(block["link"][rows])
            places = np.array([above[row] for row in rows.tolist()], np.int64)
        linked = slots != NONE
        slots, places = slots[linked], places[linked]
        slots, claims = np.unique(slots, return_index=True)
        places = places[claims]
        free = launches.starts[slots] == NONE
        slots, places = slots[free], places[free]
        launches.starts[slots], launches.phases[slots] = pool["start"][places], phases[places]
        launches.op_ids[slots] = pool["op_id"][places]
        np.add.at(pool["device_own"], places, launches.durations[slots])
        self._taken = np.concatenate([self._taken, np.stack([slots, places])], axis=1)

    def _settle(self, still_open: Sequence[int]) -> None:
        """Hand on the calls that are over, and keep the others."""
        pool = self._pool
        over = np.ones(len(pool["start"]), bool)
        over[list(still_open)] = False
        parent = pool["parent"]
        alike = self._callers.alike(parent)
        only = (parent != NONE) & (pool["callees"][parent] == 1) & alike
        folded, waiting = only & over[parent], over & only & ~over[parent]
        inner = _innermost(folded, parent)
        if self._with_device:
            self._add_device_time(over & (pool["closed"] == 0), folded, parent)
            self._name_launchers(inner, over & ~waiting)
        pool["closed"] = over.astype(np.int64)
        self._write(np.flatnonzero(over & ~folded & ~waiting), inner)
        self._keep(~over | waiting)

    def _add_device_time(self, closing: Bools, folded: Bools, parent: Ints) -> None:
        """From below, device time of what is over goes to its callers; a folded call's is that of its caller."""
        pool = self._pool
        own, below, depth = pool["device_own"], pool["device_sum"], pool["depth"]
        places = np.flatnonzero(closing | folded)
        places = places[np.argsort(-depth[places], kind="stable")]
        ends = np.flatnonzero(np.diff(depth[places], append=NONE))
        begin = 0
        for end in (ends + 1).tolist():
            level, begin = places[begin:end], end
            inside = level[folded[level]]
            over_it = parent[inside]
            own[over_it], below[over_it] = own[inside], below[inside]
            called = level[closing[level] & (parent[level] != NONE) & ~folded[level]]
            np.add.at(below, parent[called], own[called] + below[called])

    def _name_launchers(self, inner: Ints, numbered: Bools) -> None:
        """Executions that launched work, of calls whose own number is known by now."""
        slots, places = self._taken
        now = numbered[places]
        self.gathered.launches.execs[slots[now]] = self._pool["exec_id"][inner[places[now]]]
        self._taken = self._taken[:, ~now]

    def _write(self, places: Ints, inner: Ints) -> None:
        if not len(places):
            return
        pool, deep = self._pool, inner[places]
        start, end, parent = pool["start"][places], pool["end"][places], pool["parent"][places]
        host, on_device = pool["host"][places], pool["on_device"][places]
        order = np.argsort(start, kind="stable")
        rows: dict[str, Any] = {
            "op_id": pool["op_id"][places], "start": start, "end": end, "self_ns": end - start - pool["dur_sum"][deep],
            "track": pool["track"][places], "exec_id": pool["exec_id"][deep],
            "parent_id": np.where(parent == NONE, NONE, pool["exec_id"][parent]),
            "device_total_ns": pool["device_own"][deep] + pool["device_sum"][deep],
            "device_self_ns": pool["device_own"][deep], "memory_bytes": host,
            "self_memory_bytes": host - pool["host_sum"][deep], "device_memory_bytes": on_device,
            "self_device_memory_bytes": on_device - pool["on_device_sum"][deep],
        }  # fmt: skip
        self._emit({name: values[order] for name, values in rows.items()})

    def _keep(self, staying: Bools) -> None:
        """The pool of the next block: places change."""
        places = np.cumsum(staying) - 1
        pool = {name: values[staying] for name, values in self._pool.items()}
        pool["parent"] = np.where(pool["parent"] == NONE, NONE, places[pool["parent"]])
        self._pool = pool
        self._taken[1] = places[self._taken[1]]
        self._callers.keep(staying.tolist(), places.tolist())


def _innermost(folded: Bools, parent: Ints) -> Ints:
    """For each call, the last of those that are folded into it one after the other; itself for none."""
    inner = np.arange(len(parent))
    inside = np.flatnonzero(folded)
    inner[parent[inside]] = inside
    while True:
        further = inner[inner]
        if np.array_equal(further, inner):
            return inner
        inner = further
