"""One operator of the executed copy of a dataset gets other settings: what `pipeprof whatif` measures.

The user's node is only marked while its iterator is made; MindSpore copies the graph, mark included, and the copy that
is executed is changed when it is parsed. The prefetch size is global in MindSpore: it is set while the tree is built.
"""

import threading

from . import describe, recorder

MARK = "_pipeprof_override"
ENOUGH_NODES = 500

_hooked = []  # type: list[object]


class Wanted:
    """What one tree should be built with, and what became of it."""

    def __init__(self, spec, node):
        self.spec = spec
        self.node = node
        self.thread = threading.get_ident()
        self.before = None
        self.after = None
        self.prefetch = None

    def __deepcopy__(self, memo):
        return self

    def apply(self, copied):
        """Change the copy that is about to be parsed."""
        self.before = _settings(copied)
        if self.spec.get("workers") is not None:
            copied.num_parallel_workers = int(self.spec["workers"])
        if self.spec.get("processes") is not None:
            copied.python_multiprocessing = bool(self.spec["processes"])
        self.after = _settings(copied)


def begin(tree, facts, dataset):
    """An iterator is about to be made; returns what to hand to `end`, or None when this is not the pipeline meant."""
    spec = recorder.REC.options.get("override")
    if not spec or tree is None or facts.get("hidden"):
        return None
    if spec.get("site") and spec["site"] != facts.get("site"):
        return None
    node, why = find(dataset, spec)
    if node is None:
        recorder.REC.event("override_missed", number=tree.number, why=why)
        return None
    _hook(node)
    wanted = Wanted(spec, node)
    node.__dict__[MARK] = wanted
    if spec.get("prefetch") is not None:
        from mindspore.dataset import config

        wanted.prefetch = config.get_prefetch_size()
        config.set_prefetch_size(int(spec["prefetch"]))
    return wanted


def end(tree, wanted):
    """The tree was built, or could not be: leave everything as it was, and say what was done."""
    if wanted is None:
        return
    wanted.node.__dict__.pop(MARK, None)
    if wanted.prefetch is not None:
        from mindspore.dataset import config

        config.set_prefetch_size(wanted.prefetch)
    if wanted.before is None:
        recorder.REC.event("override_missed", number=tree.number, why="the operator was not parsed")
        return
    before, after = dict(wanted.before), dict(wanted.after)
    if wanted.prefetch is not None:
        before["prefetch"], after["prefetch"] = wanted.prefetch, int(wanted.spec["prefetch"])
    recorder.REC.event("override", number=tree.number, node=wanted.spec.get("node"), before=before, after=after)


def find(dataset, spec):
    """The node that is meant, and why there is none: by its number in pre-order, else as the k-th of its type."""
    nodes = []
    todo = [dataset]
    while todo and len(nodes) < ENOUGH_NODES:
        node = todo.pop()
        nodes.append(node)
        todo.extend(reversed(getattr(node, "children", None) or []))
    kind = spec.get("op_type")
    number = spec.get("node")
    if number is None:
        nodes = [node for node in nodes if describe._kind(node) == kind]
        number = spec.get("ordinal") or 0
        if spec.get("of") not in (None, len(nodes)):
            return None, "the pipeline has %d operators of type %s, expected %s" % (len(nodes), kind, spec["of"])
    if not 0 <= number < len(nodes):
        return None, "the pipeline has %d operators, number %d is not among them" % (len(nodes), number)
    found = describe._kind(nodes[number])
    if kind and found != kind:
        return None, "operator %d is a %s, expected %s" % (number, found, kind)
    if spec.get("processes") is not None and not hasattr(nodes[number], "python_multiprocessing"):
        return None, "%s has no worker processes" % found
    return nodes[number], ""


def _settings(node):
    return {
        "workers": getattr(node, "num_parallel_workers", None),
        "processes": getattr(node, "python_multiprocessing", None),
    }


def _hook(node):
    """Hook `parse_tree` of the class that has it, once."""
    owner = next((base for base in type(node).__mro__ if "parse_tree" in base.__dict__), None)
    if owner is None or owner in _hooked:
        return
    _hooked.append(owner)
    original = owner.parse_tree

    def parse_tree(self, *args, **kwargs):
        wanted = self.__dict__.pop(MARK, None) if self.__dict__.get(MARK) is not None else None
        if wanted is not None:
            _parsed(self, wanted, args[0] if args else kwargs.get("getter_mode", False))
        return original(self, *args, **kwargs)

    parse_tree.__wrapped__ = original
    owner.parse_tree = parse_tree


def _parsed(node, wanted, getter_mode):
    try:
        if node is wanted.node:
            node.__dict__[MARK] = wanted
        elif not getter_mode and wanted.thread == threading.get_ident():
            wanted.apply(node)
    except Exception:
        recorder.REC.failed("override")
