"""Fingerprints of the first batches of two epochs: whether a changed pipeline hands out the same ones.

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
        place = {"number": self.number, "site": self.site, "row": self.row, "epoch": self.epoch}
        recorder.REC.event("batch_digest", digest=state.hexdigest(), **place)
        self.row += 1
        if self.bytes > MOST_BYTES:
            self.left = 0

    def epoch_ended(self):
        """The next epoch begins: once more so many batches."""
        self.left, self.most, self.bytes = self.most, 0, 0
        self.epoch += 1


def begin(number, site, hidden):
    """The fingerprints of an iterator that is about to be built; None where none are wanted."""
    most = recorder.REC.options.get("digest")
    if not most or hidden or _begun.count(site) >= MOST_TREES:
        return None
    if not _begun:
        _seed()
    _begun.append(site)
    return Digests(number, site, int(most))


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
