"""An operator of the executed copy of a dataset hands out what it made before: `pipeprof headspace --op` measures that.

A map, or a batch with a function, does its work for the first rows, remembers what came out, and returns that from
then on, while its input still flows. A source, or everything up to an operator, is replaced by a source of as many
rows, the first ones of which were read before the training began. All of it is Python: a row handed out takes the
interpreter's lock for a moment, whatever it replaces.
"""

import copy
import itertools
import threading
import weakref

from . import describe, recorder

ROWS = 16  # remembered of each shape
MOST_BYTES = 128 * 2**20
ALONE, UP_TO, COUNT = "alone", "up_to", "count"

# The user's operator -> what stands in for it: every epoch's iterator has the same.
_made = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[object, object]


class CannotError(Exception):
    """The operator cannot be replaced; the text says why."""


class Memory:
    """The first outputs of a function, handed out in turn. Inputs of another first length have outputs of their own."""

    def __init__(self, make):
        self.make = make
        self.calls = itertools.count()
        self.outputs = {}
        self.bytes = 0
        self.failed = self.reported = False

    def __call__(self, *args):
        """The output for a row, or one that was made before."""
        made = self.outputs.setdefault(self.length(*args), [])
        number = next(self.calls)
        if len(made) >= ROWS or (made and self.bytes > MOST_BYTES):
            return made[number % len(made)]
        try:
            output = _copied(self.make(*args))
        except Exception as error:
            self._tell(error)
            raise
        self.bytes += sum(getattr(part, "nbytes", 0) for part in _columns(output))
        made.append(output)
        return output

    def length(self, *_):
        """What inputs must have in common to get one another's outputs: nothing, for rows."""
        return None

    def _tell(self, error):
        if not self.failed:
            self.failed = True
            recorder.REC.event("stand_in_failed", why="%s: %s" % (type(error).__name__, str(error)[:300]))


class BatchMemory(Memory):
    """The same of a per_batch_map: the last batch of an epoch may be shorter."""

    def length(self, *args):
        """How many rows the batch has."""
        return len(args[0]) if args and hasattr(args[0], "__len__") else None


class Rows:
    """A generator function of `number` rows, or of rows without end, made of a few that are known."""

    def __init__(self, rows, columns, number):
        self.rows = rows
        self.columns = columns
        self.number = number
        self.calls = itertools.count()
        self.reported = False

    def __call__(self):
        """The rows of an epoch."""
        turn = itertools.cycle(self.rows)
        for row in turn if self.number is None else itertools.islice(turn, self.number):
            next(self.calls)
            yield row


class StandIn:
    """What one tree should be built with instead of a node, and what became of it."""

    def __init__(self, spec, node):
        self.spec = spec
        self.node = node
        self.thread = threading.get_ident()
        self.applied = False
        if node not in _made:
            _made[node] = self._make()
        self.given = _made[node]

    def __deepcopy__(self, memo):
        return self

    def apply(self, copied):
        """Change the copy that is about to be parsed, or return the dataset that is to be parsed instead."""
        self.applied = True
        if isinstance(self.given, Rows):
            from mindspore.dataset import GeneratorDataset

            return GeneratorDataset(self.given, self.given.columns, num_parallel_workers=1)
        if isinstance(self.given, BatchMemory):
            copied.per_batch_map = self.given
        else:
            copied.operations = [self.given]
        copied.python_multiprocessing = False
        return None

    def tell(self, number):
        """Record what was done, and at the end of the process how many outputs were handed out."""
        recorder.REC.event("stood_in", number=number, node=self.spec.get("node"), mode=self.spec["stand_in"])
        given = self.given
        if not given.reported:
            given.reported = True
            recorder.REC.closing.append(lambda: recorder.REC.line("handed_out", rows=next(given.calls)))

    def _make(self):
        node = self.node
        if self.spec["stand_in"] == UP_TO or not node.children:
            return self._rows()
        if getattr(node, "operations", None):
            return Memory(_real(node.operations))
        if getattr(node, "per_batch_map", None):
            return BatchMemory(node.per_batch_map)
        raise CannotError("a %s runs no function whose output could be remembered" % describe._kind(node))

    def _rows(self):
        copied = _detached(self.node)
        iterator = copied.take(ROWS).create_tuple_iterator(num_epochs=1, output_numpy=True)
        rows, size = [], 0
        try:
            for row in iterator:
                rows.append(_copied(tuple(row)))
                size += sum(getattr(part, "nbytes", 0) for part in rows[-1])
                if size > MOST_BYTES:
                    break
        finally:
            iterator.stop()
        if not rows:
            raise CannotError("it has no rows")
        return Rows(rows, copied.get_col_names(), self._number())

    def _number(self):
        """Rows of an epoch: as counted in an unchanged run, else as MindSpore knows them without reading them all."""
        unsized = [node for node in nodes_of(self.node) if is_unsized(node)]
        if not unsized:
            return _detached(self.node).get_dataset_size()
        if unsized == [self.node]:
            return self.spec.get("rows")
        raise CannotError("its source does not say how many rows it has (no __len__)")


class Counted:
    """A source without a length counts its rows: the unchanged run tells the changed one how long an epoch is."""

    def __init__(self, spec, node):
        self.spec = spec
        self.node = node
        self.thread = threading.get_ident()
        self.applied = False

    def __deepcopy__(self, memo):
        return self

    def apply(self, copied):
        """Let the copy's source count."""
        self.applied = True
        source, limit, number = copied.source, getattr(copied, "num_samples", 0) or None, self.spec["node"]

        def counted():
            rows = 0
            for row in iter(source) if hasattr(source, "__iter__") else source():
                rows += 1
                if rows == limit:
                    recorder.REC.event("source_rows", node=number, rows=rows)
                yield row
            recorder.REC.event("source_rows", node=number, rows=rows)

        copied.source = counted

    def tell(self, number):
        """Nothing is changed, so nothing is told."""


def wanted(spec, dataset, find):
    """What is to be done to the nodes of a dataset; raises CannotError. `find(dataset, spec)`: the node, or why not."""
    if spec["stand_in"] == COUNT:
        nodes = enumerate(nodes_of(dataset))
        return [Counted({"node": number}, node) for number, node in nodes if is_unsized(node)]
    node, why = find(dataset, spec)
    if node is None:
        raise CannotError(why)
    return [StandIn(spec, node)]


def nodes_of(dataset):
    """All operators in pre-order, as `describe` numbers them."""
    todo = [dataset]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(reversed(getattr(node, "children", None) or []))


def is_unsized(node):
    """Whether it is a Python source that does not say how many rows it has."""
    return describe._kind(node) == "GeneratorOp" and getattr(node, "source_len", -1) == -1


def _detached(node):
    """A copy of a part of the user's graph, to be run on its own."""
    parent, node.parent = node.parent, []
    try:
        return copy.deepcopy(node)
    finally:
        node.parent = parent


def _real(operations):
    """One function that does what a map's operations do to a row."""
    from mindspore.dataset.transforms import Compose

    steps = Compose.decompose(list(operations))

    def make(*args):
        for step in steps:
            result = step(*args)
            args = result if isinstance(result, tuple) else (result,)
        return args if len(args) > 1 else args[0]

    return make


def _columns(output):
    return output if isinstance(output, tuple) else (output,)


def _copied(output):
    """An output that stays as it is when MindSpore uses the memory of the row for others."""
    import numpy as np

    if isinstance(output, tuple):
        return tuple(_copied(part) for part in output)
    return np.array(output) if isinstance(output, np.ndarray) else output
