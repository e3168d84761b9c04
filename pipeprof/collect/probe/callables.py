"""Times the user's own Python in the dataset: sources, map functions, per_batch_map. Wall time and CPU time per call.

Nothing of the user's is replaced: MindSpore calls user functions through a few classes and functions of its own, and
those are hooked. An operator's cell hangs on MindSpore's object for the executed copy of the dataset, whose pickled
state does not hold it. Not every call is timed, only as many as cost nothing. What is called in worker processes is
counted there (workers.py).
"""

import functools
import itertools
import sys
import threading
import weakref
from collections import deque

from . import delay, gil, instructions, recorder, sizes, where, workers

ATTRIBUTE = "_pipeprof_cell"
FLUSHES = 4
TIMED_KINDS = ("GeneratorOp", "MapOp", "BatchOp")

_building = threading.local()
_cells = []  # type: list[Cell | workers.Workers]
_sites = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[object, tuple[str, str]]
_lock = threading.Lock()


class Cell:
    """What was measured of one function of one operator of a tree since the last flush."""

    def __init__(self, tree):
        self.tree = weakref.ref(tree)
        self.number = tree.number
        self.node = self.part = None
        self.counter = itertools.count(1)  # of the calls, and of the times that they were taken
        self.counted = 0
        self.more = deque()  # rows that are counted by the batch; other threads than that which takes them add some
        self.rows = 0
        self.every = 1
        self.stages = 1  # that run one after the other in this thread, and share the bound on what is timed
        self.batches = 0  # since the last flush
        self.fetches = 0
        self.untold = 0  # calls before the last flush, which told of none
        self.timed = []
        self.window = instructions.window()

    def skips(self):
        """Whether the next call is only counted."""
        return recorder.REC.off or next(self.counter) % self.every

    def takes(self, rows):
        """Whether the rows of the next batch, which are counted here, are timed."""
        timed = not recorder.REC.off and self.fetches % self.every == 0
        self.batches += 1
        self.fetches += 1
        self.count(rows, timed)
        return timed

    def count(self, rows, _timed):
        """Count rows: those that are timed, too."""
        self.more.append(rows)

    def spent(self):
        """CPU time of the thread that calls, the time in which it was ready to run but had no core (ns), bytes read."""
        gil.runs(self)
        return recorder.thread_cpu(), delay.of_thread(), delay.read_by_thread()

    def since(self, before):
        """The same of a call that has just ended; `before` is what had been spent when it began."""
        cpu = recorder.thread_cpu() - before[0]
        read = delay.read_since(before[2])
        return cpu, delay.between(before[1], delay.of_thread()), read

    def add(self, wall, spent, given=None, made=None):
        """Keep the figures of a timed call: ns, what it spent, and the bytes that it was given and made."""
        self.timed.append((wall, *spent, given, made))

    def take(self, last=False):
        """The figures since the last time, or None; decides how many of the next calls are timed.

        `last`: none follow, so that calls of which none was timed are told, too.
        """
        timed, self.timed = self.timed, []
        before, self.counted = self.counted, next(self.counter)
        count = self.counted - before - 1 + sum(self.more.popleft() for _ in range(len(self.more)))
        self.every = workers.stride(count * self.stages)
        count, self.untold = count + self.untold, 0
        if self.batches:  # whole batches are timed: one in four flushes at least, however many rows it has
            self.every, self.batches = min(self.every, FLUSHES * self.batches), 0
        if not timed and not (last and count):  # they are told with those that follow
            self.untold = count
            return None
        tree = self.tree()
        rows = tree.rows if tree is not None else self.rows
        batches, self.rows = rows - self.rows, rows
        walls, cpus, waits, reads, given, made = zip(*timed) if timed else ((),) * 6
        return {
            "pipeline": self.number,
            "node": self.node,
            "part": self.part,
            "calls": count,
            "batches": batches,
            "timed": len(timed),
            "wall": sum(walls),
            "cpu": sum(cpus),
            "delay": _sum(waits),
            "read": _sum(reads),
            "given": _sum(given),
            "made": _sum(made),
            "max": max(walls, default=None),
            "min": min(walls, default=None),
        }


