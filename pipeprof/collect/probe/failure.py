"""Which exception ended this process: the one that nobody caught, as the interpreter leaves it behind in `sys`.

Read in the exit handlers, when the traceback is on stderr already: no hook is installed, so that whatever the program
does with `sys.excepthook` and with its stderr stays as it is.
"""

import os
import sys

from . import files, recorder

MOST_LINES, MOST_CHARACTERS = 12, 400
NAME = "failed.jsonl"
TRACEBACK = "Traceback (most recent call last):"
MINDSPORES_OWN = "Refer to 'Dataset Pipeline Error Message'"
# To import one of these runs text as code, and then Python forgets that an interrupt ended it: its status would change.
NEEDED = {"json", "re", "traceback"}
PLAIN = (str, bytes, int, float, bool, type(None))  # whose text is made by the interpreter


def tell(root):
    """Append a line about the uncaught exception of this process, if there is one.

    None of the program's own code runs once more for its text: where that would take a `__str__` of its own, the text
    is the class and its arguments.
    """
    value, trace = getattr(sys, "last_value", None), getattr(sys, "last_traceback", None)
    if not isinstance(value, BaseException) or not _ended_the_program(trace):
        return
    if isinstance(value, KeyboardInterrupt) and not sys.modules.keys() >= NEEDED:
        return
    import traceback

    hide = hider()
    frames = [hide(line) for line in "".join(traceback.format_tb(trace)).splitlines()[-MOST_LINES:]]
    said = [hide(line) for line in words(value)]
    inner = _of_dataset(said)
    shown = inner[-MOST_LINES:] if inner else said[:MOST_LINES]
    facts = {
        "pid": os.getpid(),
        "t": recorder.now(),
        "error": (inner[-1] if inner else _error(type(value).__name__, said))[:MOST_CHARACTERS],
        "place": None,
        "code": None,
        "lines": [line[:MOST_CHARACTERS] for line in frames + shown],
    }
    if isinstance(value, SyntaxError) and value.filename:
        facts["place"], facts["code"] = "%s:%s" % (value.filename, value.lineno), hide((value.text or "").strip())
    for frame in traceback.extract_tb(trace):
        if _is_own(frame.filename):
            facts["place"], facts["code"] = "%s:%s" % (frame.filename, frame.lineno), hide(frame.line or "")
    facts.update(_own_frame(inner))
    files.write_once(os.path.join(root, NAME), (recorder.encode(facts) + "\n").encode())


def _of_dataset(lines):
    """The traceback of a dataset's Python that MindSpore puts into its own error, to the line with the exception."""
    starts = [number for number, line in enumerate(lines) if line.rstrip().endswith(TRACEBACK)]
    inner = lines[starts[-1] :] if starts else []
    ends = [number for number, line in enumerate(inner) if number and line[:1].strip()]
    return inner[: ends[0] + 1] if ends and ": " in inner[ends[0]] else []


def _own_frame(lines):
    """Place and code of the last frame in the program's own files, of a traceback as text; empty without one."""
    found = {}
    for number, line in enumerate(lines):
        path, _, rest = line.strip().partition('", line ')
        if path.startswith('File "') and rest and _is_own(path[6:]):
            code = lines[number + 1].strip() if number + 1 < len(lines) else ""
            found = {"place": "%s:%s" % (path[6:], rest.partition(",")[0]), "code": code}
    return found


def hider():
    """A function that takes out of a line what must not be kept: what is hidden in the command and variables, too."""
    from . import redact

    hidden = redact.hidden_values(getattr(sys, "orig_argv", sys.argv), os.environ)

    def hide(line):
        for value in hidden:
            line = line.replace(value, redact.LEFT_OUT)
        return redact.redacted(line)

    return hide


def _ended_the_program(trace):
    """Whether nothing was left that could catch the error: a tool that handled and kept one was called by somebody."""
    return trace is None or trace.tb_frame.f_back is None


def words(value):
    """The last lines of the traceback, which name the exception; none of the program's code runs for them."""
    import traceback

    if _is_plain(value):
        return "".join(traceback.format_exception_only(type(value), value)).splitlines()
    kind = type(value)
    name = (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else kind.__module__ + "." + kind.__qualname__
    )
    arguments = ", ".join(str(part) for part in BaseException.__dict__["args"].__get__(value) if type(part) in PLAIN)
    return ("%s: %s" % (name, arguments) if arguments else name).splitlines()


def _is_plain(value):
    """Whether the text of an exception is made by the interpreter alone."""
    parts = list(BaseException.__dict__["args"].__get__(value))
    parts += [item for part in parts if type(part) is tuple for item in part]  # of a syntax error
    notes = object.__getattribute__(value, "__dict__").get("__notes__") or ()
    own = type(type(value).__str__) is not type(BaseException.__str__)
    kinds = {type(part) for part in parts} - {tuple} | {type(note) for note in notes}
    looked_up = isinstance(value, (AttributeError, NameError, ImportError))  # newer Pythons look for near names
    return not own and not looked_up and kinds <= set(PLAIN) and type(notes) in (list, tuple)


def _error(name, words):
    """The line of the traceback that names the exception, with the bare name of its class.

    Of an error in a dataset pipeline the line that it refers to.
    """
    line = next((line for line in words if line.partition(":")[0].rpartition(".")[2] == name), name)
    text = line.partition(": ")[2]
    if MINDSPORES_OWN in text:
        text = next((one.partition("] ")[2] for one in words if one.startswith("[ERROR] ")), "") or text
    return "%s: %s" % (name, text) if text else name


def _is_own(path):
    """Whether a file is the program's own: of no library, and not of the probe."""
    library = os.path.dirname(os.__file__)
    others = (library, os.path.dirname(os.path.abspath(__file__)), "<")
    return not path.startswith(others) and "site-packages" not in path and "dist-packages" not in path
