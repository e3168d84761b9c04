"""The DataLoaders of PyTorch and MindSpore, which are of one shape: described for `loaders`, and where they work.

Their classes are hooked, no object of the user's is. A fetch whose rows are timed sees the dataset, its transforms and
the function that collates through objects that live as long as the fetch. Worker processes that are forked inherit the
hooks with memory that both sides share; those that are spawned are only known by their number.
"""

import functools
import weakref
from itertools import islice

from . import again, arguments, cached, callables, digest, loaders, recorder, workers

SAMPLER, DATASET, TRANSFORM, COLLATE = "Sampler", "Dataset", "Transform", "Collate"
COMPOSE = "torchvision.", "Compose"  # module and class of what has a list of `transforms`
HOLDERS = ("dataset", "datasets", "transform", "transforms", "target_transform")  # of what may hold one
MOST_TRANSFORMS, DEPTH = 16, 4
SETTINGS = ("num_workers", "prefetch_factor", "persistent_workers", "in_order", "pin_memory", "batch_size", "drop_last")

_of_iterators = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[object, loaders.Feed]
_of_fetchers = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[object, loaders.Feed]


class Names:
    """What a library calls the parts of its loader (`sampler`, of the index order) and of the iterators of that."""

    def __init__(self, sampler, processes, indices, tasks, results):
        self.sampler, self.processes, self.indices, self.tasks, self.results = (
            sampler,
            processes,
            indices,
            tasks,
            results,
        )


MINDSPORE = Names("index_sampler", "data_workers", "index_queues", "task_info", ("result_queue",))
TORCH = Names("_index_sampler", "_workers", "_index_queues", "_task_info", ("_worker_result_queue", "_data_queue"))


def install(module):
    """mindspore.dataset.dataloader.dataloader: the loader and its iterators."""
    digest.install(module.DataLoader)
    again.install(module.DataLoader, module._Iterator, "terminate", _of_iterators)
    _install_loader(module.DataLoader, module._Iterator, "_get_next_index", MINDSPORE)
    workers.wrap(module._MultiProcessIterator, "terminate", _closing)


def install_fetchers(module):
    """mindspore.dataset.dataloader._utils.fetch: what makes the rows and puts them together."""
    _install_fetchers(module.Fetcher, module.MapDatasetFetcher, module.IterableDatasetFetcher, "dataset_iterator")


def install_workers(module):
    """mindspore.dataset.dataloader._utils.worker: an error in a worker reaches the training as text, without us."""
    original = module.WorkerException.__init__

    def __init__(self, worker_id=None, exc_info=None):
        _without_us(exc_info)
        original(self, worker_id, exc_info)

    module.WorkerException.__init__ = __init__


def install_torch(module):
    """torch.utils.data.dataloader: the loader and its iterators."""
    again.install(module.DataLoader, module._BaseDataLoaderIter, "_shutdown_workers", _of_iterators)
    _install_loader(module.DataLoader, module._BaseDataLoaderIter, "_next_index", TORCH)
    workers.wrap(module._MultiProcessingDataLoaderIter, "_shutdown_workers", _closing)


def install_stateful(module):
    """The loader of torchdata: it makes iterators that inherit PyTorch's, and calls nothing of its DataLoader."""
    again.install(module.StatefulDataLoader, None, "_shutdown_workers", _of_iterators)
    _install_maker(module.StatefulDataLoader, TORCH)
    workers.wrap(module._StatefulMultiProcessingDataLoaderIter, "_shutdown_workers", _closing)


def install_torch_fetchers(module):
    """torch.utils.data._utils.fetch: what makes the rows and puts them together."""
    _install_fetchers(
        module._BaseDatasetFetcher, module._MapDatasetFetcher, module._IterableDatasetFetcher, "dataset_iter"
    )


def install_torch_errors(module):
    """torch._utils: an error in a worker reaches the training as text, without us."""
    original = module.ExceptionWrapper.__init__

    def __init__(self, exc_info=None, where="in background"):
        _without_us(exc_info)
        original(self, exc_info, where)

    module.ExceptionWrapper.__init__ = __init__


def _without_us(exc_info):
    """`exc_info`: what is told of an error; None for the one that is being handled."""
    import sys

    try:
        error = sys.exc_info()[1] if exc_info is None else exc_info[1]
        if error is not None:
            recorder.unseen(error)
    except Exception:
        recorder.REC.failed("loader")


