"""Times the rows in the dataset's worker processes: how many, their wall and CPU time, and how long they had no core.

Workers are forked while MindSpore starts the pool of an operator. Before that the pool gets memory that both sides
share, with a slot for each worker: the worker alone writes it, after each row, and the training reads it twice a
second, so nothing is lost with a worker that is killed. A worker knows its slot by inheritance: nothing is pickled, and
no object of the user's is touched. Workers that are spawned inherit nothing: of them only the process ids are known.
"""

import mmap
import struct
import threading
import weakref

from . import delay, live, recorder

AIM = 100  # timed rows per operator and flush
STRIDES = (1, 2, 3, 5, 7, 11, 17, 29, 47, 79, 127, 211, 347, 577, 953, 1597)  # mostly primes: no beat with powers of 2

# What the training says to all workers: the number of its readings, and every how many rows one is timed
ORDERS = struct.Struct("2q")
# What a worker says: rows; of the timed ones their number, wall, CPU and delay (ns), bytes read and made; the number of
# those whose bytes are not known; longest and shortest since a reading (ns), and the number of that reading
FIGURES = struct.Struct("11q")
SUMMED = 8  # of these are sums over all rows
TRIES = 4  # to read a slot while its worker does not write it

SLOT = None  # type: Slot | None  # of this process, when it is a worker
_starting = threading.local()
_workers = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[object, Workers]


def stride(calls):
    """Every how many calls one is timed, when so many were made since the last flush."""
    return next((number for number in STRIDES if number >= calls / AIM), STRIDES[-1])


class Slot:
    """What one worker counts, on the worker's side."""

    def __init__(self, workers, memory, index):
        self.workers = workers
        self._memory = memory
        self._offset = ORDERS.size + index * FIGURES.size
        self._rows = self._timed = self._wall = self._cpu = self._delay = self._longest = self._shortest = 0
        self._read = self._made = self._unsized = 0
        self._reading = -1
        self._began = None
        self._watched = False
        self._batches = 0

    @property
    def rows(self):
        """Rows so far."""
        return self._rows

    def skips(self):
        """Whether the next row is not timed; it is counted then."""
        if not self._watched:
            self._watched = True
            live.worker(self)
        (_, every) = ORDERS.unpack_from(self._memory, 0)
        if not self._rows % every:
            return False
        self._rows += 1
        self._write()
        return True

    def takes(self, rows):
        """Whether the rows of the next batch are timed; else they are counted here."""
        (_, every) = ORDERS.unpack_from(self._memory, 0)
        self._batches += 1
        timed = (self._batches - 1) % every == 0
        self.count(rows, timed)
        return timed

    def count(self, rows, timed):
        """Count rows that are not timed: the others are counted when they are done."""
        if not timed:
            self._rows += rows
            self._write()

    def begin(self):
        """A row has arrived."""
        self._began = None if self.skips() else (self.spent(), recorder.now())

    def end(self):
        """It is finished, or has failed."""
        if self._began is not None:
            spent, began = self._began
            self._began = None
            wall = recorder.now() - began
            self.add(wall, self.since(spent))

    def spent(self):
        """CPU time of this worker's threads, the time in which it was ready to run but had no core (ns), bytes read."""
        return recorder.process_cpu(), delay.of_thread(), delay.read_by_thread()

    def since(self, before):
        """The same of a row that has just ended; `before` is what had been spent when it began."""
        cpu = recorder.process_cpu() - before[0]
        read = delay.read_since(before[2])
        return cpu, delay.between(before[1], delay.of_thread()), read

    def add(self, wall, spent, _given=None, made=None):
        """Count a timed row of `made` bytes, and what it spent."""
        cpu, waited, read = spent
        self._read += read or 0
        self._made += made or 0
        self._unsized += made is None
        self._rows += 1
        self._timed += 1
        self._wall += wall
        self._cpu += cpu
        self._delay += waited or 0
        (reading, _) = ORDERS.unpack_from(self._memory, 0)
        if reading != self._reading:
            self._reading, self._longest, self._shortest = reading, wall, wall
        self._longest, self._shortest = max(self._longest, wall), min(self._shortest, wall)
        self._write()

    def _write(self):
        FIGURES.pack_into(
            self._memory, self._offset, self._rows, self._timed, self._wall, self._cpu, self._delay, self._read,
            self._made, self._unsized, self._longest, self._shortest, self._reading,
        )  # fmt: skip


