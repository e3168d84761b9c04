"""A planted slow-down: every training step takes a share longer. What `pipeprof qualify` has to find again.

It sleeps when a step is over, for a share of the step's time, and stays awake for the last moment of it: a sleep of
its own wakes up to 0.1 ms late, which would be a lot of a short step.
"""

import time

from . import recorder, windows

AWAKE_NS = 150_000
LONGEST = 4  # times the usual step: an evaluation or an epoch's end between two steps is no long step


class Slow:
    """Stands in for `step_done` of the windows: does the same, then sleeps `share` of the time since the last end."""

    def __init__(self, share, step_done):
        self.share = share
        self.step_done = step_done
        self.last = None
        self.usual = None

    def __call__(self):
        """One more training step is over."""
        self.step_done()
        if recorder.REC.off:
            return
        try:
            self._sleep(recorder.now())
        except Exception:
            recorder.REC.failed("slow_down")
        self.last = recorder.now()

    def _sleep(self, now):
        if self.last is None:
            recorder.REC.warn("slow_down", "on purpose, every step took %g %% longer" % (100 * self.share))
            return
        took = now - self.last
        if self.usual is not None:
            took = min(took, LONGEST * self.usual)
        self.usual = took if self.usual is None else self.usual + (took - self.usual) / 8
        end = now + int(self.share * took)
        if end - now > AWAKE_NS:
            time.sleep((end - now - AWAKE_NS) / 1e9)
        while recorder.now() < end:
            pass


def install():
    """Slow the steps down, if the launcher wishes it."""
    share = recorder.REC.options.get("slow_down")
    if share:
        windows.WINDOWS.replace_step_done(Slow(float(share), windows.WINDOWS.step_done))
