"""Counts the steps of a training while it runs, with the rules that the reader applies afterwards."""

import _thread
import sys
import threading

from . import hooks, iterables, recorder, windows

FETCHED_AHEAD = (
    "another thread than the one that trains reads batches: the time that this takes counts as waiting for data, "
    "although the training may not have waited"
)
NO_UNIT = -1


class Loop(hooks.Loop):
    """Counts finished training steps as they happen."""

    def __init__(self):
        self.model = 0
        self.thread = threading.main_thread().ident  # the one that trains
        self.inside = 0  # nested calls belong to the outermost one
        self.calls = 0  # outermost calls that have begun
        self.updates_seen = False
        self.pending = set()
        self.fetched = False
        self.feeding = set()  # iterators whose batches led to updates
        self.since = set()  # those that were asked for a batch since the last step ended
        self.last = NO_UNIT  # the unit that was updated last
        self.closing = NO_UNIT  # the unit that ends a step when no fetch separates steps
        self.open = []  # how the trainings and evaluations of Model that go on will end
        self.left = []  # how those end that an exception has left: told once the process goes on
        self.looks = None  # at what is fetched from that has no hooks

    def called(self, updates):
        """The network or an optimizer is called: the thread that updates trains, before that any one that calls."""
        if updates or not self.updates_seen:
            self.thread = _thread.get_ident()

    def before_fetch(self, tree):
        """The loop asks for a batch: whatever was updated since the last one was a step."""
        if self.model:
            return
        try:
            is_over = self._asked(tree)
        except Exception:
            recorder.REC.failed("loop")
            return
        if is_over:
            windows.WINDOWS.hand_over()

    def _asked(self, tree):
        """Returns whether something is over by that, and what the training raised meanwhile is to be handed over."""
        if _thread.get_ident() != self.thread:  # it fetches ahead, and ends no step
            if self.updates_seen:
                recorder.REC.warn("fetched_ahead", FETCHED_AHEAD)
            return False
        if self.left:
            self.end_left()
        is_step = bool(self.pending or (self.fetched and not self.updates_seen and tree.rows))
        is_other = bool(tree.number in self.since and self.feeding and tree.number not in self.feeding)
        if is_step:
            self._boundary()
        elif is_other:
            windows.WINDOWS.pause()  # a second batch that leads to no update: this is no training
        self.since.add(tree.number)
        self.fetched = True
        return is_step or is_other

    def before_update(self, unit):
        """An optimizer, or a graph that holds one, is called: again without a fetch in between means a new step."""
        if self.model:
            return
        self.updates_seen = True
        if not self.fetched:
            self._unfed()
        self.feeding |= self.since
        self._follows(unit)

    def before_gradients(self, unit):
        """Gradients are taken where nothing was fetched and no optimizer was called: they may be updates by hand."""
        self._unfed()
        self._follows(unit)

    def _follows(self, unit):
        """Update of what was updated since the last step ended: that one is over."""
        if unit in self.pending:
            self.closing = self.last
            self._boundary(at_update=True)
        self.pending.add(unit)

    def _unfed(self):
        """No batch came from a loader with hooks since the last step: the training may have another one."""
        rec = recorder.REC
        if self.looks is None or self.looks.rec is not rec:
            self.looks = iterables.Looks(rec)
        self.looks.update(sys._getframe(1))

    def after_update(self, unit):
        """It has returned. Without fetches the step is over with the update that ended the one before."""
        if self.model:
            return
        self.last = unit
        if not self.fetched and unit == self.closing:
            self._boundary()

    def abandon(self, depth):
        """An exception leaves Model: MindSpore tells no end of what was open beyond `depth`."""
        self.left += reversed(self.open[depth:])
        del self.open[depth:]
        self.model = self.open.count(recorder.TRAIN_END)

    def end_left(self):
        """The exception was caught, and something else goes on."""
        left, self.left = self.left, []
        for kind in left:
            now = recorder.now()
            recorder.REC.mark(kind, 0, 0, 0, now, now)
        windows.WINDOWS.pause()

    def _boundary(self, at_update=False):
        """`at_update`: it was over before, which shows only now that an update is called once more."""
        self.pending.clear()
        self.since.clear()
        self.fetched = False
        windows.WINDOWS.is_late = at_update
        windows.WINDOWS.step_done()
        windows.WINDOWS.is_late = False
