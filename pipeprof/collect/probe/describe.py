"""What a dataset is made of, read from its Python objects: never executed, never serialised, never changed."""

import gc
import types

from . import callables

MAX_NODES = 500
# What runs for a class of MindSpore's, where that is called something else.
READERS = {
    "CLUEOp": "ClueOp",
    "CSVOp": "CsvOp",
    "Caltech256Op": "AlbumOp",
    "Cifar100Op": "CifarOp",
    "Cifar10Op": "CifarOp",
    "IWSLT2016Op": "IWSLTOp",
    "IWSLT2017Op": "IWSLTOp",
    "RandomOp": "RandomDataOp",
    "TFRecordOp": "TFReaderOp",
}


def describe(dataset):
    """Nested dict of a dataset graph, sink first: type, name, workers, python, processes, batch, children.

    `node` numbers the operators in pre-order, `site` is where the operator was made, `callers` what led there, `code`
    where its function is;
    `native` says that a map runs operations of MindSpore's own beside the user's.
    """
    return _node(dataset, [MAX_NODES])


def _node(node, budget):
    number = MAX_NODES - budget[0]
    budget[0] -= 1
    kind = _kind(node)
    entry = {"type": kind, "node": number, "workers": _integer(getattr(node, "num_parallel_workers", None))}
    entry["site"], entry["callers"] = callables.origin_of(node)
    entry.update(_details(node, kind))
    children = getattr(node, "children", None) or []
    if budget[0] > 0:
        entry["children"] = [_node(child, budget) for child in children]
    return entry


def _kind(node):
    for base in type(node).__mro__:
        name = base.__name__
        if name in ("GeneratorDataset", "BatchDataset", "MapDataset"):
            return name[: -len("Dataset")] + "Op"
        if name == "MindDataset":
            return "MindRecordOp"
    name = type(node).__name__
    return (name.removesuffix("Dataset")) + "Op"


def _details(node, kind):
    processes = bool(getattr(node, "python_multiprocessing", False))
    if kind == "MapOp":
        operations = getattr(node, "operations", None) or []
        operations = list(_composed(operations if isinstance(operations, (list, tuple)) else [operations]))
        python = any(is_python(operation) for operation in operations)
        names = ", ".join(callable_name(operation) for operation in operations)
        return {
            "name": names,
            "python": python,
            "native": not all(is_user_function(operation) for operation in operations),
            "processes": processes and python,
            "code": code_of(next(filter(is_user_function, operations), None)),
        }
    if kind == "GeneratorOp":
        source = _unwrapped(getattr(node, "source", None))
        # MindSpore asks sources with __getitem__ for rows by number; of others it takes one after the other itself.
        iterated = source is not None and not hasattr(source, "__getitem__")
        workers = 1 if iterated else _integer(getattr(node, "num_parallel_workers", None)) or 1
        name = callable_name(source) if source is not None else type(node).__name__
        if type(source).__module__.startswith("mindspore.dataset."):  # arrays: what their user calls NumpySlicesDataset
            name = name.lstrip("_")
        length = _integer(getattr(node, "source_len", None))
        return {
            "name": name,
            "python": True,
            "workers": workers,
            "iterated": iterated,
            "wrapped": _is_dataset(source),
            "processes": processes and workers > 1,
            "code": code_of(source),
            "rows": length if length is not None and length > 0 else None,
        }
    if kind == "BatchOp":
        function = getattr(node, "per_batch_map", None)
        python = function is not None
        return {
            "name": callable_name(function) if python else "",
            "python": python,
            "processes": processes and python,
            "code": code_of(function),
            "batch": _integer(getattr(node, "batch_size", None)),
        }
    function = getattr(node, "predicate", None) or getattr(node, "condition", None)
    return {"name": callable_name(function) if callable(function) else "", "python": callable(function)}


def _unwrapped(source):
    """What was given as a source: of a generator MindSpore keeps a copier (itertools.tee), which refers to it."""
    if type(source).__name__ == "_GeneratorWrapper":
        for kept in gc.get_referents(getattr(source, "generator", None)):
            for given in gc.get_referents(kept):
                if isinstance(given, types.GeneratorType):
                    return given
    return source


def _is_dataset(source):
    """Whether the source of a GeneratorDataset is a dataset of MindSpore's, whose rows it only takes through Python."""
    return any(
        kind.__name__ == "Dataset" and kind.__module__.startswith("mindspore.dataset.") for kind in type(source).__mro__
    )


def _composed(operations):
    """Those of a map as they are executed: MindSpore takes its Compose apart, which holds functions that it wrapped."""
    for one in operations:
        kind, parts = type(one), getattr(one, "transforms", None)
        if isinstance(parts, list) and kind.__name__ == "Compose" and kind.__module__.startswith("mindspore."):
            for part in _composed(parts):
                yield part.transform if type(part).__name__ == "FuncWrapper" else part
        else:
            yield one


def is_user_function(operation):
    """Whether MindSpore calls it as a plain Python function, so that every call can be timed."""
    wrapped = type(operation).__name__ == "FuncWrapper"
    return wrapped or (callable(operation) and not hasattr(operation, "implementation"))


def code_of(function):
    """file:line where a function, or the class of an object, is defined; empty when unknown."""
    function = getattr(function, "transform", function)
    function = getattr(function, "func", function)
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None) or getattr(function, "gi_code", None)
    if code is None and function is not None:
        kind = function if isinstance(function, type) else type(function)
        for name in ("__call__", "__getitem__", "__next__", "__iter__"):
            code = getattr(kind.__dict__.get(name), "__code__", None)
            if code is not None:
                break
    return "%s:%d" % (code.co_filename, code.co_firstlineno) if code is not None else ""


def is_python(operation):
    """Whether an operation of a map runs Python code (and so holds the GIL)."""
    functions = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
    if isinstance(operation, functions) or hasattr(operation, "func"):
        return True
    implementation = getattr(operation, "implementation", None)
    if implementation is not None:
        return "py" in str(getattr(implementation, "value", implementation)).lower()
    return not hasattr(operation, "parse")


def callable_name(function):
    """Name of a function, class or object for people; never a repr (it may be long or fail)."""
    function = getattr(function, "func", function)
    name = getattr(function, "__qualname__", None)
    if not isinstance(name, str):
        name = type(function).__name__
    return name.replace("<locals>.", "")[-120:]


def _integer(value):
    return value if isinstance(value, int) and not isinstance(value, bool) else None
