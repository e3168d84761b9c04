"""Whether a function of the user's draws random numbers, as far as names tell: in it, and in what it calls."""

import re

from . import callables, describe, trains

RANDOM = re.compile(
    r"(?:^|[^a-z])r(?:and|ng)|Rand|[Aa]ug|[Ss]huffle|permut|[Mm]ix[Uu]p|[Cc]ut([Mm]ix|[Oo]ut)|[Mm]asking|IID|[Dd]ither"
    r"|^(choices?|gauss|normal|sample|secrets|standard_normal|uniform|urandom|uuid[14])$"
)
DEEP = 3  # calls of a function's own functions that are looked into


def drawn_by(node):
    """Names of functions of an operator that look as if they drew random numbers."""
    operations = getattr(node, "operations", None) or [getattr(node, "source", None)]
    return [describe.callable_name(one) for one in callables._leaves(operations) if looks_random(one)]


def looks_random(operation):
    """Whether a function, an object that is called, or a source has such a name in it."""
    function = getattr(operation, "transform", operation)
    function = getattr(function, "func", function)
    return bool(RANDOM.search(describe.callable_name(operation))) or _draws(function, type(function), DEEP)


def _draws(called, kind, deep):
    """Whether what is called, an object of a class or its functions, has a name that tells of random numbers in it."""
    called = getattr(called, "__func__", called)
    code = getattr(called, "__code__", None)
    if deep == 0:
        return False
    if code is None:
        kind = called if isinstance(called, type) else type(called)
        methods = [kind.__dict__.get(name) for name in ("__call__", "__getitem__", "__iter__")]
        return any(_draws(one, kind, deep) for one in methods if hasattr(one, "__code__"))
    words = trains.names_in(code)
    module_values = getattr(called, "__globals__", {})
    inside = [module_values.get(name, getattr(kind, name, None)) for name in words]
    return any(RANDOM.search(word) for word in words) or any(_draws(one, kind, deep - 1) for one in inside)
