"""Whether what makes rows is as it was: numbers and words that a source or a map has, or reads, may be of an epoch.

A training that makes its pictures larger from the tenth epoch on says so in an attribute of its source, in a variable
of its module or in one that a function closes over. Only plain values are looked at, those of an object that it holds,
too.
"""

import functools
import itertools
import types

from . import trains

PLAIN = (bool, int, float, complex, str, bytes, type(None))
DEEP = 2  # objects that are held by what is looked at
HELD = (tuple, list, dict)
MOST = 16  # of a list or a dict


def values_of(operations):
    """{name: value} of everything plain that these functions and objects have or read."""
    plain_values = {}
    for number, one in enumerate(operations):
        _look(one, "%d" % number, plain_values, DEEP, ())
    return plain_values


def changed(before, operations):
    """The name of something that is not as it was, as a script writes it; "" for nothing.

    A list or a dict may become longer: that is a record of what was done, and none of what is to be done.
    """
    now = values_of(operations)
    both = before.keys() & now.keys()
    names = sorted(name for name in both if before[name] != now[name])
    names += sorted(name for name in before.keys() ^ now.keys() if "[" not in name)
    return names[0].partition(".")[2] if names else ""


def _look(one, path, plain_values, deep, above):
    """`above`: what holds it, from outside in, so that nothing is looked at within itself."""
    if isinstance(one, PLAIN):
        plain_values[path] = repr(one) if isinstance(one, float) else one  # no NaN is equal to itself
    elif deep == 0 or isinstance(one, (type, types.ModuleType)) or any(one is other for other in above):
        return
    elif isinstance(one, HELD):
        parts = one.items() if isinstance(one, dict) else enumerate(one)
        for key, part in list(itertools.islice(parts, MOST)):
            _look(part, "%s[%r]" % (path, key), plain_values, deep, (*above, one))
    else:
        _look_inside(one, path, plain_values, deep, (*above, one))


def _look_inside(one, path, plain_values, deep, above):
    function = getattr(one, "__func__", one)
    if hasattr(function, "__code__"):
        _read_by(function, path, plain_values, deep, above)
    else:
        methods = [vars(type(one)).get(name) for name in ("__call__", "__getitem__", "__iter__")]
        for method in methods:
            if hasattr(method, "__code__"):
                _read_by(method, path, plain_values, deep, above)
    held = dict(getattr(one, "__dict__", None) or {})
    if isinstance(one, functools.partial):
        held.update(args=one.args, **one.keywords)
        _look(one.func, "%s.func" % path, plain_values, deep, above)
    if isinstance(one, types.MethodType):
        _look(one.__self__, "%s.self" % path, plain_values, deep, above)
    for name, value in held.items():
        if not name.startswith("__"):
            _look(value, "%s.%s" % (path, name), plain_values, deep - 1, above)


def _read_by(function, path, plain_values, deep, above):
    """What a function reads of its module, and closes over."""
    module_values = getattr(function, "__globals__", {})
    for name in trains.names_in(function.__code__):
        if name in module_values and isinstance(module_values[name], PLAIN + HELD):
            _look(module_values[name], "%s.%s" % (path, name), plain_values, deep, above)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            _look(cell.cell_contents, "%s.%s" % (path, name), plain_values, deep - 1, above)
        except ValueError:  # not set yet
            continue
