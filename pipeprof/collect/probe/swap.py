"""Looks at what MindSpore prints to stderr during one call of ours, and passes on everything that is not ours.

Descriptor 2 points at a scratch file for the length of the call. What arrives there from other threads is passed on
by the flushing thread during a long call; what is left when the process dies, the launcher passes on.
"""

import os
import threading

from . import recorder


class Swap:
    """One per process; not re-entrant: `begin` returns False while another call is being looked at."""

    def __init__(self, ours):
        self.ours = ours  # compiled pattern of what must not be passed on
        self.scratch = None
        self.saved = None
        self.lock = threading.Lock()

    def begin(self):
        """Point descriptor 2 at the scratch file."""
        with self.lock:  # else another thread's call could take the scratch file for the real one
            if self.saved is not None:
                return False
            if self.scratch is None:
                self.scratch = _scratch(recorder.REC.folder)
            saved = os.dup(2)
            os.dup2(self.scratch, 2)
            self.saved = saved
        return True

    def end(self):
        """Point it back, pass on what is not ours, and return everything that was printed."""
        with self.lock:
            os.dup2(self.saved, 2)
            os.close(self.saved)
            self.saved = None
            data = self._take()
            self._pass_on(data, 2)
        return data

    def pump(self):
        """From the flushing thread: others' words must not wait for the end of a long call, nor get lost after it."""
        if self.scratch is None:
            return
        with self.lock:
            target = 2 if self.saved is None else self.saved
            self._pass_on(self._take(), target)

    def forked(self):
        """In a child forked during a call: give it the real stderr."""
        if self.saved is not None:
            os.dup2(self.saved, 2)
            self.saved = None
        self.lock = threading.Lock()

    def _take(self):
        size = os.fstat(self.scratch).st_size
        if not size:
            return b""
        data = os.pread(self.scratch, size, 0)
        os.ftruncate(self.scratch, 0)
        return data

    def _pass_on(self, data, target):
        rest = self.ours.sub(b"", data) if data else b""
        while rest:
            rest = rest[os.write(target, rest) :]


def _scratch(folder):
    """Descriptor of the scratch file; one without a name while nothing is recorded."""
    if folder is None:
        import tempfile

        number, path = tempfile.mkstemp()
        os.close(number)
    else:
        path = os.path.join(folder, "stderr.swap")
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
    opened = os.open(path, flags, 0o600)
    if folder is None:
        os.unlink(path)
    return opened
