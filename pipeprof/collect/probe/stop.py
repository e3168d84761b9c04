"""Ends the process after so many training steps: experiments need no whole training."""

import os
import sys
import threading

from . import files, recorder, windows

AHEAD = 8  # steps that another rank may be ahead when the time is over; all leave after the same one
AGREED = "stop"  # the file of the spool that says after which


class Stop:
    """Stands in for `step_done` of the windows: does the same, and leaves the program when enough steps are over.

    It leaves as `sys.exit()` in the script would, so that its `finally` and `atexit` run; that needs the main thread.
    With `seconds`, it is enough when so many are over, too, since the first step.
    """

    def __init__(self, steps, step_done, seconds=None):
        self.least, self.seconds, self.step_done = steps, seconds, step_done
        self.steps = None if seconds else steps  # None: that is not known yet
        self.done = 0
        self.began = None
        self.has_said = False

    def __call__(self):
        """One more training step is over. Raises SystemExit when it was the last one, and in each that follows."""
        self.step_done()
        if recorder.REC.off:
            return
        self.done += 1
        if self.steps is None:
            self.steps = self._agreed()
        if self.steps is None or self.done < self.steps:
            return
        self._leave(recorder.REC, threading.current_thread() is threading.main_thread())

    def _leave(self, rec, is_main):
        if not self.has_said:
            self.has_said = True
            why = "as asked" if is_main else "but goes on: its loop is not in the main thread"
            rec.warn("stopped", "the training was to end after %d steps, %s" % (self.steps, why))
            if is_main:
                rec.event("stopped", steps=self.steps)
        if is_main:
            sys.exit(0)

    def _agreed(self):
        """The step after which every rank leaves: the choice of the first one whose time was over; None: none's was."""
        path = os.path.join(recorder.REC.root, AGREED)
        try:
            return int(files.read_at(path, 100) or 0) or None
        except OSError:
            pass
        now = recorder.now()
        if self.began is None:
            self.began = now
        if self.done >= self.least and now - self.began >= self.seconds * 1e9:
            try:
                with files.open_file(path, "x", encoding="ascii") as file:
                    file.write(str(self.done + AHEAD))
            except OSError:
                pass  # another rank was faster: its choice is read after the next step
        return None


def install():
    """End the process early, if the launcher wishes it."""
    options, done = recorder.REC.options, windows.WINDOWS.step_done
    windows.WINDOWS.replace_step_done(Stop(int(options["stop_after"]), done, options.get("stop_after_s")))
