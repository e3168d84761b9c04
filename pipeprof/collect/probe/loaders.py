"""What loaders have in common, whatever their library: a loop fetches batches, which stages make one after the other.

A library's module (such as `dataloader`) describes its loader once: the stages with their names and code, the workers
that run them, how many batches they make ahead, and the settings. It tells when a batch is fetched and when a stage
works. What is recorded is the same for all: an iterator with its graph, its fetches, times of stages, and how many
batches lie ready. `mindspore.dataset`, whose stages run side by side with queues between, has hooks of its own
(`dataset`, `callables`, `workers`) that record the same.
"""

import threading
import weakref

from . import callables, dataset, digest, lines, recorder, sizes, steps, weights, workers

KEPT = 256  # batches whose readiness is kept until it is written

WORKER = None  # type: tuple[Feed, dict[str, workers.Slot]] | None  # of this process, when it is one of a loader's
_starting = threading.local()
_iterations = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[object, int]  # of each loader
_feeds = weakref.WeakSet()  # type: weakref.WeakSet[Feed]


class Stage:
    """One kind of work on a batch. `is_alone`: it runs in the training's own thread, also where there are workers.

    `key` tells it from others of its kind.
    """

    def __init__(self, kind, function, is_alone=False, key=None):
        from . import describe

        self.kind = kind
        self.key = kind if key is None else key
        self.is_alone = is_alone
        self.facts = {"name": describe.callable_name(function), "code": describe.code_of(function)}


class Description:
    """A loader: its stages from the loop to the index order, worker processes, and what it was made with."""

    def __init__(self, owner, stages, count, ahead, batch, settings, composed=()):
        self.site, self.callers = callables.origin_of(owner)
        self.stages = stages
        self.count = count
        self.ahead = ahead
        self.batch = batch
        self.settings = settings
        self.composed = composed  # objects of the dataset whose `transforms` are stages

    def graph(self):
        """As `describe.describe` gives a dataset's."""
        children = []
        for node in reversed(range(len(self.stages))):
            stage = self.stages[node]
            apart = self.count > 0 and not stage.is_alone
            entry = {"type": stage.kind, "node": node, "python": True, "site": self.site, "callers": self.callers}
            entry.update(stage.facts, workers=max(1, self.count) if apart else 1, processes=apart, children=children)
            entry["inlined"] = True
            if node == 0:
                entry.update(batch=self.batch, capacity=self.ahead or None)
            children = [entry]
        return children[0]


class Feed:
    """One iterator of a loader: what `trees.Tree` is to a dataset's."""

    hidden = False

    def __init__(self, description):
        self.number = dataset._next_number()
        self.digest = digest.begin(self.number, description.site, hidden=False, of_loader=True)
        self.description = description
        self.rows = 0
        self.last_row = 0
        self.weigh_at = 1  # the row after which the batch is weighed
        self.weights = None
        self.forks = 0
        self.is_closed = False
        main = threading.current_thread() is threading.main_thread()
        self.other_thread = 0 if main else recorder.OTHER_THREAD
        self.cells = {}
        self._ready = []
        self._written = 0
        for node, stage in enumerate(description.stages):
            apart = description.count > 0 and not stage.is_alone
            cell = self.cells[stage.key] = workers.Workers(self) if apart else callables.Cell(self)
            cell.node, cell.part, cell.stages = node, 0, 2 * len(description.stages)
            if apart:
                cell.pool = workers.Pool(description.count)
        callables._cells.extend(self.cells.values())
        _feeds.add(self)

    def timer(self, key):
        """What counts the rows of a stage in this process; None where that is not to be known."""
        if WORKER is not None:
            return WORKER[1].get(key) if WORKER[0] is self else None
        cell = self.cells.get(key)
        return None if recorder.REC.off or isinstance(cell, workers.Workers) else cell

    def note(self, depth, held, tasks):
        """A batch was handed out; so many lie ready, so many of them were held up by it, so many are to be made."""
        self._ready.append((depth, held, tasks))
        if len(self._ready) >= KEPT:
            self.write()

    def write(self):
        """Leave in the spool what was noted."""
        ready, self._ready = self._ready, []
        if ready:
            depth, held, tasks = (list(column) for column in zip(*ready))
            recorder.REC.line("ready", number=self.number, first=self._written, depth=depth, held=held, tasks=tasks)
            self._written += len(ready)
        weights.tell(self)

    def plan(self, weigh_at):
        """Set the row after which a batch is weighed."""
        self.weigh_at = weigh_at

    def begun_again(self):
        """The loop goes through it once more."""
        if self.digest is not None:
            self.digest.epoch_left()

    def stopped(self):
        """The loop has come to its end."""
        if self.digest is not None:
            self.digest.epoch_ended()

    def close(self):
        """The loop has left it."""
        if not self.is_closed and not recorder.REC.off:
            self.is_closed = True
            self.write()
            callables.flush(self.number)
            recorder.REC.event("closed", number=self.number, rows=self.rows, last=self.last_row)

    def ended(self, begin):
        """Its workers are gone, which took the time since `begin`."""
        if not recorder.REC.off:
            recorder.REC.event("workers_ended", number=self.number, took=recorder.now() - begin)


