"""Stacks of operators for flame graphs: folded text and speedscope's JSON.

Folded text has one line per stack, `outermost;...;innermost weight`, as flamegraph.pl and its relatives read it.
Speedscope's format: https://www.speedscope.app/file-format-schema.json.

What operators cost under each chain of operators that called them, in memory that does not grow with the run.

Executions go to disk by their number, then each is put below its
caller in a tree of names: what is held is the tree, which has a node per different chain, and a few pages.
"""

from __future__ import annotations

import json
import tempfile
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof import escape
from pipeprof.errors import RunError, UsageError
from pipeprof.query.engine import Engine
from pipeprof.query.part import Part
from pipeprof.report.timeline.clock import no_such_steps, stored_ranks
from pipeprof.report.timeline.read import batches, integers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    from numpy.typing import NDArray
    from typing_extensions import Self

    from pipeprof.record.run import Run, Share


WAYS = ("stack", "call", "scope")
UNITS = {"host": "nanoseconds", "device": "nanoseconds", "count": "none", "memory": "bytes"}
COLUMNS = {"host": "host_ns", "device": "device_ns", "count": "count", "memory": "memory_bytes"}
NO_STACK = "(no stack)"
_LAST = 2**62
_CYCLE = 10_000  # frames: more than any real stack has


class Stack(NamedTuple):
    """Frames, the outermost first, and what was spent in the last of them."""

    frames: tuple[str, ...]
    weight: int


class Question(NamedTuple):
    """What is drawn. `way`: stack (source locations), call (operators that call operators), scope (modules of the net).

    `depth` keeps that many innermost frames of the source location (None: all), as `group_by_stack_n` does. `steps`
    is from the first up to, and without, the second; None: everything. `only` the stacks of one (rep, rank).
    """

    way: str | None = None
    weight: str = "host"
    depth: int | None = None
    steps: tuple[int | None, int | None] | None = None
    only: tuple[int, int] | None = None


Profiles = dict[tuple[int, int], list[Stack]]
_Weighted = tuple[tuple[int, int], tuple[str, ...], int]


def stacks(run: Run, question: Question) -> tuple[str, Profiles]:
    """The way that was taken, and the stacks of each (rep, rank), by frames; weights are positive.

    Without a way: the first of WAYS that the run has. Raises UsageError when there is nothing to draw,
    RunError when frames of a location, or executions, call each other.
    """
    first, last = question.steps or (None, None)
    steps = Steps(-1 if question.steps is None else first or 0, _LAST if last is None else last - 1)
    way = question.way or _best(run, question.only)
    if question.depth is not None and way != "stack":
        raise UsageError(
            f"--depth keeps frames of source locations, and these stacks are by {way}", "leave --depth out"
        )
    weighted = _by_call(run, question, steps) if way == "call" else _by_location(run, way, question, steps)
    profiles = _summed(weighted)
    if not profiles:
        _check_steps(run, steps)
        raise UsageError(f"no stacks: the run has nothing for --weight {question.weight}", _hint(question))
    return way, profiles


def _by_call(run: Run, question: Question, steps: Steps) -> Iterator[_Weighted]:
    for rep, rank in [question.only] if question.only else stored_ranks(run, ("op",)):
        for frames, weight in call_stacks(run, rep, rank, question.weight, steps):
            yield (rep, rank), frames, weight


def _by_location(run: Run, way: str, question: Question, steps: Steps) -> list[_Weighted]:
    with Engine.open(run, lazily=True, part=question.only and Part.of_rank(*question.only)) as engine:
        frames = _Frames(engine.rows("stack/frames"), question.depth) if way == "stack" else None
        rows = engine.rows("stack/by_location", first_step=steps.first, last_step=steps.last)
    column = COLUMNS[question.weight]
    return [((row["rep"], row["rank"]), _path(row, frames), row[column]) for row in rows if row[column]]


def folded(profiles: Profiles) -> str:
    """Folded text; the repetition and rank are the outermost frames where there is more than one."""
    lines = []
    for (rep, rank), profile in profiles.items():
        before = [f"rep {rep}", f"rank {rank}"] if len(profiles) > 1 else []
        lines += [f"{';'.join(_plain(frame) for frame in (*before, *one.frames))} {one.weight}" for one in profile]
    return "\n".join(lines) + "\n"


