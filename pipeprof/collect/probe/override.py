"""Operators of the executed copy of a dataset are changed: what `whatif`, `headspace --op` and `tune` measure.

The user's node is only marked while its iterator is made; MindSpore copies the graph, mark included, and the copy that
is executed is changed when it is parsed. The prefetch size is global in MindSpore: it is set while the tree is built.
"""

import threading

from . import describe, kept_rows, order, recorder, stand_in

MARK = "_pipeprof_override"
INSTEAD = "_pipeprof_instead"
ENOUGH_NODES = 500
NOT_PARSED = "the operator was not parsed"

_hooked = []  # type: list[object]


class Wanted:
    """What one tree should be built with, and what became of it."""

    def __init__(self, spec, node, number=None):
        self.spec = spec
        self.node = node
        self.number = number  # in pre-order
        self.thread = threading.get_ident()
        self.applied = False
        self.before = None
        self.after = None
        self.prefetch = None

    def __deepcopy__(self, memo):
        return self

    def apply(self, copied):
        """Change the copy that is about to be parsed; returns the dataset that is to be parsed instead, if any is."""
        self.applied = True
        self.before = _settings(copied)
        if self.spec.get("workers") is not None:
            copied.num_parallel_workers = int(self.spec["workers"])
        if self.spec.get("processes") is not None:
            copied.python_multiprocessing = bool(self.spec["processes"])
        if self.spec.get("max_rowsize"):
            most = int(self.spec["max_rowsize"])
            copied.max_rowsize = [most, most] if isinstance(copied.max_rowsize, list) else most
        self.after = _settings(copied)
        if self.spec.get("cache"):
            self.before["cache"], self.after["cache"] = None, int(self.spec["cache"])
            return kept_rows.instead(self.node, copied, dict(self.spec, node=self.number))
        if not self.spec.get("maps_after"):
            return None
        self.before["maps_after"], self.after["maps_after"] = 0, int(self.spec["maps_after"])
        return order.move(copied, self.after["maps_after"])

    def redescribe(self, graph):
        """Let the description of the tree say what is executed."""
        entry = _entry(graph, self.number)
        if entry is None:
            return
        if self.spec.get("workers") is not None and not entry.get("iterated"):
            entry["workers"] = int(self.spec["workers"])
        if self.spec.get("processes") is not None:
            alone = entry["type"] == "GeneratorOp" and (entry.get("workers") or 1) < 2
            entry["processes"] = bool(self.spec["processes"] and entry.get("python") and not alone)
        if self.spec.get("maps_after"):
            order.redescribe(entry, int(self.spec["maps_after"]))
        if self.spec.get("cache"):
            kept_rows.redescribe(entry)

    def tell(self, number):
        """Record what was changed."""
        before, after = dict(self.before), dict(self.after)
        if self.prefetch is not None:
            before["prefetch"], after["prefetch"] = self.prefetch, int(self.spec["prefetch"])
        recorder.REC.event("override", number=number, node=self.spec.get("node"), before=before, after=after)


def begin(tree, facts, dataset):
    """An iterator is about to be made; returns what to hand to `end`, or None when this is not the pipeline meant."""
    spec = recorder.REC.options.get("override")
    if not spec or spec.get("loader") or tree is None or facts.get("hidden"):
        return None
    if spec.get("site") and spec["site"] != facts.get("site"):
        return None
    try:
        wishes = stand_in.wanted(spec, dataset, find) if spec.get("stand_in") else _settings_wanted(spec, dataset)
    except stand_in.CannotError as error:
        recorder.REC.event("override_missed", number=tree.number, why=str(error))
        return None
    except Exception as error:
        recorder.REC.event("override_missed", number=tree.number, why="%s: %s" % (type(error).__name__, error))
        return None
    for wanted in wishes:
        _hook(wanted.node)
        wanted.node.__dict__[MARK] = wanted
        if isinstance(wanted, Wanted):
            wanted.redescribe(facts.get("graph"))
    return wishes


def end(tree, wishes):
    """The tree was built, or could not be: leave everything as it was, and say what was done."""
    for wanted in wishes or ():
        wanted.node.__dict__.pop(MARK, None)
        if getattr(wanted, "prefetch", None) is not None:
            from mindspore.dataset import config

            config.set_prefetch_size(wanted.prefetch)
        if wanted.applied:
            wanted.tell(tree.number)
        else:
            recorder.REC.event("override_missed", number=tree.number, why=getattr(wanted, "why", NOT_PARSED))


def _nodes(dataset):
    """The operators of a dataset in pre-order."""
    nodes = []
    todo = [dataset]
    while todo and len(nodes) < ENOUGH_NODES:
        node = todo.pop()
        nodes.append(node)
        todo.extend(reversed(getattr(node, "children", None) or []))
    return nodes