def with_feed(original, describe, kept, made):
    """The method of a loader that makes an iterator, with a feed for that.

    `describe(loader)`: its description; `kept(loader)`: the feed of an iterator that it hands out once more, or None;
    `made(iterator)`: process ids of its workers.
    """

    def __iter__(self):
        feed, begin = None, 0
        try:
            _starting.depth = getattr(_starting, "depth", 0) + 1
            again = None if recorder.REC.off else kept(self)
            if again is not None:
                again.begun_again()
            elif not recorder.REC.off:
                begin = recorder.now()
                _prepare()
                feed = _starting.feed = Feed(describe(self))
        except Exception:
            recorder.REC.failed("loader")
        try:
            iterator = original(self)
        except BaseException as error:
            recorder.unseen(error)
            raise
        finally:
            _starting.feed = None
            _starting.depth -= 1
        try:
            if feed is not None:
                _tell(feed, begin, _iterations.get(self, 0))
                _iterations[self] = _iterations.get(self, 0) + 1
                _started(feed, made(iterator))
        except Exception:
            recorder.REC.failed("loader")
        return iterator

    return __iter__


def being_made():
    """The feed of the iterator that this thread is making, or else that this process is a worker of; or None."""
    if WORKER is not None and not getattr(_starting, "depth", 0):  # it is not making one of its own
        return WORKER[0]
    return getattr(_starting, "feed", None)


def _prepare():
    dataset._prepare()
    rec = recorder.REC
    if _write_all not in rec.closing:
        rec.closing.insert(0, _write_all)
        rec.periodic.append(_write_all)


def _write_all():
    for feed in list(_feeds):
        feed.write()


def _tell(feed, begin, iteration):
    description = feed.description
    recorder.REC.event(
        "iterator", number=feed.number, begin=begin, end=recorder.now(), thread=feed.other_thread, hidden=False,
        site=description.site, epochs=None, graph=description.graph(), settings=description.settings,
        iteration=iteration,
        queues="not_recorded: of this loader it is known how many batches were ready at each fetch",
    )  # fmt: skip


def with_fetches(original, feed_of, ready):
    """The method of an iterator that hands out a batch, recording that.

    `feed_of(iterator)`: its feed, or None; `ready(iterator)`: three numbers for `Feed.note`, or None.
    """
    now = recorder.now

    def __next__(self):
        rec, tree = recorder.REC, None
        try:
            # One that goes on where another training ended skips batches while it is made.
            tree = None if rec.off or getattr(_starting, "depth", 0) else feed_of(self)
        except Exception:
            rec.failed("loader")
        if tree is None:
            return original(self)
        if not steps.LOOP.model:
            steps.LOOP.before_fetch(tree)
        flag, halted = recorder.FAILED, recorder.guarded("lines", lines.LINES.halt)
        begin = end = 0
        try:
            begin = now()
        except Exception:
            rec.failed("clock")
        try:
            row = original(self)
            flag = recorder.ROW
        except StopIteration:
            flag = recorder.STOPPED
            recorder.guarded("digest", tree.stopped)
            raise
        except BaseException as error:
            recorder.unseen(error)
            raise
        finally:
            recorder.guarded("lines", lines.LINES.go_on, halted)
            try:
                end = now()
                rec.mark(recorder.FETCH, flag | tree.other_thread, tree.number, tree.rows, begin, end)
            except Exception:
                rec.failed("fetch")
        try:
            _handed_out(tree, row, end, ready(self))
        except Exception:
            rec.failed("loader")
        return row

    return __next__