def _install_maker(loader, names):
    describe, processes = functools.partial(_describe, names), functools.partial(_processes, names)
    arguments.install(loader)
    workers.wrap(loader, "__init__", callables._with_site)
    workers.wrap(loader, "__iter__", lambda original: loaders.with_feed(original, describe, _kept, processes))


def _install_loader(loader, iterator, next_index, names):
    _install_maker(loader, names)
    workers.wrap(iterator, "__init__", lambda original: _with_feed_of(original, _of_iterators))
    ready = functools.partial(_ready, names)
    workers.wrap(iterator, "__next__", lambda original: loaders.with_fetches(original, _of_iterators.get, ready))
    workers.wrap(iterator, next_index, _indexed)


def _install_fetchers(base, of_map, of_iterable, iterator):
    workers.wrap(base, "__init__", lambda original: _with_feed_of(original, _of_fetchers))
    workers.wrap(of_map, "fetch", functools.partial(_made, attribute="dataset", proxy=_Rows))
    workers.wrap(of_iterable, "fetch", functools.partial(_made, attribute=iterator, proxy=_Next))


def _describe(names, loader):
    from . import describe

    count = loader.num_workers
    collate = loader.collate_fn if loader.collate_fn is not None else _default(loader)
    composed = list(_composed(loader.dataset, set(), DEPTH))
    transforms = _numbered(composed)
    stages = [
        loaders.Stage(COLLATE, collate),
        *(loaders.Stage(TRANSFORM, _function(own), key=key) for key, own in reversed(transforms)),
        loaders.Stage(DATASET, loader.dataset),
        loaders.Stage(SAMPLER, _order(getattr(loader, names.sampler)), is_alone=True),
    ]
    batch = getattr(loader.batch_sampler, "batch_size", None)
    settings = {name: getattr(loader, name, None) for name in SETTINGS}
    ahead = count * (loader.prefetch_factor or 0)
    return loaders.Description(loader, stages, count, ahead, describe._integer(batch), settings, composed)


def _order(sampler):
    """What orders the rows: of a sampler that only puts the numbers of another one together, the user's own."""
    inner = getattr(sampler, "sampler", None)
    return sampler if inner is None or _is_of_library(inner) or not _is_of_library(sampler) else inner


def _is_of_library(thing):
    return type(thing).__module__.partition(".")[0] in ("mindspore", "torch")


def _composed(thing, seen, depth):
    """The objects of a dataset that compose transforms, in the order in which they are found."""
    if id(thing) in seen or not depth:
        return
    seen.add(id(thing))
    held = getattr(thing, "__dict__", None) or {}
    if _composes(thing) and isinstance(held.get("transforms"), list):
        yield thing
    for name, value in list(held.items()):
        if name in HOLDERS or _composes(value):
            for one in islice(value, MOST_TRANSFORMS) if isinstance(value, (list, tuple)) else (value,):
                yield from _composed(one, seen, depth - 1)


def _composes(thing):
    kind = type(thing)
    return kind.__name__ == COMPOSE[1] and str(kind.__module__).startswith(COMPOSE[0])


def _numbered(composed):
    """(key of the stage, the transform) of each that does no composing itself."""
    known = {id(one) for one in composed}
    transforms = {id(own): own for one in composed for own in one.__dict__["transforms"] if id(own) not in known}
    return [((TRANSFORM, number), own) for number, own in enumerate(islice(transforms.values(), MOST_TRANSFORMS))]


def _function(transform):
    """What a transform calls, where it only calls that."""
    return (getattr(transform, "__dict__", None) or {}).get("lambd", transform)


def _default(loader):
    """The function that collates where the user gave none."""
    import sys

    module = sys.modules[type(loader).__module__.rpartition(".")[0] + "._utils.collate"]
    return module.default_collate if loader.auto_collation else module.default_convert


def _kept(loader):
    """The feed of the iterator that is handed out again, since its workers persist; None for a new one."""
    if not (loader.persistent_workers and loader.num_workers):
        return None  # some keep the last one all the same
    iterator = loader.__dict__.get("_iterator")
    return None if iterator is None else _of_iterators.get(iterator)


def _processes(names, iterator):
    return [worker.pid for worker in getattr(iterator, names.processes, ())]


def _with_feed_of(original, feeds):
    """Remember which feed an iterator, or what makes its batches, belongs to."""

    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            feed = loaders.being_made()
            if feed is not None:
                feeds[self] = feed
        except Exception:
            recorder.REC.failed("loader")

    return __init__