class Build:
    """The operators of a tree that is being built: MindSpore parses them from the sources to the sink."""

    def __init__(self, tree, graph):
        self.tree = tree
        self.nodes = {kind: [] for kind in TIMED_KINDS}
        self.made = {kind: [] for kind in TIMED_KINDS}
        self._walk(graph)

    def _walk(self, node):
        for child in node.get("children") or []:
            self._walk(child)
        if node["type"] in self.nodes:
            self.nodes[node["type"]].append(node.get("node"))

    def operator(self, kind):
        """The cells of the next operator of its kind, to be filled: one for each of its functions."""
        self.made[kind].append([])
        return self.made[kind][-1]

    def finish(self):
        """Give each cell its node, where there are as many of the kind as in the user's graph."""
        for kind, operators in self.made.items():
            if len(operators) != len(self.nodes[kind]):
                continue
            for cells, node in zip(operators, self.nodes[kind]):
                for part, cell in enumerate(cells):
                    cell.node, cell.part = node, part
                    _cells.append(cell)


def begin(tree, graph):
    """A tree of the user's is about to be built in this thread."""
    _building.now = Build(tree, graph)


def end():
    """It has been built, or could not be."""
    build, _building.now = getattr(_building, "now", None), None
    if build is not None:
        build.finish()


def flush(number=None):
    """Write what was measured: of one tree, which ends, or of all."""
    if not _lock.acquire(False):
        return
    try:
        at = recorder.now()
        for cell in list(_cells):
            if number is not None and cell.number != number:
                continue
            counts = cell.window.take() if cell.window is not None else None
            if counts:
                recorder.REC.line(
                    "instructions", t=at, pipeline=cell.number, node=cell.node, part=cell.part, counts=counts
                )
            last = number is not None or cell.tree() is None
            figures = cell.take(last)
            if figures is not None:
                recorder.REC.line("calls", t=at, **figures)
            if last:
                _cells.remove(cell)
        delay.forget()
    finally:
        _lock.release()


def forget():
    """Drop what was counted while nothing was recorded, and the cells of iterators that are gone."""
    with _lock:
        for cell in list(_cells):
            cell.take()
            if cell.tree() is None:
                _cells.remove(cell)


def origin_of(dataset):
    """file:line of the call that made a dataset operator, and of the calls that led there: see `where`."""
    try:
        return _sites.get(dataset, ("", ""))
    except TypeError:
        return "", ""


def install_datasets(module):
    """mindspore.dataset.engine.datasets: where operators are made and parsed."""
    workers.wrap(module.Dataset, "__init__", _with_site)
    workers.wrap(module.MapDataset, "parse", _with_map_cells)
    workers.wrap(module.BatchDataset, "parse", _with_batch_cell)
    workers.install_datasets(module)


def install_sources(module):
    """mindspore.dataset.engine.datasets_user_defined: how Python sources are called."""
    workers.wrap(module.GeneratorDataset, "prepare_multiprocessing", _with_source_cell)
    workers.wrap(module._PickleGeneratorSource, "__getitem__", functools.partial(_timed_method, given=_nothing))
    workers.install_sources(module)


def install_functions(module):
    """mindspore.dataset.transforms.py_transforms_util: how Python functions of map and batch are called."""
    workers.wrap(module.FuncWrapper, "__call__", _timed_method)


def _timed_method(original, given=sizes.together):
    now = recorder.now

    def call(self, *args):
        cell = self.__dict__.get(ATTRIBUTE)
        spent = counted = None
        try:
            if cell is not None and not cell.skips():
                counted = cell.window and cell.window.next()
                spent = None if counted else cell.spent()
                begin_ns = now()
        except Exception:
            spent = counted = None
            recorder.REC.failed("callables")
        if counted:
            return cell.window.counted(counted, original, self, *args)
        if spent is None:
            return original(self, *args)
        result = None
        try:
            result = original(self, *args)
            return result
        finally:
            try:
                wall, spent = now() - begin_ns, cell.since(spent)  # before anything is looked at
                cell.add(wall, spent, given(args), sizes.of(result))
            except Exception:
                recorder.REC.failed("callables")

    return call