def _handed_out(feed, row, end, readiness):
    feed.rows += 1
    feed.last_row = end
    if feed.rows >= feed.weigh_at:
        recorder.guarded("weights", weights.weigh, feed, row)
    if readiness is not None:
        feed.note(*readiness)
    if feed.digest is not None:
        feed.digest.add(row)


def timed(timer, original, *args):
    """Call a stage, and count its time for one row."""
    return timed_together(timer, 1, None, original, *args)


def timed_together(timer, rows, within, original, *args):
    """Call a stage, and count its time for so many rows, each with its part of the time.

    `within`: stages that run inside it, whose time is theirs (`Within`); None for none.
    """
    spent = None
    try:
        spent = timer.spent()
        begin = recorder.now()
    except Exception:
        recorder.REC.failed("loader")
    result = None
    try:
        result = original(*args)
        return result
    finally:
        try:
            if spent is not None and rows:
                wall, spent, size = recorder.now() - begin, timer.since(spent), sizes.of(result)
                if within is not None:
                    wall, spent = within.taken_from(wall, spent, rows)
                _add(timer, rows, wall, spent, None if size is None else size // rows)
        except Exception:
            recorder.REC.failed("loader")


def _add(timer, rows, wall, spent, made):
    each = tuple(None if part is None else part // rows for part in spent)
    for _ in range(rows):
        timer.add(wall // rows, each, None, made)


class Within:
    """What the stages inside of another one take of its time, row by row: of the thread that made this."""

    def __init__(self):
        self.thread = threading.get_ident()
        self.timers = []
        self._sums = []

    def place(self, timer):
        """A stage more; the number to call `timed` with."""
        self.timers.append(timer)
        self._sums.append((0, (0, 0, 0)))
        return len(self.timers) - 1

    def timed(self, place, call, args, kwargs):
        """Call such a stage, once or more for a row."""
        timer = spent = None
        try:
            if threading.get_ident() == self.thread:
                timer = self.timers[place]
                spent = timer.spent()
                begin = recorder.now()
        except Exception:
            recorder.REC.failed("loader")
        try:
            return call(*args, **kwargs)
        finally:
            try:
                if spent is not None:
                    wall, more = self._sums[place]
                    took = recorder.now() - begin
                    self._sums[place] = wall + took, _pairs(int.__add__, more, timer.since(spent))
            except Exception:
                recorder.REC.failed("loader")

    def taken_from(self, wall, spent, rows):
        """Count them for the rows that are done, and give what is left of the time around them."""
        for place, timer in enumerate(self.timers):
            own, more = self._sums[place]
            self._sums[place] = 0, (0, 0, 0)
            wall, spent = max(0, wall - own), _pairs(_left, spent, more)
            _add(timer, rows, own, more, None)
        return wall, spent


def _pairs(combine, some, others):
    return tuple(None if None in (one, other) else combine(one, other) for one, other in zip(some, others))


def _left(whole, part):
    return max(0, whole - part)


def _started(feed, pids):
    for cell in feed.cells.values():
        if isinstance(cell, workers.Workers):
            cell.pids = pids
            return  # they belong to the first stage that runs in them


def _forking():
    feed = getattr(_starting, "feed", None)
    if feed is not None:
        feed.forks += 1


def _forked():
    global WORKER
    feed, _starting.feed, _starting.depth = getattr(_starting, "feed", None), None, 0
    if feed is not None and 0 < feed.forks <= feed.description.count:
        apart = {key: cell for key, cell in feed.cells.items() if isinstance(cell, workers.Workers)}
        WORKER = (feed, {key: workers.Slot(cell, cell.pool.memory, feed.forks - 1) for key, cell in apart.items()})


recorder.at_fork(before=_forking, after_in_child=_forked)
