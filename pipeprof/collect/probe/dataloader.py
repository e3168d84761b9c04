"""`mindspore.dataset.dataloader.DataLoader`, described for `loaders`, and the places where its stages work.

Its classes are hooked, no object of the user's is. A fetch whose rows are timed sees the dataset and the function that
collates through objects that live as long as the fetch. Worker processes that are forked inherit the hooks with memory
that both sides share; those that are spawned are only known by their number.
"""

import functools
import weakref

from . import callables, loaders, recorder, workers

SAMPLER, DATASET, COLLATE = "Sampler", "Dataset", "Collate"
SETTINGS = ("num_workers", "prefetch_factor", "persistent_workers", "in_order", "pin_memory", "batch_size", "drop_last")

_of_iterators = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[object, loaders.Feed]
_of_fetchers = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[object, loaders.Feed]


def install(module):
    """mindspore.dataset.dataloader.dataloader: the loader and its iterators."""
    workers.wrap(module.DataLoader, "__init__", callables._with_site)
    workers.wrap(
        module.DataLoader,
        "__iter__",
        lambda original: loaders.with_feed(original, _describe, _keeps, _processes),
    )
    workers.wrap(module._Iterator, "__init__", _with_feed_of)
    workers.wrap(
        module._Iterator, "__next__", lambda original: loaders.with_fetches(original, _of_iterators.get, _ready)
    )
    workers.wrap(module._Iterator, "_get_next_index", _indexed)
    workers.wrap(module._MultiProcessIterator, "terminate", _closing)


def install_fetchers(module):
    """mindspore.dataset.dataloader._utils.fetch: what makes the rows and puts them together."""
    workers.wrap(module.MapDatasetFetcher, "fetch", functools.partial(_made, attribute="dataset", proxy=_Rows))
    workers.wrap(
        module.IterableDatasetFetcher, "fetch", functools.partial(_made, attribute="dataset_iterator", proxy=_Next)
    )


def install_workers(module):
    """mindspore.dataset.dataloader._utils.worker: an error in a worker reaches the training as text, without us."""
    original = module.WorkerException.__init__

    def __init__(self, worker_id=None, exc_info=None):
        import sys

        try:
            error = sys.exc_info()[1] if exc_info is None else exc_info[1]
            if error is not None:
                loaders.leave_out_frames(error)
        except Exception:
            recorder.REC.failed("loader")
        original(self, worker_id, exc_info)

    module.WorkerException.__init__ = __init__


def _describe(loader):
    from . import describe

    count = loader.num_workers
    collate = loader.collate_fn if loader.collate_fn is not None else _default(loader)
    stages = [
        loaders.Stage(COLLATE, collate),
        loaders.Stage(DATASET, loader.dataset),
        loaders.Stage(SAMPLER, loader.index_sampler, is_alone=True),
    ]
    batch = getattr(loader.batch_sampler, "batch_size", None)
    settings = {name: getattr(loader, name, None) for name in SETTINGS}
    ahead = count * (loader.prefetch_factor or 0)
    return loaders.Description(loader, stages, count, ahead, describe._integer(batch), settings)


def _default(loader):
    """The function that collates where the user gave none."""
    import sys

    module = sys.modules[type(loader).__module__.rpartition(".")[0] + "._utils.collate"]
    return module.default_collate if loader.auto_collation else module.default_convert


def _keeps(loader):
    """Whether its workers persist, and an iterator with a feed is handed out again."""
    return loader.__dict__.get("_iterator") in _of_iterators


def _processes(iterator):
    return [worker.pid for worker in getattr(iterator, "data_workers", ())]


def _with_feed_of(original):
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            feed = loaders.being_made()
            if feed is not None:
                _of_iterators[self] = _of_fetchers[self.dataset_fetcher] = feed
        except Exception:
            recorder.REC.failed("loader")

    return __init__


def _ready(iterator):
    """Of a loader with workers: batches that are made, those that came before an earlier one, and tasks not begun."""
    if not hasattr(iterator, "index_queues"):
        return None
    held = sum(len(task) == 2 for task in iterator.task_info.values())
    return held + iterator.result_queue.qsize(), held, sum(queue.qsize() for queue in iterator.index_queues)


def _indexed(original):
    def _get_next_index(self):
        timer = recorder.guarded("loader", _timer, self, _of_iterators, SAMPLER, 1)
        return original(self) if timer is None else loaders.timed(timer, original, self)

    return _get_next_index


def _closing(original):
    def terminate(self):
        feed = recorder.guarded("loader", _of_iterators.get, self)
        if feed is not None:
            recorder.guarded("loader", feed.close)
        return original(self)

    return terminate


def _made(original, attribute, proxy):
    """A fetch of a batch: now and then with each of its rows and what collates them timed."""

    def fetch(self, indices):
        replaced = recorder.guarded("loader", _replace, self, indices, attribute, proxy)
        if not replaced:
            return original(self, indices)
        try:
            return original(self, indices)
        finally:
            recorder.guarded("loader", _put_back, self, replaced)

    return fetch


def _replace(fetcher, indices, attribute, proxy):
    """Put what is timed in the place of the fetcher's own; what was there comes back."""
    try:
        count = len(indices) if fetcher.auto_collation else 1
    except TypeError:  # a sampler of the user's
        count = 1
    rows = _timer(fetcher, _of_fetchers, DATASET, count)
    collate = _timer(fetcher, _of_fetchers, COLLATE, 1)
    before = fetcher.__dict__
    replaced = {}
    if rows is not None:
        replaced[attribute] = before[attribute], proxy(before[attribute], rows)
    if collate is not None:
        replaced["collate_fn"] = (
            before["collate_fn"],
            functools.partial(loaders.timed, collate, before["collate_fn"]),
        )
    fetcher.__dict__.update({name: timed for name, (_, timed) in replaced.items()})
    return replaced


def _put_back(fetcher, replaced):
    for name, (own, timed) in replaced.items():
        if fetcher.__dict__.get(name) is timed:
            fetcher.__dict__[name] = own


def _timer(owner, feeds, kind, count):
    """What times a stage now; None where it is only counted."""
    feed = feeds.get(owner)
    timer = None if feed is None else feed.timer(kind)
    return timer if timer is not None and timer.takes(count) else None


class _Rows:
    """A dataset for the time of one fetch."""

    __slots__ = ("_own", "_timer")

    def __init__(self, own, timer):
        self._own = own
        self._timer = timer

    def __getitem__(self, index):
        return loaders.timed(self._timer, self._own.__getitem__, index)


class _Next:
    """The iterator of a dataset for the time of one fetch."""

    __slots__ = ("_own", "_timer")

    def __init__(self, own, timer):
        self._own = own
        self._timer = timer

    def __iter__(self):
        return self

    def __next__(self):
        return loaders.timed(self._timer, next, self._own)