def speedscope(profiles: Profiles, name: str, weight: str) -> str:
    """Speedscope's JSON: one profile per repetition and rank."""
    numbers: dict[str, int] = {}
    drawn = []
    for (rep, rank), profile in profiles.items():
        samples = [[numbers.setdefault(frame, len(numbers)) for frame in one.frames] for one in profile]
        weights = [one.weight for one in profile]
        drawn.append(
            {
                "type": "sampled",
                "name": f"rep {rep}, rank {rank}",
                "unit": UNITS[weight],
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        )
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "pipeprof",
        "name": escape.line(name),
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": escape.line(frame)} for frame in numbers]},
        "profiles": drawn,
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


class _Frames:
    """Chains of frames by (rep, rank) and stack_id, the outermost first."""

    def __init__(self, rows: Iterable[dict[str, object]], depth: int | None) -> None:
        self._rows = {((row["rep"], row["rank"]), row["stack_id"]): row for row in rows}
        self._depth = depth
        self._chains: dict[tuple[tuple[int, int], object], tuple[str, ...]] = {}

    def of(self, key: tuple[int, int], stack_id: object) -> tuple[str, ...]:
        stack = (key, stack_id)
        if stack not in self._chains:
            self._chains[stack] = self._chain(key, stack_id)
        return self._chains[stack]

    def _chain(self, key: tuple[int, int], stack_id: object) -> tuple[str, ...]:
        most = self._depth or 2 * _CYCLE
        frames: list[str] = []
        row = self._rows.get((key, stack_id))
        while row is not None and len(frames) < most:
            frames.append(str(row["frame"]))
            if len(frames) > _CYCLE:
                raise RunError(f"frames call each other in table `stack`: {frames[-1]}", "import the profile again")
            row = self._rows.get((key, row["parent_id"]))
        return tuple(reversed(frames)) if frames else (NO_STACK,)


def _path(row: dict[str, Any], frames: _Frames | None) -> tuple[str, ...]:
    """The operator below the frames that called it, or the parts of its name."""
    if frames is None:
        return tuple(row["name"].split("/"))
    return (*frames.of((row["rep"], row["rank"]), row["stack_id"]), row["name"])


def _best(run: Run, only: tuple[int, int] | None) -> str:
    """The first of WAYS that the run has."""
    with Engine.open(run, lazily=True, part=only and Part.of_rank(*only)) as engine:
        rows = engine.rows("stack/coverage")
    if any(row["located"] for row in rows):
        return "stack"
    return "call" if any(row["called"] for row in rows) else "scope"


def _check_steps(run: Run, steps: Steps) -> None:
    """Raise UsageError when the run has none of these steps."""
    if steps.first < 0:
        return
    with Engine.open(run, lazily=True) as engine:
        if not engine.rows("timeline/step_window", first=steps.first, last=steps.last):
            raise no_such_steps(engine)


def _summed(weighted: Iterable[_Weighted]) -> Profiles:
    """Stacks of equal frames added up, by frames; what is not above 0 (more freed than allocated) is left out."""
    totals: dict[tuple[int, int], dict[tuple[str, ...], int]] = {}
    for key, frames, weight in weighted:
        mine = totals.setdefault(key, {})
        mine[frames] = mine.get(frames, 0) + weight
    profiles = {key: [Stack(*pair) for pair in sorted(totals[key].items()) if pair[1] > 0] for key in sorted(totals)}
    return {key: profile for key, profile in profiles.items() if profile}


def _hint(question: Question) -> str:
    others: Sequence[str] = [name for name in UNITS if name != question.weight]
    return f"try --weight {others[0]}, or see `pipeprof report` for what was recorded"


def _plain(frame: str) -> str:
    """A frame without what separates frames, lines, and the weight."""
    return " ".join(escape.line(frame).replace(";", ":").split()) or "-"


NONE = -1
PAGE = 1 << 14  # rows
_HELD = 64  # pages


class Paged:
    """`columns` integers per number (0 and above); NONE where nothing was put. The file goes with the `with` block.

    Numbers that lie near each other are cheap to use together. Raises RunError when the disk is full.
    """

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._file = tempfile.TemporaryFile(prefix="pipeprof-")  # noqa: SIM115 - closed by __exit__
        self._slots: dict[int, int] = {}
        self._held: OrderedDict[int, NDArray[np.int64]] = OrderedDict()
        self._changed: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def pages(self) -> list[int]:
        """Those in which something was put, from the first number to the last."""
        return sorted(self._slots)

    def page(self, number: int) -> NDArray[np.int64]:
        """Rows PAGE * number and on, shape (PAGE, columns); `put` changes what is stored, not this array."""
        rows = self._held.get(number)
        if rows is None:
            rows = self._held[number] = self._read(number)
            self._shrink()
        self._held.move_to_end(number)
        return rows

    def get(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows by number, shape (len(numbers), columns)."""
        rows = np.full((len(numbers), self._columns), NONE, np.int64)
        for page, places in _by_page(numbers):
            if page in self._slots:
                rows[places] = self.page(page)[numbers[places] % PAGE]
        return rows

    def put(self, numbers: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Store rows, shape (len(numbers), columns)."""
        for page, places in _by_page(numbers):
            self._slots.setdefault(page, len(self._slots))
            held = self.page(page)
            self._changed.add(page)
            held[numbers[places] % PAGE] = rows[places]

    def _read(self, number: int) -> NDArray[np.int64]:
        rows = np.full((PAGE, self._columns), NONE, np.int64)
        slot = self._slots.get(number)
        if slot is not None:
            self._file.seek(slot * rows.nbytes)
            stored = np.frombuffer(self._file.read(rows.nbytes), np.int64)
            if stored.size == rows.size:
                rows = stored.reshape(rows.shape).copy()
        return rows

    def _shrink(self) -> None:
        while len(self._held) > _HELD:
            page, rows = self._held.popitem(last=False)
            if page in self._changed:
                self._changed.discard(page)
                self._write(self._slots[page] * rows.nbytes, rows)

    def _write(self, at: int, rows: NDArray[np.int64]) -> None:
        try:
            self._file.seek(at)
            self._file.write(rows.data)
        except OSError as error:
            where = f"a temporary file in `{tempfile.gettempdir()}`"
            hint = "free some space, or set TMPDIR to a folder on another disk"
            raise RunError(f"cannot write {where}: {error.strerror}", hint) from error


def _by_page(numbers: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
    """Each page with the places in `numbers` that lie on it."""
    if not len(numbers):
        return []
    pages = numbers // PAGE
    order = np.argsort(pages, kind="stable")
    edges = np.flatnonzero(np.diff(pages[order])) + 1
    return [(int(pages[part[0]]), part) for part in np.split(order, edges)]


_ROOT = 0
_DEEPEST = 10_000  # calls in each other: more than any real program has
_NULL = -(2**63)
_HOST = "CPU"  # of op_info.device
_COLUMNS = ("exec_id", "parent_id", "op_id", "step", "side", "dur_ns", "self_ns", "self_memory_bytes")
_AGAIN = "import the profile again"


class Steps(NamedTuple):
    """The first and the last step that count. Executions outside of steps count when `first` is below 0."""

    first: int
    last: int


def call_stacks(run: Run, rep: int, rank: int, weight: str, steps: Steps) -> Iterator[tuple[tuple[str, ...], int]]:
    """Names of a chain, the outermost first, and what was spent in its last; weights of 0 are left out.

    `weight`: host, device, count or memory. An execution whose caller is not within the steps begins a chain. Raises
    RunError when executions share a number or call each other.
    """
    files = {name: run.shares(name, rep, rank) for name in ("op", "op_info")}
    tree = _Tree()
    names = _Names(files["op_info"], tree)
    with Paged(3) as calls, Paged(1) as nodes:
        for table in batches(files["op"], _COLUMNS):
            _store(_chosen(table, steps), weight, names, tree, calls)
        _place(tree, calls, nodes)
    yield from tree.chains()


class _Tree:
    """Chains of names as a tree. Node 0 is the root, which has no name."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._nodes: dict[int, int] = {}
        self._parents, self._own, self._depths, self._totals = [NONE], [NONE], [0], [0]

    def name(self, text: str) -> int:
        """The number of a name."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.names)
            self.names.append(text)
        return number

    def add(self, above: NDArray[np.int64], names: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The node of each name below a node, with the weight added to it.

        Raises RunError when it lies too deep.
        """
        keys, inverse = np.unique((above << 32) | names, return_inverse=True)
        sums = np.zeros(len(keys), np.int64)
        np.add.at(sums, inverse, weights)
        nodes = [self._node(key) for key in keys.tolist()]
        for node, total in zip(nodes, sums.tolist(), strict=True):
            self._totals[node] += total
        return np.array(nodes, np.int64)[inverse]

    def _node(self, key: int) -> int:
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = len(self._own)
            above = key >> 32
            self._parents.append(above)
            self._own.append(key & 0xFFFFFFFF)
            self._depths.append(self._depths[above] + 1)
            self._totals.append(0)
            if self._depths[node] > _DEEPEST:
                raise RunError(f"more than {_DEEPEST:,} calls in each other in table `op`", _AGAIN)
        return node

    def chains(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Names and weight of every node that has one."""
        for node, total in enumerate(self._totals):
            if total:
                chain, at = [], node
                while at != _ROOT:
                    chain.append(self.names[self._own[at]])
                    at = self._parents[at]
                yield tuple(reversed(chain)), total


class _Names:
    """Operators' names by op_id, as numbers of the tree; and which operators have a device that is not the host."""

    def __init__(self, files: Sequence[Share], tree: _Tree) -> None:
        self._tree = tree
        self._numbers: dict[int, int] = {}
        on_device: list[int] = []
        for row in (row for table in batches(files, ("op_id", "name", "device")) for row in table.to_pylist()):
            if row["name"] is not None:
                self._numbers[row["op_id"]] = tree.name(row["name"])
            if row["device"] not in (None, _HOST):
                on_device.append(row["op_id"])
        self._on_device = np.array(on_device, np.int64)

    def of(self, op_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number as text where an operator has no name; empty where there is no number either."""
        different, inverse = np.unique(op_ids, return_inverse=True)
        numbers = [self._number(op_id) for op_id in different.tolist()]
        return np.array(numbers, np.int64)[inverse]

    def on_device(self, table: pa.Table) -> NDArray[np.bool_]:
        """Which executions ran on a device: by their side, else by the device of their operator."""
        side = table.column("side").cast(pa.string())
        by_operator = pa.array(np.isin(integers(table, "op_id", _NULL), self._on_device))
        ran_there: NDArray[np.bool_] = pc.coalesce(pc.equal(side, "device"), by_operator).to_numpy()
        return ran_there

    def _number(self, op_id: int) -> int:
        if op_id not in self._numbers:
            self._numbers[op_id] = self._tree.name("" if op_id == _NULL else str(op_id))
        return self._numbers[op_id]


def _chosen(table: pa.Table, steps: Steps) -> pa.Table:
    number = integers(table, "step", -1)
    return table.filter(pa.array((number >= steps.first) & (number <= steps.last)))


def _weights(table: pa.Table, weight: str, names: _Names) -> NDArray[np.int64]:
    """What each execution adds; 0 where it has none of it."""
    if weight == "count":
        return np.ones(table.num_rows, np.int64)
    if weight == "memory":
        return integers(table, "self_memory_bytes")
    on_device = names.on_device(table)
    lasted = integers(table, "dur_ns")
    if weight == "host":
        own = integers(table, "self_ns", _NULL)
        return np.where(on_device, 0, np.where(own == _NULL, lasted, own))
    return np.where(on_device, lasted, 0)


def _store(table: pa.Table, weight: str, names: _Names, tree: _Tree, calls: Paged) -> None:
    """Put executions by their number; those without one have no caller and call nothing."""
    number, parent = integers(table, "exec_id", NONE), integers(table, "parent_id", NONE)
    rows = np.stack([parent, names.of(integers(table, "op_id", _NULL)), _weights(table, weight, names)], axis=1)
    alone = number < 0
    tree.add(np.full(int(alone.sum()), _ROOT), rows[alone, 1], rows[alone, 2])
    number, rows = number[~alone], rows[~alone]
    if len(np.unique(number)) < len(number) or (calls.get(number)[:, 1] != NONE).any():
        raise RunError("two executions have the same number in table `op`", _AGAIN)
    calls.put(number, rows)


def _place(tree: _Tree, calls: Paged, nodes: Paged) -> None:
    """Put every execution below its caller: page by page, and again while callers come later than what they call."""
    pages = calls.pages()
    while pages:
        waiting = {page: _place_page(page, tree, calls, nodes) for page in pages}
        left = {page: count for page, (count, _) in waiting.items() if count}
        if left and not any(done for _, done in waiting.values()):
            raise RunError(f"{sum(left.values())} executions call each other in table `op`", _AGAIN)
        pages = list(left)


def _place_page(page: int, tree: _Tree, calls: Paged, nodes: Paged) -> tuple[int, int]:
    """Place what can be placed of a page; how many must wait for their callers, and how many were placed."""
    rows = calls.page(page).copy()
    mine = nodes.get(page * PAGE + np.arange(PAGE))[:, 0]
    open_ = np.flatnonzero((rows[:, 1] != NONE) & (mine == NONE))
    above = _above(rows[open_, 0], calls, nodes)
    before = len(open_)
    while True:
        ready = above != NONE
        if not ready.any():
            break
        chosen = open_[ready]
        mine[chosen] = tree.add(above[ready], rows[chosen, 1], rows[chosen, 2])
        open_, above = open_[~ready], above[~ready]
        inside = rows[open_, 0] // PAGE == page
        above[inside] = mine[rows[open_[inside], 0] % PAGE]
    placed = np.flatnonzero(mine != NONE)
    nodes.put(page * PAGE + placed, mine[placed, None])
    return len(open_), before - len(open_)


def _above(parents: NDArray[np.int64], calls: Paged, nodes: Paged) -> NDArray[np.int64]:
    """The node of each caller: the root for one that is not there, NONE for one that is not placed yet."""
    callers = np.full(len(parents), _ROOT, np.int64)
    called = np.flatnonzero(parents >= 0)
    there = called[calls.get(parents[called])[:, 1] != NONE]
    callers[there] = nodes.get(parents[there])[:, 0]
    return callers


__all__ = ["Steps", "call_stacks"]
