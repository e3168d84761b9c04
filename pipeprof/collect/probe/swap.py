"""Looks at what MindSpore prints to stderr during one call of ours, and passes on everything that is not ours.

Descriptor 2 points at a scratch file for the length of the call. What arrives there from other threads is passed on
by the flushing thread during a long call; what is left when the process dies, the launcher passes on.

The program may close or redirect any number meanwhile. Where 2 is not the scratch file any more it is left alone, and
where the real stderr was closed 2 stays the scratch file, whose text the launcher passes on. What could not be passed
on does not go to another file that the program makes its stderr later: before the next call it is put aside.
"""

import os
import threading

from . import files, recorder

ASIDE = "stderr.aside"


class Swap:
    """One per process; not re-entrant: `begin` returns False while another call is being looked at."""

    def __init__(self, ours):
        self.ours = ours  # compiled pattern of what must not be passed on
        self.scratch = None
        self.saved = None  # the real stderr during a call
        self.identity = None  # which file that is
        self.lock = threading.Lock()

    def begin(self):
        """Point descriptor 2 at the scratch file; False where that is not possible."""
        with self.lock:  # else another thread's call could take the scratch file for the real one
            if self.saved is not None or files.few():
                return False
            if self.scratch is None:
                self.scratch = _scratch(recorder.REC.folder)
            try:
                saved = files.copy_of(2)
            except OSError:  # it is closed
                return False
            if saved.identity in (None, self.scratch.identity):  # the real one was lost
                saved.close()
                return False
            self._put_aside()
            self.scratch.put_at(2)
            self.saved, self.identity = saved, saved.identity
        return True

    def end(self):
        """Point it back, pass on what is not ours, and return everything that was printed."""
        with self.lock:
            saved, self.saved = self.saved, None
            if not self._point_back(saved):
                return b""
            data = self._passed_on(saved)
            saved.close()
        return data

    def pump(self):
        """From the flushing thread: others' words must not wait for the end of a long call, nor get lost after it."""
        if self.scratch is None:
            return
        with self.lock:
            if self.saved is not None:
                if self.saved.is_ours():
                    self._passed_on(self.saved)
            elif files.is_file(2, self.identity):  # else the program has put another file there
                target = files.copy_of(2)
                self._passed_on(target)
                target.close()

    def forked(self):
        """In a child forked during a call: give it the real stderr."""
        self.lock = threading.Lock()
        saved, self.saved = self.saved, None
        if saved is not None and self._point_back(saved):
            saved.close()

    def _point_back(self, saved):
        """Let 2 be the real stderr again, unless the program has made it something else; False where that is lost."""
        if self.scratch.is_at(2):
            try:
                saved.put_at(2)
            except files.LostError:
                return False
        return True

    def _passed_on(self, target):
        """What was printed, of which the rest was written to the target; what could not be goes back."""
        data = self.scratch.take()
        left = target.write_all(self.ours.sub(b"", data) if data else b"")
        if left:
            self.scratch.write(left)
        return data

    def _put_aside(self):
        """Leave to the launcher what could not be passed on before."""
        left = self.scratch.take()
        if left and recorder.REC.folder is not None:
            files.write_once(os.path.join(recorder.REC.folder, ASIDE), left)


def _scratch(folder):
    """The scratch file; one without a name while nothing is recorded."""
    flags = os.O_RDWR | os.O_APPEND
    if folder is not None:
        return files.OwnFile(os.path.join(folder, "stderr.swap"), flags)
    import tempfile

    number, path = tempfile.mkstemp()
    os.close(number)
    opened = files.OwnFile(path, flags)
    files.remove(path)
    return opened
