"""Rows behind an operator are kept in memory, in the executed copy of a dataset: a cache that `tune` tries.

A source in Python and the maps behind it become one source. The first epoch calls the same functions, each by at most
as many threads as its operator had workers; later epochs hand out what they made. Rows of a source with a sampler are
known by their number, so a source that is shuffled goes on to be. What draws random numbers is refused where it shows;
where it does not, the fingerprints of two epochs differ.
"""

import collections
import contextlib
import functools
import itertools
import re
import sys
import threading
import weakref

from . import callables, chance, constant, describe, files, recorder, stand_in

MOST_THREADS = 64
ROW_BYTES = 200  # of Python's objects for a row with one array
SHARE = 2  # a cache may take one part of so many of the memory that is free, and of the container's
MEMORY, CONTAINER = "/proc/meminfo", "/sys/fs/cgroup/memory.max"

# The user's operator -> the rows that are kept behind it: every epoch's iterator has the same.
_made = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[object, Kept]


class Kept:
    """Rows that were made, up to a limit of bytes; beyond it none are kept, and all are made anew.

    `steps`: functions of a row (a tuple), each with the number of threads that may be in it. `number`: of the operator.
    `most`: rows of an epoch of a source that is iterated, where the script says so. `makers`: whose values must stay
    as they are.
    """

    def __init__(self, source, steps, limit, number, most=None, makers=()):
        self.source = source
        self.makers = [source, *makers]
        self.values = None
        self.most = most
        self.steps = [(step, threading.Semaphore(most)) for step, most in steps]
        self.threads = min(sum(most for _, most in steps) or 1, MOST_THREADS)
        self.limit = limit
        self.number = number
        self.rows = {}
        self.bytes = 0
        self.complete = self.full = self.reported = False
        self.lock = threading.Lock()

    def picked(self, numbers):
        """The rows of these numbers of a source that can be indexed, in their order: an epoch."""
        self._look_at_makers()
        wanted = ((int(number), functools.partial(self._read, number)) for number in numbers)
        return self._in_order(wanted, self.rows)

    def streamed(self):
        """The rows of an epoch of a source that can only be iterated.

        Until an epoch was read to its end, each has rows of its own: another iterator may be in another order.
        """
        self._look_at_makers()
        with self.lock:  # another iterator may throw the rows away
            rows = self.rows if self.complete else None
        if rows is not None:
            yield from (_copied(rows[number]) for number in range(len(rows)))
            return
        mine, source, given = {}, self.source, 0
        rows = itertools.islice(iter(source) if hasattr(source, "__iter__") else source(), self.most)
        # Copied before the source is asked for the next: it may fill the same memory again.
        wanted = ((number, functools.partial(_same, _as_row(row))) for number, row in enumerate(rows))
        try:
            with contextlib.closing(self._in_order(wanted, mine)) as made:
                for row in made:
                    given += 1
                    if given == self.most:  # nobody asks for more
                        self._finish(mine, given)
                    yield row
            self._finish(mine, given)
        finally:
            with self.lock:
                if mine is not self.rows:
                    self.bytes -= sum(_bytes(row) for row in mine.values())

    def _look_at_makers(self):
        """An epoch begins: rows that were made by other values than now are thrown away, and none is kept any more."""
        if self.full:
            return
        try:
            if self.values is None:
                self.values = constant.values_of(self.makers)
            name = constant.changed(self.values, self.makers)
        except Exception:
            recorder.REC.failed("kept_rows")
            name = "a value that cannot be read"
        if not name:
            return
        with self.lock:
            self.full, self.complete, self.bytes, self.rows = True, False, 0, {}
        recorder.REC.event("cache_stale", node=self.number, value=name)
        recorder.REC.warn(
            "cache_stale", "`%s` is not what it was when the rows were kept: none is kept, all are made anew" % name
        )

    def _finish(self, mine, number):
        with self.lock:
            if not self.full and not self.complete and len(mine) == number:
                self.rows, self.complete = mine, True

    def _in_order(self, wanted, rows):
        """Rows that are kept in `rows` or made, in the order of `wanted`: their numbers, with what reads each.

        All are copies: MindSpore hands the memory of a row on to the training, which may change it in place.
        """
        from concurrent.futures import Future, ThreadPoolExecutor

        ahead = collections.deque()
        pool = ThreadPoolExecutor(self.threads)
        try:
            for number, read in wanted:
                row = rows.get(number)
                ahead.append(pool.submit(self._make, number, read, rows) if row is None else row)
                if len(ahead) > self.threads:
                    row = ahead.popleft()
                    yield _copied(row.result() if isinstance(row, Future) else row)
            while ahead:
                row = ahead.popleft()
                yield _copied(row.result() if isinstance(row, Future) else row)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _read(self, number):
        return _as_row(self.source[number])

    def _make(self, number, read, rows):
        """A row through all steps; the source is called as one more of them."""
        row = None
        for index, (step, most) in enumerate(self.steps):
            with most:
                row = step(read() if index == 0 else row)
        with self.lock:
            self._keep(number, row, rows)
        return row

    def _keep(self, number, row, rows):
        if self.full or number in rows:
            return
        self.bytes += _bytes(row)
        if self.bytes <= self.limit:
            rows[number] = row
            return
        self.full, self.complete, self.bytes, self.rows = True, False, 0, {}  # a whole epoch that is read stays whole
        rows.clear()
        recorder.REC.event("cache_full", node=self.number, limit=self.limit)
        recorder.REC.warn(
            "cache_full",
            "the rows of an epoch take more than the %d MiB that a cache may have, or hold dicts, whose size is not "
            "known: none is kept, all are made anew" % (self.limit >> 20),
        )


