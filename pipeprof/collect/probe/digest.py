"""Fingerprints of batches: whether a changed pipeline hands out the same ones.

Of a run that is timed those of the first batches of two epochs; of one that is not, of each whole epoch: one of all
batches in their order, and the sum of those of all rows, which another order leaves as it is. The same of
each column: where random operations draw other numbers, labels must still be what they were.

A dataset without a seed of its own gets one, once for the process: else no two runs of it could be compared. The
generators that a DataLoader draws from are those of the process: they begin anew at its first iterator. What random
numbers do is seen by a run with other seeds, also of Python's and NumPy's generators.
"""

import bisect
import hashlib
import random
import sys

from . import recorder, workers

SEED, OTHER_SEED = 1, 2
UNSET = 5489  # MindSpore's seed where nobody set one
MOST_TREES = 4  # of a place that makes iterators
MOST_BYTES = 64 << 20  # of a tree's batches together
MODULUS = 1 << 128
SKETCH = 32  # fingerprints of a column: the least of all, by which two epochs are seen to share values

_begun = []  # type: list[str]


class Digests:
    """The first batches of one iterator, and of its second epoch: a cache hands out what it kept from then on."""

    def __init__(self, number, site, most):
        self.number = number
        self.site = site
        self.left = self.most = most
        self.row = self.epoch = 0
        self.bytes = 0

    def add(self, row):
        """Record the fingerprint of a batch, as long as there are not enough."""
        if self.left <= 0:
            return
        self.left -= 1
        state = hashlib.blake2b(digest_size=16)
        self.bytes += feed(state, row)
        position = {"number": self.number, "site": self.site, "row": self.row, "epoch": self.epoch}
        recorder.REC.event("batch_digest", digest=state.hexdigest(), **position)
        self.row += 1
        if self.bytes > MOST_BYTES:
            self.left = 0

    def epoch_ended(self):
        """The next epoch begins: once more so many batches."""
        self.left, self.most, self.bytes = self.most, 0, 0
        self.epoch += 1

    def epoch_left(self):
        """Of an epoch that the loop left all is known that is wanted."""


class WholeEpochs:
    """Every batch of one iterator: its epochs are told when they end, the last one at the end of the process."""

    def __init__(self, number, site):
        self.number = number
        self.site = site
        self.epoch = 0
        self._begin()
        recorder.REC.closing.append(self._closed)

    def add(self, batch):
        """Take a batch in. An epoch of which one could not be taken in is not told."""
        self.batches, self.unseen = self.batches + 1, self.unseen + 1
        batch = columns_of(batch)
        names = sorted(batch) if isinstance(batch, dict) else range(len(batch))
        rows = rows_of(batch)
        self.ordered.update(("%d rows of %s;" % (len(rows), list(names))).encode())
        for row in rows:
            state = hashlib.blake2b(digest_size=16)
            for name, value in zip(names, [row[name] for name in names] if row is batch else row):
                state.update(self.columns.setdefault(name, Column(name)).add(value))
            self.rows += 1
            # A sum, not an exclusive or: a row that is handed out twice must not look like none.
            self.sum = (self.sum + int.from_bytes(state.digest(), "big")) % MODULUS
            self.ordered.update(state.digest())
        self.unseen -= 1

    def epoch_ended(self, is_complete=True):
        """Tell the epoch; the next one begins."""
        self._tell(is_complete)
        self.epoch += 1
        self._begin()

    def epoch_left(self):
        """The loop fetches from the beginning again: it has left the epoch, or come to its end."""
        if self.batches:
            self.epoch_ended(is_complete=False)

    def _begin(self):
        self.batches = self.unseen = self.rows = self.sum = 0
        self.columns = {}
        self.ordered = hashlib.blake2b(digest_size=16)

    def _closed(self):
        if self.batches:
            self._tell(is_complete=False)

    def _tell(self, is_complete):
        if self.unseen:
            return
        facts = {"number": self.number, "site": self.site, "epoch": self.epoch, "whole": is_complete}
        facts.update(batches=self.batches, rows=self.rows, sum="%032x" % self.sum, ordered=self.ordered.hexdigest())
        facts["columns"] = [column.facts() for column in self.columns.values()]
        recorder.REC.line("epoch_digest", **facts)


