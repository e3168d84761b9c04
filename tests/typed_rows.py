"""Rows of queries for tests of what judges them."""

import inspect
import re
from functools import wraps

from pipeprof.query.rows import Row

_KINDS = {kind.__name__: kind for kind in Row.__subclasses__()}


def rows(kind, given):
    """These dicts as rows of a query; a column that one leaves out is None, and rows stay as they are."""
    unknown = dict.fromkeys(kind.__struct_fields__)
    return [one if isinstance(one, kind) else kind(**(unknown | one)) for one in given]


def of_dicts(judge):
    """A function of verdict/ that takes dicts where it takes rows of queries, one or several."""
    signature = inspect.signature(judge)
    kinds = {
        name: _KINDS[word]
        for name, parameter in signature.parameters.items()
        for word in re.findall(r"\w+", str(parameter.annotation))
        if word in _KINDS
    }
    assert kinds, f"{judge.__name__} takes no rows"

    @wraps(judge)
    def judged(*args, **more):
        bound = signature.bind(*args, **more)
        for name in kinds.keys() & bound.arguments.keys():
            value = bound.arguments[name]
            single = isinstance(value, dict)
            made = rows(kinds[name], [value] if single else value)
            bound.arguments[name] = made[0] if single else made
        return judge(*bound.args, **bound.kwargs)

    return judged
