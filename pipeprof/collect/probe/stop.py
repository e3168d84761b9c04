"""Ends the process after so many training steps: experiments need no whole training."""

import sys
import threading

from . import recorder, windows


class Stop:
    """Stands in for `step_done` of the windows: does the same, and leaves the program when enough steps are over.

    It leaves as `sys.exit()` in the script would, so that its `finally` and `atexit` run; that needs the main thread.
    """

    def __init__(self, steps, step_done):
        self.steps = self.left = steps
        self.step_done = step_done

    def __call__(self):
        """One more training step is over. Raises SystemExit when it was the last one, and in each that follows."""
        self.step_done()
        rec = recorder.REC
        if rec.off:
            return
        self.left -= 1
        if self.left > 0:
            return
        is_main = threading.current_thread() is threading.main_thread()
        if self.left == 0:
            why = "as asked" if is_main else "but goes on: its loop is not in the main thread"
            rec.warn("stopped", "the training was to end after %d steps, %s" % (self.steps, why))
        if is_main:
            sys.exit(0)


def install():
    """End the process early, if the launcher wishes it."""
    windows.WINDOWS.step_done = Stop(int(recorder.REC.options["stop_after"]), windows.WINDOWS.step_done)