def _nothing(_):
    """A source is given numbers of rows, no data."""
    return 0


def _sum(figures):
    """Of all timed calls; None when one of them does not say."""
    return None if None in figures else sum(figures)


def _timed_rows(cell, function, *args):
    """The rows of a source; the time of each from the request to the row."""
    now = recorder.now
    rows = iter(function(*args))
    while True:
        spent = counted = None
        try:
            if not cell.skips():
                counted = cell.window and cell.window.next()
                spent = None if counted else cell.spent()
                begin_ns = now()
        except Exception:
            spent = counted = None
            recorder.REC.failed("callables")
        try:
            row = cell.window.counted(counted, next, rows) if counted else next(rows)
        except StopIteration:
            return
        except BaseException as error:
            recorder.unseen(error)
            raise
        try:
            if spent is not None:
                wall, spent = now() - begin_ns, cell.since(spent)
                cell.add(wall, spent, 0, sizes.of(row))
        except Exception:
            recorder.REC.failed("callables")
        yield row


def _with_site(original):
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            frame = sys._getframe(1)
            _sites[self] = where.site(frame), where.callers(frame)
        except Exception:
            recorder.REC.failed("site")

    return __init__


def _with_map_cells(original):
    def parse(self, *args, **kwargs):
        node = original(self, *args, **kwargs)
        recorder.guarded("callables", _hang_map, self)
        return node

    return parse


def _with_batch_cell(original):
    def parse(self, *args, **kwargs):
        recorder.guarded("callables", _hang_batch, self)
        return original(self, *args, **kwargs)

    return parse


def _with_source_cell(original):
    def prepare_multiprocessing(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        recorder.guarded("callables", _hang_source, self)
        return result

    return prepare_multiprocessing


def _hang_map(dataset):
    build = getattr(_building, "now", None)
    if build is None:
        return
    cells = build.operator("MapOp")
    pool = getattr(dataset, "process_pool", None)
    if pool is not None:
        cells.append(workers.watch(pool, build.tree))
        return
    for operation in _leaves(dataset.operations):
        _hang(operation, build, cells)


def _leaves(operations):
    for operation in operations:
        inner = getattr(operation, "transforms", None)
        if isinstance(inner, (list, tuple)):
            yield from _leaves(inner)
        else:
            yield operation


def _hang_batch(dataset):
    build = getattr(_building, "now", None)
    if build is None:
        return
    cells = build.operator("BatchOp")
    pool = getattr(dataset, "process_pool", None)
    if pool is not None:
        cells.append(workers.watch(pool, build.tree))
    else:
        _hang(getattr(dataset, "per_batch_map", None), build, cells)


def _hang(operation, build, cells):
    if type(operation).__name__ == "FuncWrapper":
        cells.append(Cell(build.tree))
        operation.__dict__[ATTRIBUTE] = cells[-1]


def _hang_source(dataset):
    build = getattr(_building, "now", None)
    if build is None:
        return
    cells = build.operator("GeneratorOp")
    if getattr(dataset, "sample_fn", None) is None:
        source = dataset.prepared_source
        if isinstance(source, functools.partial):
            cells.append(Cell(build.tree))
            dataset.prepared_source = functools.partial(_timed_rows, cells[-1], source)
    elif type(dataset.source).__name__ == "_PickleGeneratorSource":
        forks = dataset.python_multiprocessing
        cells.append(workers.watch(dataset.sample_fn, build.tree) if forks else Cell(build.tree))
        dataset.source.__dict__[ATTRIBUTE] = cells[-1]
