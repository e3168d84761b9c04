"""Finds the user's own line behind a call into MindSpore."""

import os
import sys

OURS = __package__  # however the probe was loaded


def package_folder():
    """Folder of the installed mindspore package."""
    return os.path.dirname(sys.modules["mindspore"].__file__)


def is_module(code):
    """Whether code is the `construct` of a module of MindSpore's, such as `nn.Conv2d`."""
    return code.co_name == "construct" and code.co_filename.startswith(package_folder() + os.sep)


def short(path):
    """A path of a file; of one of MindSpore's from the package on: `mindspore/nn/layer/conv.py`."""
    package = package_folder()
    return path[len(os.path.dirname(package)) + 1 :] if path.startswith(package + os.sep) else path


def site(frame):
    """file:line of the nearest caller outside MindSpore and the probe, or an empty text."""
    package = package_folder() + os.sep
    while frame is not None:
        name = frame.f_code.co_filename
        inside = name.startswith(package) or frame.f_globals.get("__name__", "").startswith(OURS)
        if not inside:
            return "%s:%d" % (name, frame.f_lineno)
        frame = frame.f_back
    return ""
