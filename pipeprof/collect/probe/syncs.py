"""Calls of the thread that trains which wait for the network: a tensor read as numbers, printed, or tested for truth.

Each is one mark with the line of the user's that led to it. What such a call calls itself belongs to it.
"""

import _thread
import functools
import os
import sys
import threading

from . import recorder, where

READS = (
    "asnumpy", "numpy", "item", "tolist", "__array__", "__bool__", "__contains__", "__float__", "__index__", "__int__",
    "__repr__", "__str__",
)  # fmt: skip
MOST_CODES = 10_000  # a program that makes code anew in every step is not kept for ever
MOST_SITES = 1000  # each is a line in the spool; further ones count as of no known line

_site_numbers = {}  # type: dict[tuple[str, int | None, int | None, int | None], int]
_ours = {}  # type: dict[int, tuple[bool, object]]
_state = {"thread": threading.main_thread().ident, "inside": False}


def install_tensor(module):
    """Hook the methods of Tensor that read its values."""
    tensor = module.Tensor
    for name in READS:
        original = tensor.__dict__.get(name)
        if callable(original):
            setattr(tensor, name, _watched(name, original))


def install_stream(module):
    """Hook the function that waits for everything."""
    module.synchronize = _watched("synchronize", module.synchronize)


def _watched(name, original):
    @functools.wraps(original)
    def called(*args, **kwargs):
        rec = recorder.REC
        try:
            if _state["inside"] or rec.folder is None or rec.off or _thread.get_ident() != _state["thread"]:
                begin = None
            else:
                begin = recorder.now()
        except Exception:
            begin = None
            rec.failed("syncs")
        if begin is not None:
            _state["inside"] = True
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            recorder.unseen(error)
            raise
        finally:
            if begin is not None:
                _state["inside"] = False
                _mark(rec, name, begin)

    return called


def _mark(rec, name, begin):
    try:
        end = recorder.now()
        rec.mark(recorder.SYNC, 0, _subject(rec, name, sys._getframe(2)), 0, begin, end)
    except Exception:
        rec.failed("syncs")


def _subject(rec, name, frame):
    """The number of a call, by what was called, the user's line, and the file of MindSpore that stood between."""
    via = frame if _is_ours(frame) else None
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    key = (name, via and id(via.f_code), frame and id(frame.f_code), frame and frame.f_lineno)
    number = _site_numbers.get(key)
    if number is None:
        if len(_site_numbers) >= MOST_SITES:
            return 0
        number = _site_numbers[key] = len(_site_numbers) + 1
        site = "%s:%d" % (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ""
        between = os.path.basename(via.f_code.co_filename) if via is not None else ""
        rec.line("sync_site", number=number, call=name, site=site, via=between)
    return number


def _is_ours(frame):
    """Whether a frame is MindSpore's or the probe's. Code is known by its id, for its hash is slow, and so is kept."""
    code = frame.f_code
    entry = _ours.get(id(code))
    if entry is None:
        inside = code.co_filename.startswith(where.package_folder() + os.sep)
        inside = inside or frame.f_globals.get("__name__", "").startswith(where.OURS)
        if len(_ours) >= MOST_CODES:
            return inside
        entry = _ours[id(code)] = (inside, code)
    return entry[0]
