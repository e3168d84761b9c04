"""The callers of calls, found one after the other: phases and source locations are handed down from them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeprof.read.chrome.ops import BACKWARD, DATA, FORWARD, HANDED_DOWN, OTHER, UNKNOWN, own_phase
from pipeprof.read.chrome.spill import CALL, NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipeprof.read.chrome.gather import Gathered
    from pipeprof.read.chrome.ops import Ops
    from pipeprof.read.chrome.spill import Columns

_SEQUENCES = 100_000
_BUILT_IN = "<built-in"  # functions that say no place, and often name an object by its address
ENGINE = "autograd::engine::evaluate_function: "


class Called(NamedTuple):
    """Of each call of a block: the place of its caller in the pool (NONE for none), and its operator.

    `phases` are those of the whole pool; `above` is, for rows of other kinds, the place of the innermost open call.
    """

    parents: list[int]
    op_ids: NDArray[np.int64]
    phases: NDArray[np.int64]
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
        self._frames: list[int | None] = []  # where no call has its stack: the innermost function of Python
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
        stack = self._stack(info, caller)
        if stack is None:
            return NONE
        if forward is not None:
            return self._sequences.get(forward, NONE)
        if sequence >= 0:
            self._remember(sequence, stack)
        return stack

    def _stack(self, info: int, caller: int) -> int | None:
        """The source location that a call has itself, or by the functions that it lies in; None: they are not noted."""
        facts = self._facts
        if self._gathered.with_stacks:
            self._frames.append(None)
            return facts.stacks[info]
        above = self._frames[caller] if caller != NONE else None
        if not self._by_functions:
            self._frames.append(None)
            return None
        function = facts.functions[info]
        self._frames.append(above if function is None else self._ops.stacks.inside(above, function))
        return NONE if above is None or facts.is_python[info] else above

    def _remember(self, sequence: int, stack: int) -> None:
        self._sequences.setdefault(sequence, stack)
        if len(self._sequences) > _SEQUENCES:
            for old in list(self._sequences)[: _SEQUENCES // 2]:
                del self._sequences[old]

    def _operators(
        self, infos: NDArray[np.int64], phases: NDArray[np.int64], stacks: Sequence[int]
    ) -> NDArray[np.int64]:
        """The operator of each call: its row is made the first time. (There are fewer than 2**24 source locations.)"""
        keys, which = np.unique((infos << 24 | np.array(stacks, np.int64) + 1) << 3 | phases, return_inverse=True)
        numbers = []
        for key in keys.tolist():
            if key not in self._op_ids:
                info, stack, phase = self._gathered.infos.values[key >> 27], (key >> 3) % (1 << 24) - 1, key % (1 << 3)
                self._op_ids[key] = self._ops.number(info, phase, None if stack == NONE else stack)
            numbers.append(self._op_ids[key])
        return np.array(numbers, np.int64)[which]

    def alike(self, parent: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each call has the name of its caller; of those without one, it does not matter."""
        names = np.array(self._names, np.int64)
        same: NDArray[np.bool_] = names == names[parent]
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
