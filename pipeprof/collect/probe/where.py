"""Finds the user's own line behind a call into MindSpore or PyTorch."""

import itertools
import os
import sys

OURS = __package__  # however the probe was loaded
MOST_CALLERS = 8
LIBRARIES = ("mindspore", "torch")
_folders = {}  # type: dict[str, str]


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
    return code.co_name == "construct" and code.co_filename.startswith(package_folder() + os.sep)


def short(path):
    """A path of a file; of one of MindSpore's or PyTorch's from the package on: `mindspore/nn/layer/conv.py`."""
    for folder in folders():
        if path.startswith(folder):
            return path[len(os.path.dirname(folder[:-1])) + 1 :]
    return path


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