class Pool:
    """The memory of one start of an operator's workers, on the training's side."""

    def __init__(self, count):
        self.forks = 0
        self.memory = mmap.mmap(-1, ORDERS.size + count * FIGURES.size)
        self.count = count
        self._before = [(0,) * SUMMED] * count
        self._readings = self._rows = 0
        self._order(1)

    def slot(self, workers):
        """The slot of the process that has just been forked, or None when it is no worker (the last one cleans up)."""
        return Slot(workers, self.memory, self.forks - 1) if self.forks <= self.count else None

    def take(self, last=False):
        """The sums of all workers, the longest and the shortest row since the last time.

        None when no timed row was finished, unless it is the `last` time. Decides how many of the next rows are timed.
        """
        all_figures = [self._figures(index) for index in range(self.count)]
        sums = [
            sum(figures[field] - before[field] for figures, before in zip(all_figures, self._before))
            for field in range(SUMMED)
        ]
        rows = sum(figures[0] for figures in all_figures)
        self._order(stride(rows - self._rows))
        self._rows = rows
        changed = [figures for figures, before in zip(all_figures, self._before) if figures[1] > before[1]]
        if not changed and not (last and sums[0]):
            return None
        self._before = [figures[:SUMMED] for figures in all_figures]
        longest = max((figures[SUMMED] for figures in changed), default=None)
        return (*sums, longest, min((figures[SUMMED + 1] for figures in changed), default=None))

    def _order(self, every):
        self._readings += 1
        ORDERS.pack_into(self.memory, 0, self._readings, every)

    def _figures(self, index):
        offset = ORDERS.size + index * FIGURES.size
        figures = FIGURES.unpack_from(self.memory, offset)
        for _ in range(TRIES):
            again, figures = figures, FIGURES.unpack_from(self.memory, offset)
            if again == figures:
                break
        return figures


class Workers:
    """The worker processes of one operator of a tree. Written and forgotten like the cells of functions in threads."""

    window = None  # what they execute is not counted

    def __init__(self, tree):
        self.tree = weakref.ref(tree)
        self.number = tree.number
        self.node = self.part = None
        self.pool = None
        self.pids = []
        self._batches = 0
        self._reported = None

    def skips(self):
        """Whether the next call is not timed: outside of these workers none is."""
        return SLOT is None or SLOT.workers is not self or SLOT.skips()

    def spent(self):
        """What the worker has spent."""
        return SLOT.spent()

    def since(self, before):
        """What the worker has spent since then."""
        return SLOT.since(before)

    def add(self, wall, spent, _given=None, made=None):
        """Count a timed call, in the worker."""
        SLOT.add(wall, spent, None, made)

    def take(self, last=False):
        """The figures since the last time, or None; says which processes they are of when these have changed."""
        self._tell()
        figures = self.pool.take(last) if self.pool is not None else None
        if figures is None:
            return None
        tree = self.tree()
        batches = tree.rows if tree is not None else self._batches
        since, self._batches = batches - self._batches, batches
        names = ("calls", "timed", "wall", "cpu", "delay", "read", "made", "unsized", "max", "min")
        facts = dict(zip(names, figures), pipeline=self.number, node=self.node, part=self.part, batches=since)
        if not delay.is_known():
            facts["delay"] = None
        if not delay.is_known(delay.READING):
            facts["read"] = None
        if facts.pop("unsized"):
            facts["made"] = None
        return facts

    def _tell(self):
        current = (recorder.REC, self.pids)
        if self.pids and current != self._reported:
            self._reported = current
            recorder.REC.line("workers", pipeline=self.number, node=self.node, pids=self.pids)


def watch(pool, tree):
    """The Workers of a pool of MindSpore's, which is about to be started for an operator of the tree."""
    _workers[pool] = Workers(tree)
    return _workers[pool]


def install_datasets(module):
    """mindspore.dataset.engine.datasets: pools of maps and batches, and the messages that bring and take their rows."""
    wrap(getattr(module, "_PythonMultiprocessing", None), "create_pool", _with_memory)
    messages = getattr(module.cde, "MessageQueue", None)
    wrap(messages, "msg_rcv", _beginning)
    wrap(messages, "msg_snd", _ending)
    recorder.at_fork(before=_forking, after_in_child=_forked)


def install_sources(module):
    """mindspore.dataset.engine.datasets_user_defined: pools of sources."""
    wrap(getattr(module, "SamplerFn", None), "launch", _with_memory)


def wrap(owner, name, make):
    """Put what `make` makes of a method in its place; nothing where there is no such method."""
    original = getattr(owner, name, None)
    if original is None:
        return
    wrapped = make(original)
    wrapped.__wrapped__ = original
    wrapped.__name__ = name
    setattr(owner, name, wrapped)


def _with_memory(original):
    def start(self, *args, **kwargs):
        workers = recorder.guarded("workers", _workers.get, self)
        if workers is None:
            return original(self, *args, **kwargs)
        recorder.guarded("workers", _prepare, workers, self)
        try:
            return original(self, *args, **kwargs)
        finally:
            _starting.workers = None
            recorder.guarded("workers", _note_processes, workers, self)

    return start


def _prepare(workers, pool):
    count = pool.num_worker if hasattr(pool, "num_worker") else pool.num_parallel_workers
    workers.pool, workers.pids = Pool(count), []
    _starting.workers = workers


def _note_processes(workers, pool):
    workers.pids = [worker.pid for worker in pool.workers or [] if worker.pid is not None]


def _beginning(original):
    def msg_rcv(self, *args):
        result = original(self, *args)
        if SLOT is not None:
            recorder.guarded("workers", SLOT.begin)
        return result

    return msg_rcv


def _ending(original):
    def msg_snd(self, *args):
        if SLOT is not None:
            recorder.guarded("workers", SLOT.end)
        return original(self, *args)

    return msg_snd


def _forking():
    workers = getattr(_starting, "workers", None)
    if workers is not None:
        workers.pool.forks += 1


def _forked():
    global SLOT
    workers = getattr(_starting, "workers", None)
    _starting.workers = None
    SLOT = workers.pool.slot(workers) if workers is not None else None
