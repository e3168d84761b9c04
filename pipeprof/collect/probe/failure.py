"""Which exception ended this process: the one that nobody caught, as the interpreter leaves it behind in `sys`.

Read in the exit handlers, when the traceback is on stderr already: no hook is installed, so that whatever the program
does with `sys.excepthook` and with its stderr stays as it is.
"""

import os
import sys

MOST_LINES, MOST_CHARACTERS = 12, 400
NAME = "failed.jsonl"


def tell(root):
    """Append a line about the uncaught exception of this process, if there is one.

    Its text is made once, as the interpreter made it when it printed the traceback: that may run the program's code.
    """
    value = getattr(sys, "last_value", None)
    if not isinstance(value, BaseException):
        return
    import json
    import time
    import traceback

    trace = getattr(sys, "last_traceback", None)
    frames = "".join(traceback.format_tb(trace)).splitlines()[-MOST_LINES:]
    words = "".join(traceback.format_exception_only(type(value), value)).splitlines()[:MOST_LINES]
    facts = {
        "pid": os.getpid(),
        "t": time.monotonic_ns(),
        "error": _error(type(value).__name__, words)[:MOST_CHARACTERS],
        "place": None,
        "code": None,
        "lines": [line[:MOST_CHARACTERS] for line in frames + words],
    }
    if isinstance(value, SyntaxError) and value.filename:
        facts["place"], facts["code"] = "%s:%s" % (value.filename, value.lineno), (value.text or "").strip()
    for frame in traceback.extract_tb(trace):
        if _is_own(frame.filename):
            facts["place"], facts["code"] = "%s:%s" % (frame.filename, frame.lineno), frame.line
    fd = os.open(os.path.join(root, NAME), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(fd, (json.dumps(facts) + "\n").encode())
    finally:
        os.close(fd)


def _error(name, words):
    """The line of the traceback that names the exception, with the bare name of its class."""
    line = next((line for line in words if line.partition(":")[0].rpartition(".")[2] == name), name)
    text = line.partition(": ")[2]
    return "%s: %s" % (name, text) if text else name


def _is_own(path):
    """Whether a file is the program's own: of no library, and not of the probe."""
    library = os.path.dirname(os.__file__)
    others = (library, os.path.dirname(os.path.abspath(__file__)), "<")
    return not path.startswith(others) and "site-packages" not in path and "dist-packages" not in path