def _entry(graph, number):
    """The part of a described graph that is the operator of that number."""
    todo = [graph] if graph and number is not None else []
    while todo:
        entry = todo.pop()
        if entry.get("node") == number:
            return entry
        todo.extend(entry.get("children") or [])
    return None


def find(dataset, spec):
    """The node that is meant, and why there is none: by its number in pre-order, else as the k-th of its type."""
    nodes = _nodes(dataset)
    kind = spec.get("op_type")
    number = spec.get("node")
    if number is None:
        nodes = [node for node in nodes if describe._kind(node) == kind]
        number = spec.get("ordinal") or 0
        if spec.get("of") not in (None, len(nodes)):
            return None, "the pipeline has %d operators of type %s, expected %s" % (len(nodes), kind, spec["of"])
    if not 0 <= number < len(nodes):
        return None, "the pipeline has %d operators, number %d is not among them" % (len(nodes), number)
    actual = describe._kind(nodes[number])
    if kind and kind not in (actual, describe.READERS.get(actual)):
        return None, "operator %d is a %s, expected %s" % (number, actual, kind)
    name = describe._details(nodes[number], actual)["name"]
    if spec.get("name") and spec["name"] != name:
        return None, "operator %d runs `%s`, expected `%s`" % (number, name, spec["name"])
    if spec.get("processes") is not None and not hasattr(nodes[number], "python_multiprocessing"):
        return None, "%s has no worker processes" % actual
    return nodes[number], _why_not_moved(dataset, nodes[number], spec)


def _why_not_moved(dataset, node, spec):
    """Why an operator cannot have another place, or a source in its place; "" when it can, or need not."""
    if spec.get("cache"):
        return kept_rows.why_not(dataset, node, [id(one) for one in _nodes(dataset)].index(id(node)))
    if spec.get("maps_after"):
        return order.why_not(node, int(spec["maps_after"]))
    return ""


def _settings_wanted(spec, dataset):
    """What is changed: one operator, or each of `changes`. All are looked for before anything is touched."""
    wishes = []
    places = {id(node): number for number, node in enumerate(_nodes(dataset))}
    for one in spec.get("changes", [spec]):
        node, why = find(dataset, one)
        if why:
            raise stand_in.CannotError(why)
        wishes.append(Wanted(one, node, places.get(id(node))))
    for wanted in wishes:
        if wanted.spec.get("prefetch") is not None:
            from mindspore.dataset import config

            wanted.prefetch = config.get_prefetch_size()
            config.set_prefetch_size(int(wanted.spec["prefetch"]))
    return wishes


def _settings(node):
    return {
        "workers": getattr(node, "num_parallel_workers", None),
        "processes": getattr(node, "python_multiprocessing", None),
        "max_rowsize": getattr(node, "max_rowsize", None),
    }


def set_threads(mindspore):
    """Give MindSpore's operators the threads that are wished for, once it is imported; the script's own wish wins."""
    number = (recorder.REC.options.get("override") or {}).get("runtime_threads")
    if number:
        # Not `device_context.cpu.op_tuning.threads_num`: a script that calls it, too, would end with an error.
        mindspore.set_context(runtime_num_threads=int(number))
        recorder.REC.event("runtime_threads", number=int(number))


def _hook(node):
    """Hook `parse_tree` of the class that has it, once."""
    owner = next((base for base in type(node).__mro__ if "parse_tree" in base.__dict__), None)
    if owner is None or owner in _hooked:
        return
    _hooked.append(owner)
    original = owner.parse_tree

    def parse_tree(self, *args, **kwargs):
        wanted = self.__dict__.pop(MARK, None) if self.__dict__.get(MARK) is not None else None
        instead = None
        if wanted is not None:
            instead = _parsed(self, wanted, args[0] if args else kwargs.get("getter_mode", False))
        return original(self, *args, **kwargs) if instead is None else instead.parse_tree(*args, **kwargs)

    parse_tree.__wrapped__ = original
    owner.parse_tree = parse_tree


def _parsed(node, wanted, getter_mode):
    """What is to be parsed instead of the copy of a node, if anything is; it lives as long as the copy."""
    try:
        if node is wanted.node:
            node.__dict__[MARK] = wanted
        elif not getter_mode and wanted.thread == threading.get_ident():
            node.__dict__[INSTEAD] = wanted.apply(node)
            return node.__dict__[INSTEAD]
    except Exception as error:
        wanted.applied, wanted.why = False, "%s: %s" % (type(error).__name__, error)
        recorder.REC.failed("override")
    return None
