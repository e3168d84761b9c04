"""Notes which line of Python made each process, in one line of `forks.tsv`: nothing else can tell afterwards.

A forked child writes its own line, before any code of the user's runs in it; of a process that is executed at once, the
parent does. The fields: process id, parent's, time, whether MindSpore's dataset package made it (0 or 1), what it is
(a class or function of multiprocessing), the user's line, and the line of the library in between, if another one.
"""

import os
import sys

from . import files, recorder

FILE = "forks.tsv"
MOST = 2000  # lines of one process: a script may fork for ever
LONGEST = 300
MACHINERY = frozenset(("multiprocessing", "subprocess", "os", "concurrent", "asyncio", "pty", "threading"))
DATASETS = ("mindspore.dataset", "torch.utils.data")

_written = [0]
_libraries = []  # type: list[str]


def install():
    """Set the hooks, once in a process."""
    _libraries.extend({os.path.dirname(os.__file__) + os.sep, sys.base_prefix + os.sep + "lib" + os.sep})
    recorder.at_fork(after_in_child=_forked)
    try:
        import _posixsubprocess
    except ImportError:
        return
    _posixsubprocess.fork_exec = _telling(_posixsubprocess.fork_exec)
    if hasattr(os, "posix_spawn"):
        os.posix_spawn = _telling(os.posix_spawn)


def _telling(execute):
    """The function that starts a program, noting the process that it returns."""

    def start(*args, **kwargs):
        pid = execute(*args, **kwargs)
        _tell(pid, os.getpid)
        return pid

    start.__name__, start.__doc__, start.__wrapped__ = execute.__name__, execute.__doc__, execute
    return start


def _forked():
    _tell(None, os.getppid)


def _tell(pid, parent):
    """Of the caller's caller. None: of this process."""
    try:
        frame = sys._getframe(2)
        root = recorder.REC.root
        if not root or _written[0] >= MOST:
            return
        _written[0] += 1
        fields = (os.getpid() if pid is None else pid, parent(), recorder.now(), *_origin(frame))
        line = "\t".join(_clean(str(field)) for field in fields) + "\n"
        files.write_once(os.path.join(root, FILE), line.encode("utf-8", "replace"))
    except Exception:
        pass


def _origin(frame):
    """`dataset`, `what`, `site`, `library` of the call that this frame belongs to."""
    dataset, what, site, library = 0, "", "", ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__") or "")
        if not what and frame.f_code.co_name == "_launch":
            what = _name(frame.f_locals.get("process_obj"))
        if module in DATASETS or module.startswith(tuple(name + "." for name in DATASETS)):
            dataset = 1
        if module.partition(".")[0] not in MACHINERY and module.partition(".")[0] != __package__.partition(".")[0]:
            line = "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)
            library = library or line
            if not site and not _is_library(frame.f_code.co_filename):
                site = line
        frame = frame.f_back
    return dataset, what, site or library, "" if library == site else library


def _is_library(path):
    """Whether a file belongs to Python or to an installed package, and not to the user."""
    return path.startswith(("<frozen", *_libraries)) or "site-packages" in path or "dist-packages" in path


def _name(process):
    """What a process of multiprocessing is: its class, or the function it calls."""
    if process is None:
        return ""
    kind = type(process)
    if kind.__module__.partition(".")[0] != "multiprocessing":
        return kind.__name__
    target = getattr(process, "_target", None)
    return getattr(target, "__qualname__", "") or kind.__name__


def _clean(text):
    return "".join(char if char.isprintable() else "?" for char in text[-LONGEST:])
