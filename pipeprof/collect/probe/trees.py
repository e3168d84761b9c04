"""The trees of dataset iterators, and MindSpore's dataset profiling manager, which samples the queues of one of them.

The manager is used in one order only, `init, start, (save)*, stop, save`, once per tree, because stopping and starting
it on a live tree corrupts the training's heap. It watches one tree at a time: the next tree is registered when the
previous one is gone; trees that overlap have fetches but no queue samples, and say so.
"""

import os
import shutil
import sys
import threading
import weakref

from . import files, hooks, readings, recorder

BATCHES = 1024  # records of so many batches are kept by MindSpore, until they are taken from it
SAMPLES = 2000  # about so many readings of the queues; then half as many come in the same time, and so on
NEVER = sys.maxsize
FEW = "few file descriptors are left, and MindSpore's sampler needs some: no queue samples from then on"


class Tree(hooks.Tree):
    """What the probe knows about one iterator."""

    def __init__(self, iterator, number, hidden):
        self.ref = weakref.ref(iterator)
        self.number = number
        self.hidden = hidden
        self.rows = 0
        self.last_row = 0
        self.take_at = 1  # the row after which something is to be done: the lesser of the next two
        self.readings_at = NEVER  # MindSpore's records of batches are taken
        self.weigh_at = 1  # the batch is weighed
        self.weights = None
        self.taken = 0
        self.facts = {}
        self.registered = False
        self.nested = False
        self.digest = None
        self.plain = True  # its batches are only counted
        self.other_thread = 0 if threading.current_thread() is threading.main_thread() else recorder.OTHER_THREAD

    def plan(self, **rows):
        """Set the row after which something is to be done: `readings_at` or `weigh_at`."""
        self.__dict__.update(rows)
        self.take_at = min(self.readings_at, self.weigh_at)

    def alive(self):
        """Whether the C++ tree still exists."""
        iterator = self.ref()
        return iterator is not None and "_runtime_context" in iterator.__dict__


class Trees:
    """Owns the dataset profiling manager."""

    def __init__(self, manager, config, interval):
        self.manager = manager
        self.config = config
        self.interval = interval
        self.current = None
        self.lock = threading.RLock()
        self.closed = True
        self.saves = 0
        self.next_save = 0
        self.next_still = 0
        self.opened = 0
        self.restore = None
        self.readings = readings.find()
        self.spacing = interval  # of the readings now, ms
        self.next_slower = 0

    def register(self, tree):
        """Let the manager watch the tree that is about to be built; returns why not, or an empty text."""
        with self.lock:
            if self.current is not None and self.current.alive():
                return "not_recorded: iterator %d was still alive" % self.current.number
            if files.look():
                return "not_recorded: few file descriptors are left, and MindSpore's sampler needs some"
            if files.are_limited():
                return "not_recorded: the size of files is limited (ulimit -f)"
            if not self.closed:
                self.manager.stop()
            self.manager.init()
            before = self.config.get_monitor_sampling_interval()
            self.config.set_monitor_sampling_interval(self.interval)
            self.manager.start()
            self.restore = before
            self.current, self.closed, self.saves = tree, False, 0
            tree.registered = True
            tree.plan(readings_at=BATCHES if self.readings is not None else NEVER)
            self.opened = recorder.now()
            self.spacing = self.interval
            self.next_slower = self.opened + SAMPLES * self.interval * 1_000_000
            self.next_save = self.opened + 1_000_000_000
            self.next_still = 0
            return ""

    def built(self):
        """The tree runs, and its sampler has read the interval: put the user's setting back."""
        if self.restore is not None:
            self.config.set_monitor_sampling_interval(self.restore)
            self.restore = None

    def forget(self, tree):
        """The tree could not be built."""
        with self.lock:
            if self.current is tree:
                self.finish(tree)
                self.current = None

    def finish(self, tree):
        """Stop watching, once, and keep the samples. The tree may still be alive, but is about to end."""
        with self.lock:
            if self.current is not tree or self.closed:
                return
            self.closed = True
            self.manager.stop()
            if not recorder.REC.off:
                self._save("final")

    def give_up(self):
        """Stop watching for good, though the tree lives on."""
        tree = self.current
        if tree is not None and not self.closed:
            recorder.REC.warn("queues_ended", FEW)
            self.finish(tree)

    def checkpoint(self):
        """From the flushing thread: keep the samples so far, more and more rarely (a save writes all of them)."""
        at = recorder.now()
        tree = self.current
        if tree is None or self.closed or at < self.next_save or not tree.rows:
            return
        with self.lock:
            if self.closed or self.current is not tree or not tree.alive():
                return
            self._save("part")
        elapsed = at - self.opened
        self.next_save = at + max(min(elapsed, 25_000_000_000), int(elapsed * 0.08), 1_000_000_000)

    def take(self, tree):
        """From the thread that fetches: write MindSpore's records of the batches, and have it forget them."""
        tree.plan(readings_at=tree.rows + 1)
        if not self.lock.acquire(False):  # they are being saved
            return
        try:
            records = self.readings.take() if self.current is tree and not self.closed else None
            tree.plan(readings_at=NEVER)
            if records is not None:
                recorder.REC.line("batches", number=tree.number, first=tree.taken, **records)
                tree.taken += len(records["depth"])
                tree.plan(readings_at=tree.rows + BATCHES)
        finally:
            self.lock.release()

    def slow_down(self):
        """From the flushing thread: readings come half as often whenever the time since the first has doubled."""
        at = recorder.now()
        if self.closed or self.readings is None or at < self.next_slower:
            return
        with self.lock:
            tree = self.current
            if self.closed or tree is None or not tree.alive():
                return
            self.next_slower = at + (at - self.opened)
            if self.readings.slow_down(self.spacing, 2 * self.spacing):
                self.spacing *= 2
                recorder.REC.line("spacing", number=tree.number, ms=self.spacing)

    def still(self, at):
        """Nothing moves: keep the samples so far, for who asks why; as rarely as `checkpoint` does.

        Not while the training holds the lock: whoever waits for it would stand still as well.
        """
        if at < self.next_still or not self.lock.acquire(False):
            return
        try:
            self.next_still = at + int((at - self.opened) * 0.08)
            self.keep()
        finally:
            self.lock.release()

    def keep(self):
        """Keep the samples so far, now: the recording ends before the tree does."""
        with self.lock:
            if not self.closed and self.current is not None and self.current.rows and self.current.alive():
                self._save("part")

    def _save(self, kind):
        if files.are_limited():
            return
        folder = os.path.join(recorder.REC.folder, "tree-%d" % self.current.number)
        self.saves += 1
        name = "%s-%d" % (kind, self.saves)
        temporary = os.path.join(folder, "." + name)
        if not os.path.isdir(folder):
            files.mkdir(folder)
        files.mkdir(temporary)
        self.manager.save(temporary)
        files.rename(temporary, os.path.join(folder, name))
        for old in files.listdir(folder):  # each save has all samples; somebody may be reading the one before
            number = old.rpartition("-")[2]
            if number.isdigit() and int(number) < self.saves - 1:
                shutil.rmtree(os.path.join(folder, old), ignore_errors=True)
