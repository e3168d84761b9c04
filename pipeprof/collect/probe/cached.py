"""Training iterators that hand out one batch again and again: what `pipeprof headspace` measures.

The first batch is fetched, and the pipeline is stopped, its worker processes too: it takes no core from the training,
not even to fill its queues. Further iterators of the same dataset, such as one for each epoch, hand out that batch as
well, and never start their pipelines. Epochs end after as many batches as they had when the launcher looked, or as the
dataset says.
"""

import weakref

from . import recorder

KEY = "_pipeprof_cached"
_firsts = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[object, dict[object, object]]


class Cached:
    """The batches of one iterator. `lengths`: batches of its epochs, as far as they were seen to their end."""

    def __init__(self, dataset, lengths, usual, epochs):
        self.dataset = dataset
        self.lengths = lengths
        self.usual = usual
        self.epochs = epochs if isinstance(epochs, int) and epochs > 0 else None
        self.epoch = 0
        self.given = 0
        self.batch = None

    def following(self, iterator, original):
        """The next batch, or StopIteration at the end of an epoch."""
        if self.batch is None:
            firsts, kind = firsts_of(self.dataset), self.kind(iterator)
            self.batch = firsts.get(kind)
        if self.batch is None:
            first = original(iterator)
            self.batch = firsts[kind] = _again(first)
            self.given = 1
            self.stop(iterator)
            return first
        length = self._length()
        if (self.epochs is not None and self.epoch >= self.epochs) or (length is not None and self.given >= length):
            self.epoch += 1
            self.given = 0
            raise StopIteration
        self.given += 1
        return _again(self.batch)

    def kind(self, iterator):
        """What an iterator hands out: tuples or dicts, of tensors or of arrays."""
        return type(iterator), iterator.__dict__.get("_output_numpy")

    def stop(self, iterator):
        """Stop its pipeline; for the training the iterator lives on."""
        stop = type(iterator).stop
        getattr(stop, "__wrapped__", stop)(iterator)

    def size(self):
        """Batches of an epoch as far as the library has counted them; None where it has not."""
        size = getattr(self.dataset, "dataset_size", None)
        return size if isinstance(size, int) and size > 0 else None

    def _length(self):
        if self.epoch < len(self.lengths):
            return self.lengths[self.epoch]
        return self.size() if self.usual is None else self.usual


def firsts_of(dataset):
    """The first batches of a dataset's iterators, by what they hand out."""
    try:
        return _firsts.setdefault(dataset, {})
    except TypeError:  # it cannot be a key
        return {}


def _again(batch):
    """The same tensors in containers of their own, also where a column is one: a loop may take them apart."""
    if isinstance(batch, dict):
        return {name: _again(value) for name, value in batch.items()}
    if isinstance(batch, list):
        return [_again(value) for value in batch]
    return tuple(_again(value) for value in batch) if type(batch) is tuple else batch


def install(iterator):
    """Hook the iterator class, beneath the hook that marks fetches; nothing without the launcher's wish."""
    if not recorder.REC.options.get("cached"):
        return
    original = iterator.__next__

    def __next__(self):
        cached = self.__dict__.get(KEY)
        if cached is None:
            return original(self)
        return cached.following(self, original)

    __next__.__wrapped__ = original
    iterator.__next__ = __next__


def attach(iterator, tree, facts, dataset, made=Cached):
    """An iterator was made: if it is one of the training's, it hands out its first batch for ever. Whether it does."""
    wishes = recorder.REC.options.get("cached") or []
    if facts.get("hidden"):
        return False
    for wish in wishes:
        if wish.get("site") != facts.get("site"):
            continue
        lengths = (wish.get("epochs") or {}).get(str(tree.number))
        if lengths is None and not wish.get("only"):
            continue
        iterator.__dict__[KEY] = made(dataset, lengths or [], wish.get("usual"), facts.get("epochs"))
        recorder.REC.event("cached", number=tree.number, lengths=lengths, usual=wish.get("usual"))
        return True
    return False
