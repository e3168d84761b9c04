"""Fingerprints of batches: whether a changed pipeline hands out the same ones.

Of a run that is timed those of the first batches of two epochs; of one that is not, of each whole epoch: one of all
batches in their order, and the sum of those of all rows, which another order leaves as it is.

A dataset without a seed of its own gets one, once for the process: else no two runs of it could be compared.
"""

import hashlib

from . import recorder

SEED = 1
UNSET = 5489  # MindSpore's seed where nobody set one
MOST_TREES = 4  # of a place that makes iterators
MOST_BYTES = 64 << 20  # of a tree's batches together

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


class WholeEpochs:
    """Every batch of one iterator: its epochs are told when they end, the last one at the end of the process."""

    def __init__(self, number, site):
        self.number = number
        self.site = site
        self.epoch = 0
        self._begin()
        recorder.REC.closing.append(self._closed)

    def add(self, row):
        """Take a batch in."""
        self.batches += 1
        feed(self.ordered, row)
        for one in rows_of(row):
            state = hashlib.blake2b(digest_size=16)
            feed(state, one)
            self.rows += 1
            # A sum, not an exclusive or: a row that is handed out twice must not look like none.
            self.sum = (self.sum + int.from_bytes(state.digest(), "big")) % (1 << 128)

    def epoch_ended(self):
        """Tell the epoch; the next one begins."""
        self._tell(is_complete=True)
        self.epoch += 1
        self._begin()

    def _begin(self):
        self.batches = self.rows = self.sum = 0
        self.ordered = hashlib.blake2b(digest_size=16)

    def _closed(self):
        if self.batches:
            self._tell(is_complete=False)

    def _tell(self, is_complete):
        facts = {"number": self.number, "site": self.site, "epoch": self.epoch, "whole": is_complete}
        facts.update(batches=self.batches, rows=self.rows, sum="%032x" % self.sum, ordered=self.ordered.hexdigest())
        recorder.REC.line("epoch_digest", **facts)


def rows_of(batch):
    """The rows of a batch, where all columns are arrays of equal length; else the batch as a single row."""
    names = sorted(batch) if isinstance(batch, dict) else range(len(batch))
    columns = [batch[name].asnumpy() if hasattr(batch[name], "asnumpy") else batch[name] for name in names]
    lengths = {part.shape[0] if getattr(part, "shape", ()) else None for part in columns}
    if len(lengths) != 1 or None in lengths:
        return [batch]
    return [[part[index] for part in columns] for index in range(lengths.pop())]


def begin(number, site, hidden):
    """The fingerprints of an iterator that is about to be built; None where none are wanted."""
    options = recorder.REC.options
    most, every = options.get("digest"), options.get("digest_all")
    if hidden or not (every or (most and _begun.count(site) < MOST_TREES)):
        return None
    if not _begun:
        _seed()
    _begun.append(site)
    return WholeEpochs(number, site) if every else Digests(number, site, int(most))


def feed(state, value):
    """Feed a value into a hash: names, types, shapes and contents; returns how many bytes there were."""
    if isinstance(value, dict):
        return sum(feed(state, name) + feed(state, value[name]) for name in sorted(value))
    if isinstance(value, (list, tuple)):
        return sum(feed(state, one) for one in value)
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    if hasattr(value, "tobytes"):
        data = value.tobytes()
        state.update(("%s %s;" % (value.dtype, value.shape)).encode())
    else:
        data = repr(value).encode()
    state.update(data)
    return len(data)


def _seed():
    from mindspore.dataset import config

    if config.get_seed() == UNSET:
        config.set_seed(SEED)
