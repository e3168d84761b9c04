"""Blocks of memory, reconstructed from the samples that MindSpore takes of its pool on the CPU.

The pool is sampled once in each allocation, behind it, and once in each release, before it; a sample does not say
which of the two it is. So the level rises by the size of a block from one allocation to the next, falls by it from one
release to the next, stays from an allocation to a release, and changes by the difference from a release to an
allocation. Only there sizes are chosen: a block that is alive, best one that the operator before read or made, and
whose release makes what is allocated then as large as something that an operator reads, or that the next one writes.
Which of several blocks of one size was released is not recorded. An operator is followed by the releases of its own
workspaces, and of what it was the last to read: its largest block is its output, and so not among them.

Batches of a loader without hooks: how long the loop waited for each, from looks at where the training was.

Pure: marks and looks in, marks of fetches out. A look that finds the training at a wait counts for the time between an
update and the next call of the network, or for the rest of the step. The share of such looks, of as many consecutive
steps as have enough of them, is the share of that time in which the loop waited.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.spool.marks import Kind, Mark, Marks
from pipeprof.read.spool.sections import BACKWARD

if TYPE_CHECKING:
    from pipeprof.read.mindspore_ops import Execution, PoolSample
    from pipeprof.read.source.numbers import Ints
    from pipeprof.read.spool.amounts import Amounts
    from pipeprof.read.spool.operators import Placed, Recorded
    from pipeprof.read.tables.rows import RankRows

_ALIGNED = 512  # bytes: sizes in the pool are multiples of it
_SHAPE = re.compile(r"\[([\d, ]*)\]")
_ITEM = 4  # bytes: most tensors on the CPU are float32 or int32
_LIKELY = 3  # score of a choice that makes the next block as large as something that an operator reads
_SURE = 8  # what is released is the largest that the operator reads, what is allocated the largest that the next reads


@dataclass
class Block:
    """A block and its life, ns.

    `owner`: index of the execution that it was allocated for, None for a block of before the window. `evidence`, how
    its release is known: `matched`, the change is the size of a living block; `inferred`, the size was chosen;
    `earlier`, no such block was alive, so it is one of before the window; `unseen`, it was not released.
    """

    size: int
    produced_ns: int
    released_ns: int | None = None
    owner: int | None = None
    evidence: str = "unseen"


def add_blocks(out: RankRows, blocks: Sequence[Block], op_ids: Sequence[int]) -> None:
    """Write the lifetimes of blocks, whose owners are those of `op_ids`."""
    for block in blocks:
        out.add(
            "allocation", bytes=block.size, produced_ns=out.at(block.produced_ns),
            released_ns=None if block.released_ns is None else out.at(block.released_ns),
            op_id=None if block.owner is None else op_ids[block.owner], evidence=block.evidence,
        )  # fmt: skip


def of_operators(
    placed: Sequence[Placed], recorded: Recorded, amounts: Amounts
) -> tuple[list[Block], list[int | None]]:
    """The blocks of a process, and the bytes that each execution took, None in a window without samples.

    What it allocated counts, but for its workspaces: what it does not write, as far as that is known, and what was
    gone before the next one began, but for a single block. As in torch, a tensor that is released between two
    operators is of neither.
    """
    if not recorded.pool:
        return [], [None] * len(placed)
    executions, windows = [item.execution for item in placed], sorted(recorded.windows)
    writes = [amounts.written_by(item) for item in placed]
    blocks = reconstruct(recorded.pool, executions, windows, writes)
    begins, starts = [begin for begin, _ in windows], [execution.start_ns for execution in executions]
    sampled = {bisect_right(begins, sample.t_ns) for sample in recorded.pool}
    taken = [0 if bisect_right(begins, start) in sampled else None for start in starts]
    made = Counter(block.owner for block in blocks)
    for block in blocks:
        if block.owner is None:
            continue
        is_output = made[block.owner] == 1 or block.size in map(_in_pool, writes[block.owner])
        if is_output or not _is_gone(block, starts):
            taken[block.owner] = (taken[block.owner] or 0) + block.size
    return blocks, taken


def _is_gone(block: Block, starts: Sequence[int]) -> bool:
    """Whether a block was released before the operator behind its own began."""
    following = (block.owner or 0) + 1
    return block.released_ns is not None and (following == len(starts) or block.released_ns < starts[following])


def reconstruct(
    pool: Sequence[PoolSample],
    executions: Sequence[Execution],
    windows: Sequence[tuple[int, int]],
    writes: Sequence[Sequence[int]] = (),
) -> list[Block]:
    """The blocks of all windows; all in order of time. What was alive when a window but the last closed ends there.

    `writes`: bytes of the tensors that each execution writes, as far as they are known.
    """
    begins = [begin for begin, _ in windows]
    by_window: dict[int, list[PoolSample]] = defaultdict(list)
    for sample in pool:
        by_window[bisect_right(begins, sample.t_ns) - 1].append(sample)
    owners, last = _Owners(executions, writes), max(by_window, default=0)
    all_blocks: list[Block] = []
    for number, samples in sorted(by_window.items()):
        blocks = _Window(samples, owners).read()
        if number != last:
            for block in blocks:
                block.released_ns = samples[-1].t_ns if block.released_ns is None else block.released_ns
        all_blocks += blocks
    return all_blocks


class _Owners:
    """Which operator ran, or was to run, at a time; and the sizes of what operators read and write."""

    def __init__(self, executions: Sequence[Execution], writes: Sequence[Sequence[int]] = ()) -> None:
        self.starts = [execution.start_ns for execution in executions]
        self.ends = [execution.start_ns + execution.dur_ns for execution in executions]
        self.reads = [_sizes(execution.shapes) for execution in executions]
        self.read_sizes = set().union(*self.reads)
        self.writes = [{_in_pool(size) for size in sizes} for sizes in writes]

    def before(self, at: int) -> int:
        """The operator that began last; -1 when none has."""
        return bisect_right(self.starts, at) - 1

    def of(self, at: int) -> int | None:
        """The operator that an allocation is for: the one that runs, else the next."""
        before = self.before(at)
        if before >= 0 and at <= self.ends[before]:
            return before
        return before + 1 if before + 1 < len(self.starts) else None

    def read(self, operator: int) -> set[int]:
        return self.reads[operator] if 0 <= operator < len(self.reads) else set()

    def written(self, operator: int) -> set[int]:
        return self.writes[operator] if 0 <= operator < len(self.writes) else set()

    def begins_between(self, at: int, then: int) -> bool:
        return self.before(at) < self.before(then)


class _Window:
    """The samples of one window, read from the first to the last."""

    def __init__(self, samples: Sequence[PoolSample], owners: _Owners) -> None:
        self.samples, self.owners = samples, owners
        self.blocks: list[Block] = []
        self.alive: dict[int, list[Block]] = {}  # by size, the newest last; no size without a block, for all are tried
        self.held = samples[0].allocated  # of before the window, as far as it has not been seen to go

    def read(self) -> list[Block]:
        self._begin()
        releases = False  # whether the sample at hand is of a release
        for index in range(len(self.samples) - 1):
            change = self.samples[index + 1].allocated - self.samples[index].allocated
            if releases and not (change < 0 and self._is_release(index, change)):
                releases = not self._exchange(index, change)
            elif change > 0:
                self._allocate(index + 1, change)
            else:
                releases = True
                if change:
                    self._release(index, -change)
        if self.held > 0:
            self.blocks.append(Block(self.held, self.samples[0].t_ns))
        return self.blocks

    def _begin(self) -> None:
        """The first sample, if it is the only one before an operator whose output is known: of its allocation."""
        at = self.samples[0].t_ns
        size = max(self.owners.written(self.owners.of(at) or 0), default=0)
        alone = len(self.samples) > 1 and self.owners.begins_between(at, self.samples[1].t_ns)
        if alone and 0 < size <= self.held:
            self.held -= size
            self._allocate(0, size)

    def _is_release(self, index: int, change: int) -> bool:
        """Whether a fall behind a release is that alone, and the next sample that of another release.

        It is not where no such block is alive, or can be of before, and another one fits better, nor where one fits in
        every way, nor where the next sample is the last before an operator, which allocates, and the one behind it on
        the same level.
        """
        chosen = self._choice(index, change)
        if -change not in self.alive:
            return chosen is None or (chosen[0] < _LIKELY and -change <= self.held)
        if chosen is None or index + 2 >= len(self.samples):
            return True
        one, two = self.samples[index + 1 : index + 3]
        level = one.allocated == two.allocated and self.owners.begins_between(one.t_ns, two.t_ns)
        return chosen[0] < _SURE and not level

    def _exchange(self, index: int, change: int) -> bool:
        """A release and the next allocation, whose sizes differ by `change`; True, for what follows is no release."""
        chosen = self._choice(index, change)
        if chosen is not None:
            size = chosen[1]
            self._end(index, size, "inferred")
            change += size
        if change > 0:
            self._allocate(index + 1, change)
        return True

    def _choice(self, index: int, change: int) -> tuple[int, int] | None:
        """The best (score, size) of the living sizes that may have been released, of equals the smallest."""
        operator = self.owners.before(self.samples[index].t_ns)
        read, next_read = self.owners.read(operator), self.owners.read(operator + 1)
        written = self.owners.written(operator + 1)
        best = None
        for size, blocks in self.alive.items():
            then = size + change
            if then <= 0:
                continue
            score = 3 * (then in self.owners.read_sizes) + (then in next_read)
            score += 2 * (size in read) + (blocks[-1].owner in (operator, operator - 1))
            score += (size == max(read, default=0)) + (then == max(next_read, default=0)) + (then in written)
            if best is None or (score, -size) > (best[0], -best[1]):
                best = (score, size)
        return best

    def _allocate(self, index: int, size: int) -> None:
        at = self.samples[index].t_ns
        block = Block(size, at, None, self.owners.of(at))
        self.alive.setdefault(size, []).append(block)
        self.blocks.append(block)

    def _release(self, index: int, size: int) -> None:
        """A release whose size is known: of a living block, else of one of before the window, else of the nearest."""
        if size in self.alive:
            self._end(index, size, "matched")
        elif size <= self.held:
            self.held -= size
            self.blocks.append(Block(size, self.samples[0].t_ns, self.samples[index].t_ns, None, "earlier"))
        elif self.alive:
            self._end(index, min(self.alive, key=lambda living: (abs(living - size), living)), "inferred")

    def _end(self, index: int, size: int, evidence: str) -> None:
        """A block of this size is released: the oldest workspace of the operator before, else the newest of others."""
        operator, alive = self.owners.before(self.samples[index].t_ns), self.alive[size]
        own = [number for number, block in enumerate(alive) if block.owner == operator]
        others = [number for number, block in enumerate(alive) if block.owner != operator]
        is_workspace = own and (not others or size < self._largest(operator))
        block = alive.pop(own[0] if is_workspace else others[-1])
        if not alive:
            del self.alive[size]
        block.released_ns, block.evidence = self.samples[index].t_ns, evidence

    def _largest(self, operator: int) -> int:
        """Size of the largest block of the operator that allocated last."""
        newest = takewhile(lambda block: block.owner is not None and block.owner >= operator, reversed(self.blocks))
        return max((block.size for block in newest if block.owner == operator), default=0)


def _sizes(shapes: str | None) -> set[int]:
    """Bytes in the pool of tensors of these shapes."""
    items = [
        prod(int(length) for length in shape.split(",") if length.strip()) for shape in _SHAPE.findall(shapes or "")
    ]
    return {_in_pool(count * _ITEM) for count in items}


def _in_pool(size: int) -> int:
    """Bytes that the pool gives to so many."""
    return max(1, -(-size // _ALIGNED)) * _ALIGNED


WAITS = 1  # what a look found, as the probe numbers it
LEAST = 20  # looks of a training; fewer say nothing
TOGETHER = 200  # looks from which a share is taken

Look = tuple[int, int, int]  # time, what was found, number of the iterator


@dataclass
class _Gap:
    """The time between two updates; `called`: when the network was first called in it."""

    begin: int
    called: int
    end: int
    units: tuple[int, int]
    looks: list[Look] = field(default_factory=list)

    @property
    def lengths(self) -> tuple[int, int]:
        return self.called - self.begin, self.end - self.called

    def part(self, look: Look) -> int:
        """0 before the network was called, 1 after it."""
        return int(look[0] >= self.called)


def called_first(marks: Iterable[Mark]) -> Ints:
    """When the network, a backward pass or an optimizer was called, in order."""
    marks = Marks.of(marks)
    sections = marks.only(Kind.SECTION)
    return np.sort(
        np.concatenate([marks.only(Kind.CALL, Kind.UPDATE).begin, sections.begin[sections.flag == BACKWARD]])
    )


def with_sampled_fetches(marks: Iterable[Mark], looks: Sequence[Look]) -> Marks:
    """The marks with one of a fetch for each step that waited for a loader without hooks, in order of their end."""
    marks = Marks.of(marks)
    if len(looks) < LEAST:
        return marks
    counts: Counter[int] = Counter()
    fetches = []
    for block in _blocks(_gaps(marks, sorted(looks))):
        for gap, number, wait in _waits(block):
            fetches.append(Mark(Kind.FETCH, 0, number, counts[number], gap.begin, gap.begin + wait))
            counts[number] += 1
    if not fetches:
        return marks
    both = Marks(np.concatenate([marks.records, Marks.of(fetches).records]))
    return both[np.argsort(both.end, kind="stable")]


def _gaps(marks: Marks, looks: Sequence[Look]) -> Iterator[_Gap]:
    """The times between two updates in which no loader with hooks was asked."""
    updates = sorted(marks.only(Kind.UPDATE), key=lambda mark: mark.end)
    asked = sorted(marks.only(Kind.FETCH).begin.tolist())
    calls, times = called_first(marks).tolist(), [look[0] for look in looks]
    for before, after in pairwise(updates):
        begin, end = before.end, after.end
        if after.begin < begin or bisect_left(asked, begin) != bisect_left(asked, end):
            continue
        called = calls[bisect_left(calls, begin)]
        inside = looks[bisect_left(times, begin) : bisect_right(times, end)]
        yield _Gap(begin, called, end, (before.subject, after.subject), list(inside))


def _blocks(gaps: Iterable[_Gap]) -> list[list[_Gap]]:
    """Consecutive gaps with enough looks together; the last ones go with those before them."""
    blocks: list[list[_Gap]] = [[]]
    seen = 0
    for gap in gaps:
        if seen >= TOGETHER:
            blocks.append([])
            seen = 0
        blocks[-1].append(gap)
        seen += len(gap.looks)
    if seen < TOGETHER and len(blocks) > 1:
        last = blocks.pop()
        blocks[-1] += last
    return blocks


def _waits(block: Sequence[_Gap]) -> Iterator[tuple[_Gap, int, int]]:
    """(gap, iterator, ns) of those that waited. Gaps between the same two units are alike: several may make a step."""
    alike: dict[tuple[int, int], list[_Gap]] = defaultdict(list)
    for gap in block:
        alike[gap.units].append(gap)
    for gaps in alike.values():
        every, waiting = Counter[int](), Counter[int]()
        numbers: Counter[int] = Counter()
        for gap in gaps:
            every.update(gap.part(look) for look in gap.looks)
            waiting.update(gap.part(look) for look in gap.looks if look[1] == WAITS)
            numbers.update(look[2] for look in gap.looks if look[1] == WAITS)
        if numbers:
            shares = [waiting[part] / every[part] if every[part] else 0.0 for part in (0, 1)]
            number = min(numbers, key=lambda one: (-numbers[one], one))
            for gap in gaps:
                yield gap, number, round(sum(s * length for s, length in zip(shares, gap.lengths, strict=True)))
