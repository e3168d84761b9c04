"""DataLoaders of a training that hand out one batch again and again, as `cached` has it: for `pipeprof headspace`.

The first iterator of a loader fetches a batch and ends its workers. An epoch behind that gets an object that hands out
the batch of the first, and starts none; workers that would persist are not waited for.
"""

import functools

from . import cached, loaders, recorder, workers


class OfLoader(cached.Cached):
    """The batches of one iterator; `end` is the method of its class that ends workers."""

    def __init__(self, end, *args):
        super().__init__(*args)
        self.end = end

    def kind(self, iterator):
        """All iterators of a loader hand out the same."""

    def stop(self, iterator):
        """End its workers, if it has any."""
        end = getattr(type(iterator), self.end, None)
        if end is not None:
            getattr(end, "__wrapped__", end)(iterator)

    def size(self):
        """Batches of an epoch; None where the dataset does not know its length."""
        try:
            return len(self.dataset)
        except TypeError:
            return None

    def begin(self):
        """An epoch begins, also where the loop left the one before."""
        if self.given:
            self.epoch, self.given = self.epoch + 1, 0


class Again:
    """An iterator of a loader that hands out what the first one fetched."""

    def __init__(self, loader):
        self._loader = loader

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader)

    def __next__(self):
        return self.__dict__[cached.KEY].following(self, None)


def install(loader, iterator, end, feeds):
    """Hook the classes of a loader, beneath the hooks that record; nothing without the launcher's wish.

    `iterator`: None where a class that it inherits is hooked; `end`: the method that ends workers; `feeds`: iterators'.
    """
    if not recorder.REC.options.get("cached"):
        return
    if iterator is not None:
        cached.install(iterator)
    workers.wrap(loader, "__iter__", functools.partial(_with_first, end=end, feeds=feeds))
    if not hasattr(Again.__next__, "__wrapped__"):
        workers.wrap(Again, "__next__", lambda original: loaders.with_fetches(original, feeds.get, lambda _: None))


def _with_first(original, end, feeds):
    def __iter__(self):
        iterator = recorder.guarded("cached", _begun, self, end, feeds)
        if iterator is None:
            iterator = original(self)
            recorder.guarded("cached", _attach, iterator, self, end)
        return iterator

    return __iter__


def _begun(loader, end, feeds):
    """What an epoch of a loader gets whose first batch is known; None where it is not."""
    if None not in cached.firsts_of(loader):
        return None
    kept = getattr(loader, "_iterator", None)
    if kept is not None:
        state = kept.__dict__.get(cached.KEY)
        if state is not None:
            state.begin()
        return kept if state is not None else None
    again = Again(loader)
    if not _attach(again, loader, end):
        return None
    feeds[again] = loaders.being_made()
    return again


def _attach(iterator, loader, end):
    feed = loaders.being_made()
    if feed is None:
        return False
    return cached.attach(iterator, feed, {"site": feed.description.site}, loader, functools.partial(OfLoader, end))