def why_not(dataset, node, number):
    """Why the rows behind an operator cannot be kept; "" when they can."""
    nodes = list(stand_in.nodes_of(dataset))
    if any(len(getattr(one, "children", None) or []) > 1 for one in nodes):
        return "the pipeline has several branches"
    chain = nodes[number:]
    kinds = [describe._kind(one) for one in chain]
    if kinds[-1] != "GeneratorOp" or any(kind != "MapOp" for kind in kinds[:-1]):
        return "only rows of a GeneratorDataset and the maps behind it can be kept, not those of %s" % kinds[0]
    source = chain[-1]
    if getattr(source, "has_batch_sampler", False) or not getattr(source, "column_names", None):
        return "the source has a batch sampler, or no names of columns"
    for one in chain[:-1]:
        if len(one.output_columns or [0]) != len(one.input_columns or [0]) or getattr(one, "callbacks", None):
            return "a map makes other columns, or has callbacks"
    if _skips_errors():
        return "rows that fail are skipped or replaced (set_error_samples_mode)"
    drawn = [name for one in chain for name in chance.drawn_by(one)]
    return "`%s` draws random numbers, as far as can be seen" % drawn[0] if drawn else ""


def _skips_errors():
    config = getattr(sys.modules.get("mindspore.dataset"), "config", None)
    mode = getattr(config, "get_error_samples_mode", int)()
    return int(mode) != 0  # 0: the error ends the training


def instead(node, copied, spec):
    """The source that is to be parsed instead of the copy of an operator."""
    chain = list(stand_in.nodes_of(copied))
    leaf = chain[-1]
    columns, steps = list(leaf.column_names), [(_same, _threads(leaf))]
    originals = list(stand_in.nodes_of(node))
    for one, mine in reversed(list(zip(chain[:-1], originals))):
        steps.append((_step(mine, columns), _threads(one)))
    if node not in _made:
        most = getattr(leaf, "num_samples", 0) or None
        makers = callables._leaves([operation for one in originals[:-1] for operation in one.operations or []])
        room = min(int(spec["cache"]), _room())
        _made[node] = Kept(leaf.source, steps, room, spec.get("node"), most, [_bare(one) for one in makers])
    kept = _made[node]
    leaf.num_parallel_workers, leaf.python_multiprocessing = 1, False
    leaf.column_names, leaf.column_types, leaf.schema = columns, [], None
    if leaf.sampler is not None and hasattr(leaf.source, "__getitem__"):
        leaf.prepare_multiprocessing = functools.partial(_prepare, leaf, kept)
    else:
        leaf.source = kept.streamed
    if not kept.reported:
        kept.reported = True
        recorder.REC.closing.append(
            lambda: recorder.REC.line("kept_rows", node=kept.number, rows=len(kept.rows), bytes=kept.bytes)
        )
    return None if leaf is copied else leaf


def _bare(operation):
    """The user's function, which MindSpore wraps."""
    return getattr(operation, "transform", operation)


def _threads(node):
    """How many threads may be in an operator's functions: one where processes were, each with objects of its own."""
    return 1 if getattr(node, "python_multiprocessing", False) else node.num_parallel_workers or 1


def _room():
    """Bytes that a cache may take here: a training that is ended for want of memory proves nothing."""
    rooms = []
    for path, number in ((MEMORY, r"MemAvailable:\s*(\d+) kB"), (CONTAINER, r"^(\d+)$")):
        try:
            with files.open_file(path, encoding="ascii") as file:
                match = re.search(number, file.read().strip())
        except OSError:
            continue
        if match is not None:
            rooms.append(int(match.group(1)) * (1024 if path == MEMORY else 1) // SHARE)
    return min(rooms, default=float("inf"))


def redescribe(entry):
    """Let the description of an operator say that a source stands in its place."""
    leaf = entry
    while leaf.get("children"):
        leaf = leaf["children"][0]
    name = "cache after %s" % (entry.get("name") or entry["type"])
    facts = dict(leaf, node=entry["node"], site=entry.get("site"), name=name, workers=1, processes=False, children=[])
    entry.clear()
    entry.update(facts)


def _prepare(leaf, kept):
    """What MindSpore's own does for a source with a sampler and one worker."""
    leaf.sample_fn = None
    leaf.prepared_source = functools.partial(kept.picked)
    recorder.guarded("callables", callables._hang_source, leaf)


def _same(row):
    return row


def _step(node, columns):
    """A map as a function of a whole row; `columns` are those that it gets, and then those that it hands on."""
    names = list(node.input_columns or columns[:1])
    places = [columns.index(name) for name in names]
    for index, name in zip(places, node.output_columns or names):
        columns[index] = name
    make = stand_in._real(node.operations)

    def step(row):
        made = _as_row(make(*(row[index] for index in places)), tuple)  # a list is one column
        row = list(row)
        for index, value in zip(places, made):
            row[index] = value
        return tuple(row)

    return step


def _as_row(value, several=(tuple, list)):
    """What a source or a map returned as a tuple of arrays, none of which is the user's: the next map may change it."""
    return _copied(value if isinstance(value, several) else (value,))


def _copied(row):
    import numpy as np

    return tuple(part if isinstance(part, dict) else np.array(_plain(part), order="C") for part in row)


def _bytes(row):
    """What a row takes; a dict, which cannot be copied as an array can, more than any cache has."""
    return ROW_BYTES + sum(getattr(part, "nbytes", float("inf")) for part in row)


def _plain(part):
    return part.asnumpy() if hasattr(part, "asnumpy") else part
