"""Finds the user's own line behind a call into MindSpore or PyTorch."""

import gc
import itertools
import operator
import os
import sys
import types

OURS = __package__  # however the probe was loaded
MOST_CALLERS = 8
LIBRARIES = ("mindspore", "torch")
_folders = {}  # type: dict[str, str]
_qualified = {}  # type: dict[tuple[str, int, str], str]


def frames():
    """`sys._current_frames()`, during which no garbage is collected.

    Up to Python 3.11.8 a finalizer that runs there may wait for a lock that the call itself keeps, and then the program
    stands still for good (CPython issue 106883). No other thread runs between the three calls: they are one for Python.
    """
    if not gc.isenabled():
        return sys._current_frames()
    try:
        return list(map(operator.methodcaller("__call__"), (gc.disable, sys._current_frames, gc.enable)))[1]
    except BaseException:
        gc.enable()
        raise


def folders():
    """Of the libraries that were imported: their folders, each with a separator at its end."""
    if len(_folders) < len(LIBRARIES):
        for name in LIBRARIES:
            path = name not in _folders and getattr(sys.modules.get(name), "__file__", None)
            if path:
                _folders[name] = os.path.dirname(path) + os.sep
    return tuple(_folders.values())


def package_folder():
    """Folder of the installed mindspore package."""
    return os.path.dirname(sys.modules["mindspore"].__file__)


def is_module(code):
    """Whether code is the `construct` of a module of MindSpore's, such as `nn.Conv2d`."""
    return code.co_name == "construct" and code.co_filename.startswith(folders())


def short(path):
    """A path of a file; of one of MindSpore's or PyTorch's from the package on: `mindspore/nn/layer/conv.py`."""
    for folder in folders():
        if path.startswith(folder):
            return path[len(os.path.dirname(folder[:-1])) + 1 :]
    return path


def qualified_name(code):
    """`co_qualname`, which Python 3.10 has not: there it is found in the module of the code's file, or is the name."""
    try:
        return code.co_qualname
    except AttributeError:
        return _known_as(code)


def _known_as(code):
    key = _key(code)
    if key not in _qualified:
        for module in list(sys.modules.values()):
            held = object.__getattribute__(module, "__dict__") if isinstance(module, types.ModuleType) else {}
            if held.get("__file__") == code.co_filename:
                _note_names(held)
    return _qualified.setdefault(key, code.co_name)


def _key(code):
    return code.co_filename, code.co_firstlineno, code.co_name


def _note_names(module):
    """The names of all functions that a module holds, those of its classes and those that others wrap."""
    todo, seen = list(module.values()), set()
    while todo:
        thing = todo.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, type):
            todo += vars(thing).values() if thing.__module__ == module.get("__name__") else ()
        elif isinstance(thing, property):
            todo += thing.fget, thing.fset
        elif isinstance(thing, (staticmethod, classmethod)):
            todo.append(thing.__func__)
        elif isinstance(thing, types.FunctionType):
            _note_inner(thing.__code__, thing.__qualname__)
            todo += (cell.cell_contents for cell in thing.__closure__ or () if cell != types.CellType())
            todo.append(vars(thing).get("__wrapped__"))


def _note_inner(code, name):
    _qualified[_key(code)] = name
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            _note_inner(inner, "%s.<locals>.%s" % (name, inner.co_name))


def site(frame):
    """file:line of the nearest caller outside MindSpore, PyTorch and the probe, or an empty text."""
    return next(_lines(frame), "")


def callers(frame):
    """file:line of the calls that led to `site`, one a line, the nearest first: up to a module's own, at most eight."""
    return "\n".join(itertools.islice(_lines(frame), 1, 1 + MOST_CALLERS))


def _lines(frame):
    """file:line of the callers outside those and the probe, up to the first that is a module's own line."""
    packages = folders()
    while frame is not None:
        code = frame.f_code
        inside = code.co_filename.startswith(packages) or frame.f_globals.get("__name__", "").startswith(OURS)
        if not inside:
            yield "%s:%d" % (code.co_filename, frame.f_lineno)
            if code.co_name == "<module>":
                return
        frame = frame.f_back
