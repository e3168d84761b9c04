"""What runs around the steps: evaluations, checkpoints, callbacks of Model, and what is compiled. Times alone."""

import functools
import sys
import threading

from . import hooks, recorder, where

CALLBACK, CHECKPOINT, EVALUATION = 0, 1, 2  # flags of PART
SHORTEST_NS = 100_000  # a callback that is faster is left in its step
MOST_SHAPES = 16
OF_STEPS = ("on_train_step_end", "step_end", "on_train_step_begin", "step_begin", "on_train_epoch_end", "epoch_end")

_classes = {}  # type: dict[type, int]
_sites = {}  # type: dict[str, int]  # lines that write checkpoints or evaluate; 0 is none


def install_serialization(module):
    """Hook the function that writes a checkpoint, before other modules import it."""
    module.save_checkpoint = _timed(module.save_checkpoint, CHECKPOINT)


def install_model(module):
    """Hook the evaluations of Model: what they prepare belongs to them."""
    for name in ("eval", "_eval_in_fit"):
        original = getattr(module.Model, name, None)
        if original is not None:
            setattr(module.Model, name, _timed(original, EVALUATION))


def _timed(original, flag):
    @functools.wraps(original)
    def called(*args, **kwargs):
        rec = recorder.REC
        if rec.off:
            return original(*args, **kwargs)
        try:
            begin, number = recorder.now(), _site_number(rec, sys._getframe(1))
        except Exception:
            rec.failed("around")
            return original(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            recorder.unseen(error)
            raise
        finally:
            _mark(rec, flag, number, begin)

    return called


def _site_number(rec, frame):
    site = where.site(frame)
    if site and site not in _sites:
        _sites[site] = len(_sites) + 1
        rec.line("part_site", number=_sites[site], site=site)
    return _sites.get(site, 0)


def _mark(rec, flag, number, begin):
    try:
        if threading.current_thread() is not threading.main_thread():
            return  # beside the training, not instead of it
        rec.open()
        rec.mark(recorder.PART, flag, number, 0, begin, recorder.now())
    except Exception:
        rec.failed("around")


def _one_by_one(callbacks):
    for callback in list.__iter__(callbacks):
        begin = _now()
        yield callback
        end = _now()
        if begin is not None and end is not None and end - begin >= SHORTEST_NS:
            _callback_done(callback, begin, end)


class TimedCallbacks(list):  # type: ignore[type-arg]
    """The callbacks of a manager. Whoever goes through them one by one calls each, and is timed between two."""


def _now():
    try:
        return recorder.now()
    except Exception:
        recorder.REC.failed("around")
        return None


def _callback_done(callback, begin, end):
    rec = recorder.REC
    if rec.off:
        return
    try:
        kind = type(callback)
        number = _classes.get(kind)
        if number is None:
            number = _classes[kind] = len(_classes)
            rec.line("callback", number=number, label=kind.__name__, site=_class_site(kind))
        rec.mark(recorder.PART, CALLBACK, number, 0, begin, end)
    except Exception:
        rec.failed("around")


def _class_site(kind):
    """file:line of a method that a class of the program's own gives; an empty text for one of a library."""
    own = {name: value.__code__ for name, value in vars(kind).items() if hasattr(value, "__code__")}
    code = next((own[name] for name in (*OF_STEPS, *own) if name in own), None)
    if code is None or where.short(code.co_filename) != code.co_filename:
        return ""
    return "%s:%d" % (code.co_filename, code.co_firstlineno)


_passes = getattr(hooks.COMPILED, "Pass", None)
TimedCallbacks.__iter__ = hooks.make(  # type: ignore[method-assign]
    hooks.CALLBACKS, list.__iter__, _one_by_one, extra=_callback_done, cache=_passes
)


def time_callbacks(manager):
    """From now on, time each callback of this manager."""
    callbacks = getattr(manager, "_callbacks", None)
    if type(callbacks) is list:
        manager._callbacks = TimedCallbacks(callbacks)


def tell_compiled(executor, args, begin, end):
    """Record what was compiled, and the shapes that it was compiled for."""
    function = getattr(executor, "fn", None)
    if function is None:
        owner, args = args[0], args[1:]
        label, key = type(owner).__name__, hash((id(owner), getattr(owner, "create_time", None)))
    else:
        owner = getattr(executor, "obj", None)
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        label, key = getattr(function, "__qualname__", "function"), hash((id(code), id(owner)))
    shapes = [shape for shape in map(_shape, args[:MOST_SHAPES]) if shape is not None]
    owner = "%x" % (key & (1 << 64) - 1)
    recorder.REC.line("compiled", label=label, owner=owner, shapes=shapes, begin=begin, end=end)


def _shape(item):
    shape = getattr(item, "shape", None)
    return [int(size) if isinstance(size, int) else -1 for size in shape] if isinstance(shape, tuple) else None