def _ready(names, iterator):
    """Of a loader with workers: batches that are made, those that came before an earlier one, and tasks not begun."""
    indices = getattr(iterator, names.indices, None)
    if indices is None or cached.KEY in iterator.__dict__:
        return None
    held = sum(len(task) == 2 for task in getattr(iterator, names.tasks).values())
    results = {id(queue): queue for queue in (getattr(iterator, name) for name in names.results)}  # one, or two
    return held + sum(queue.qsize() for queue in results.values()), held, sum(queue.qsize() for queue in indices)


def _indexed(original):
    def _get_next_index(self):
        timer = recorder.guarded("loader", _timer, self, _of_iterators, SAMPLER, 1)
        return original(self) if timer is None else loaders.timed(timer, original, self)

    return _get_next_index


def _closing(original):
    def terminate(self):
        feed = recorder.guarded("loader", _of_iterators.get, self)
        first = feed is not None and not feed.is_closed
        if first:
            recorder.guarded("loader", feed.close)
        begin = recorder.guarded("loader", recorder.now)
        try:
            return original(self)
        except BaseException as error:
            recorder.unseen(error)
            raise
        finally:
            if first:
                recorder.guarded("loader", feed.ended, begin)

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
            recorder.guarded("loader", _put_back, replaced)

    return fetch


def _replace(fetcher, indices, attribute, proxy):
    """Put what is timed in the place of what is there: (where, name, what was there, what is now) of each."""
    try:
        count = len(indices) if fetcher.auto_collation else 1
    except TypeError:  # a sampler of the user's
        count = 1
    rows = _timer(fetcher, _of_fetchers, DATASET, count)
    collate = _timer(fetcher, _of_fetchers, COLLATE, 1)
    before = fetcher.__dict__
    replaced = []
    within = _within(_of_fetchers.get(fetcher), count, rows is not None, replaced)
    if rows is not None:
        replaced.append((before, attribute, before[attribute], proxy(before[attribute], rows, within)))
    if collate is not None:
        own = before["collate_fn"]
        replaced.append((before, "collate_fn", own, functools.partial(loaders.timed, collate, own)))
    for holder, name, _, timed in replaced:
        holder[name] = timed
    return replaced


def _within(feed, count, timed, replaced):
    """Have the transforms of a dataset timed, or only counted."""
    composed = () if feed is None else feed.description.composed
    if not composed:
        return None
    timers = {id(own): feed.timer(key) for key, own in _numbered(composed)}
    for timer in timers.values():
        if timer is not None:
            timer.count(count, timed)
    if not timed:
        return None
    within = loaders.Within()
    for one in composed:
        own = one.__dict__["transforms"]
        parts = [_Part(part, within, timers[id(part)]) if timers.get(id(part)) else part for part in own]
        replaced.append((one.__dict__, "transforms", own, parts))
    return within


def _put_back(replaced):
    for holder, name, own, timed in replaced:
        if holder.get(name) is timed:
            holder[name] = own


def _timer(owner, feeds, kind, count):
    """What times a stage now; None where it is only counted."""
    feed = feeds.get(owner)
    timer = None if feed is None else feed.timer(kind)
    return timer if timer is not None and timer.takes(count) else None


class _Rows:
    """A dataset for the time of one fetch."""

    __slots__ = ("_own", "_timer", "_within")

    def __init__(self, own, timer, within):
        self._own = own
        self._timer = timer
        self._within = within

    def __getitem__(self, index):
        return loaders.timed_together(self._timer, 1, self._within, self._own.__getitem__, index)

    def __getattr__(self, name):  # of those that have it: all rows of a batch at once
        own = getattr(self._own, name)
        if name != "__getitems__" or not own:
            return own
        return lambda indices: loaders.timed_together(self._timer, len(indices), self._within, own, indices)


class _Next:
    """The iterator of a dataset for the time of one fetch."""

    __slots__ = ("_own", "_timer", "_within")

    def __init__(self, own, timer, within):
        self._own = own
        self._timer = timer
        self._within = within

    def __iter__(self):
        return self

    def __next__(self):
        return loaders.timed_together(self._timer, 1, self._within, next, self._own)


class _Part:
    """A transform for the time of one fetch."""

    __slots__ = ("_own", "_place", "_within")

    def __init__(self, own, within, timer):
        self._own = own
        self._within = within
        self._place = within.place(timer)

    def __call__(self, *args, **kwargs):
        return self._within.timed(self._place, self._own, args, kwargs)

    def __getattr__(self, name):
        return getattr(self._own, name)