class Column:
    """One column of an epoch: in its order, as a sum, its types and shapes, and the least fingerprints of values."""

    def __init__(self, name):
        self.name = str(name)
        self.ordered = hashlib.blake2b(digest_size=16)
        self.sum = self.form = 0
        self.least = []

    def add(self, value):
        """Take the value of a row in; returns its fingerprint."""
        state = hashlib.blake2b(digest_size=16)
        feed(state, value)
        digest = state.digest()
        self.ordered.update(digest)
        self.sum = (self.sum + int.from_bytes(digest, "big")) % MODULUS
        form = "%s %s" % (getattr(value, "dtype", type(value).__name__), getattr(value, "shape", ()))
        form = hashlib.blake2b(form.encode(), digest_size=16).digest()
        self.form = (self.form + int.from_bytes(form, "big")) % MODULUS
        text = state.hexdigest()[:16]
        at = bisect.bisect_left(self.least, text)
        if at < SKETCH and self.least[at : at + 1] != [text]:
            self.least.insert(at, text)
            del self.least[SKETCH:]
        return digest

    def facts(self):
        """For the record."""
        sums = {"sum": "%032x" % self.sum, "form": "%032x" % self.form, "ordered": self.ordered.hexdigest()}
        return dict(sums, name=self.name, least=self.least)


def columns_of(batch):
    """A batch as a dict or a sequence of columns: also what has the keys of a dict, and a single array."""
    if isinstance(batch, (dict, list, tuple)):
        return batch
    return {name: batch[name] for name in batch.keys()} if hasattr(batch, "keys") else [batch]  # noqa: SIM118


def rows_of(batch):
    """The rows of a batch, where all columns are arrays of equal length; else the batch as a single row."""
    names = sorted(batch) if isinstance(batch, dict) else range(len(batch))
    columns = [_array(batch[name]) for name in names]
    lengths = {part.shape[0] if getattr(part, "shape", ()) else None for part in columns}
    if len(lengths) != 1 or None in lengths:
        return [batch]
    return [[part[index] for part in columns] for index in range(lengths.pop())]


def _array(value):
    """The array of a tensor; everything else as it is."""
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:  # NumPy has no such numbers
        return tensor.double().numpy()


def begin(number, site, hidden, of_loader=False):
    """The fingerprints of an iterator that is about to be built; None where none are wanted."""
    options = recorder.REC.options
    most, every = options.get("digest"), options.get("digest_all")
    if hidden or not (every or (most and _begun.count(site) < MOST_TREES)):
        return None
    if not _begun:
        (_seed_process if of_loader else _seed)(options.get("other_seed"))
    _begun.append(site)
    return WholeEpochs(number, site) if every else Digests(number, site, int(most))


def install(loader):
    """Hook the class of a loader that makes itself a generator where the script gives none; that gets a seed, too."""
    options = recorder.REC.options
    if options.get("digest") or options.get("digest_all"):
        workers.wrap(loader, "__init__", _seeded)


def _seeded(original):
    import inspect

    signature = inspect.signature(original)

    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if signature.bind(self, *args, **kwargs).arguments.get("generator") is None:
            recorder.guarded("digest", _seed_generator, self.generator)

    return __init__


def _seed_generator(generator):
    from numpy.random import default_rng

    seed = OTHER_SEED if recorder.REC.options.get("other_seed") else SEED
    generator.bit_generator.state = default_rng(seed).bit_generator.state


def feed(state, value):
    """Feed a value into a hash: names, types, shapes and contents; returns how many bytes there were."""
    if isinstance(value, (dict, list, tuple)):
        state.update(b"%d of them;" % len(value))
    if isinstance(value, dict):
        return sum(feed(state, name) + feed(state, value[name]) for name in sorted(value))
    if isinstance(value, (list, tuple)):
        return sum(feed(state, one) for one in value)
    value = _array(value)
    if hasattr(value, "tobytes"):
        data = value.tobytes()
        state.update(("%s %s;" % (value.dtype, value.shape)).encode())
    else:
        data = (repr(value) + ";").encode()
    state.update(data)
    return len(data)


def _seed(is_other):
    """Give MindSpore's dataset a seed where it has none; or other seeds to all that draw random numbers."""
    from mindspore.dataset import config

    if is_other:
        config.set_seed(OTHER_SEED if config.get_seed() != OTHER_SEED else SEED)
        _seed_process(is_other)
    elif config.get_seed() == UNSET:
        config.set_seed(SEED)


def _seed_process(is_other):
    """Give seeds to the generators of the process that draw random numbers by themselves."""
    seed = OTHER_SEED if is_other else SEED
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
