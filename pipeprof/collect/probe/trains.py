"""Whether a call trains: its cell or function, and whether the code of that names an optimizer or a gradient."""

import types

SEARCH_LIMIT = 400
GRADIENT_MODULES = ("mindspore.ops.composite", "mindspore.ops.function.grad", "mindspore.common._grad_function")
OPTIMIZERS = []  # type: list[object]  # the classes of MindSpore that were imported


def identity(thing):
    """What tells a cell or a function from others: also from one that takes its address later, or shares its code.

    Of a function its code and that of the functions in its closure; of a cell when it was made, as MindSpore does.
    """
    function = getattr(thing, "__func__", thing)
    code = getattr(function, "__code__", None)
    if code is None:
        return id(thing), getattr(thing, "create_time", None)
    inner = []
    for cell in getattr(function, "__closure__", None) or ():
        try:
            inner.append(getattr(cell.cell_contents, "__code__", None))
        except ValueError:  # empty yet
            inner.append(None)
    return code, *inner


def cell_updates(cell):
    """Whether a cell holds an optimizer, so that calling it in graph mode trains."""
    optimizers = tuple(OPTIMIZERS)
    return any(isinstance(child, optimizers) for _, child in cell.cells_and_names())


def jit_updates(executor):
    """Whether a jit function can train: its code names an optimizer or a gradient function, directly or through calls.

    Of the objects that it names, only the attributes that the code names are followed.
    """
    todo = [(executor.fn, ())]
    owner = getattr(executor, "obj", None)
    if owner is not None:
        todo.append((owner, names_in(getattr(executor.fn, "__code__", None))))
    seen = set()
    while todo and len(seen) < SEARCH_LIMIT:
        item, names = todo.pop()
        if (id(item), names) in seen:
            continue
        seen.add((id(item), names))
        parts = _attributes(item, names)
        if _trains(item, itself=not parts):
            return True
        todo.extend(_referred(item))
        todo.extend((part, names) for part in parts)
    return False


def _trains(item, itself):
    """`itself`: the item itself is used, not only some of its attributes."""
    if isinstance(item, tuple(OPTIMIZERS)):
        return True
    module = str(getattr(item, "__module__", ""))
    if isinstance(item, types.FunctionType):
        return module.startswith(GRADIENT_MODULES) and "grad" in (item.__name__ + item.__qualname__).lower()
    kind = type(item)
    if (kind.__module__ or "").startswith(GRADIENT_MODULES):
        return "Grad" in kind.__name__
    return itself and hasattr(item, "cells_and_names") and cell_updates(item)


def _referred(item):
    """What a function's code can reach, with the names that the code uses."""
    if isinstance(item, types.MethodType):
        return [(item.__func__, ()), (item.__self__, names_in(getattr(item.__func__, "__code__", None)))]
    if not isinstance(item, types.FunctionType):
        return []
    reached = []
    if isinstance(getattr(item, "__wrapped__", None), types.FunctionType):
        reached.append(item.__wrapped__)
    names = names_in(item.__code__)
    for cell in item.__closure__ or ():
        try:
            reached.append(cell.cell_contents)
        except ValueError:  # still empty
            continue
    if not str(item.__globals__.get("__name__", "")).startswith("mindspore."):
        reached += [item.__globals__[name] for name in names if name in item.__globals__]
    return [(value, names) for value in reached if callable(value) or hasattr(value, "__dict__")]


def names_in(code):
    """Names in the code of a function and of those that are written in it, each once."""
    if code is None:
        return ()
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.extend(names_in(constant))
    return tuple(sorted(set(names)))


def _attributes(item, names):
    """The attributes of an object that are among the names: its values, and the methods of its class."""
    module = type(item).__module__ or ""
    if isinstance(item, (type, types.ModuleType, types.FunctionType, types.MethodType)):
        return []
    if module.startswith(("mindspore.", "numpy", "builtins")):
        return []
    attributes = []
    children = getattr(item, "_cells", None) or {}
    for name in names:
        if name in vars(item):
            attributes.append(vars(item)[name])
        elif name in children:
            attributes.append(children[name])
        else:
            method = getattr(type(item), name, None)
            if isinstance(method, types.FunctionType) and not str(method.__module__).startswith("mindspore."):
                attributes.append(types.MethodType(method, item))
    return [value for value in attributes if callable(value) or hasattr(value, "__dict__")]
