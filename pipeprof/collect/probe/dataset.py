"""Dataset iterators: every fetch, and what each iterator's tree is made of. Of its queues see `trees`."""

import os
import re
import sys
import threading

from . import (
    cached,
    callables,
    describe,
    digest,
    files,
    gil,
    hooks,
    override,
    recorder,
    service,
    smaps,
    steps,
    swap,
    trees,
    weights,
    where,
    windows,
)

GETTERS = frozenset(
    [
        "get_dataset_size",
        "output_shapes",
        "output_types",
        "get_col_names",
        "get_class_indexing",
        "num_classes",
        "dataset_sizes",
    ]
)
EARLIER = "not_recorded: the iterator was made before the profile began"
SOURCE_FILE = "datasets_user_defined.py"

# What MindSpore says about a tree that is not registered because another one is: true, but the user never asked
NOTICE = rb"\[WARNING\][^\n]*Dataset Profiling is already enabled for a different data pipeline[^\n]*\n"

SERVICE = None
TREES = None
SWAP = swap.Swap(re.compile(service.BLOCK + b"|" + NOTICE))
_nesting = threading.local()
_alive = []  # type: list[object]
_counter = [0]
_equipped = []  # type: list[object]  # the recorder that was looked at last


def install(module):
    """Hook the iterator classes of mindspore.dataset.engine.iterators."""
    iterator = module.Iterator
    _install_init(iterator)
    cached.install(iterator)
    _install_next(iterator)
    _install_stop(iterator)


def _install_init(iterator):
    original = iterator.__init__

    def __init__(self, dataset, *args, **kwargs):
        if recorder.REC.off and not recorder.REC.waiting:
            return original(self, dataset, *args, **kwargs)
        begin = recorder.guarded("clock", recorder.now) or 0
        tree, facts = _before_build(self, dataset, args, kwargs)
        depth = getattr(_nesting, "depth", 0)
        _nesting.depth = depth + 1
        beside = TREES is not None and tree is not None and not tree.registered
        quiet = beside and recorder.guarded("stderr", SWAP.begin)
        timed = tree is not None and not tree.hidden and recorder.REC.options.get("service", True)
        wanted = recorder.guarded("override", override.begin, tree, facts, dataset)
        if timed:
            recorder.guarded("callables", callables.begin, tree, facts["graph"])
        try:
            original(self, dataset, *args, **kwargs)
        except BaseException as error:
            if tree is not None and tree.registered:
                recorder.guarded("tree", TREES.forget, tree)
            recorder.unseen(error)
            raise
        finally:
            _nesting.depth = depth
            recorder.guarded("override", override.end, tree, wanted)
            if timed:
                recorder.guarded("callables", callables.end)
            if quiet:
                recorder.guarded("stderr", SWAP.end)
            if TREES is not None:
                recorder.guarded("tree", TREES.built)
        if tree is not None:
            self.__dict__["_pipeprof"] = tree
            recorder.guarded("cached", cached.attach, self, tree, facts, dataset)
            recorder.guarded("tree", _built, tree, facts, begin)
        return None

    __init__.__wrapped__ = original
    iterator.__init__ = __init__


def install_datasets(module):
    """Hook the operators of mindspore.dataset.engine.datasets."""
    callables.install_datasets(module)
    install_workers(module)


def install_workers(module):
    """Keep MindSpore from remembering half of an operator's worker processes.

    Its sampler asks for their process ids as soon as it runs. While they are still being started the answer is
    incomplete, and MindSpore keeps it for good: ending the workers then fails. So an incomplete answer is not kept.
    """
    owner = getattr(module, "_PythonMultiprocessing", None)
    if owner is None or not hasattr(owner, "get_pids"):
        return
    original = owner.get_pids

    def get_pids(self):
        pids = original(self)
        try:
            if self.pids and (None in self.pids or len(self.pids) < self.num_parallel_workers):
                self.pids = None
                return [pid for pid in pids if pid is not None]
        except AttributeError:
            pass
        return pids

    get_pids.__wrapped__ = original
    owner.get_pids = get_pids


def _before_build(iterator, dataset, args, kwargs):
    try:
        _prepare()
        hidden, site = _origin()
        if hidden and getattr(_nesting, "depth", 0) and TREES is not None and TREES.current is not None:
            TREES.current.nested = True
        tree = trees.Tree(iterator, _next_number(), hidden)
        epochs = kwargs.get("num_epochs", args[0] if args and isinstance(args[0], int) else None)
        facts = {"hidden": hidden, "site": site, "epochs": epochs, "graph": describe.describe(dataset)}
        if hidden:
            facts["queues"] = "not_recorded: made by MindSpore or by a source, not by the training loop"
        elif TREES is None or not recorder.REC.options.get("queue_interval_ms", 100):
            facts["queues"] = "not_recorded: queue sampling is off"
        else:
            why = recorder.guarded("queues", TREES.register, tree)  # its fetches are recorded whatever comes of it
            facts["queues"] = "not_recorded: MindSpore's recorder of queues failed" if why is None else why
        _time_services(tree, facts["graph"])
        tree.digest = digest.begin(tree.number, site, hidden)
        tree.plain = tree.digest is None
    except Exception:
        recorder.REC.failed("iterator")
        return None, None
    return tree, facts


def _built(tree, facts, begin):
    if tree.registered and tree.nested:
        facts["queues"] = "not_attributable: another iterator was made while this one was being built"
    tree.facts = dict(facts, number=tree.number, begin=begin, end=recorder.now(), thread=tree.other_thread)
    recorder.REC.event("iterator", **tree.facts)


def _install_next(iterator):  # noqa: C901 - one more call would cost time
    original = iterator.__next__
    now = recorder.now

    def __next__(self):
        # Short, because what it runs is mostly not in the caches any more: nothing is called that has nothing to do.
        rec = recorder.REC
        tree = self.__dict__.get("_pipeprof")
        if tree is None or rec.off:
            return _unwatched(original, self, tree, rec)
        if not (steps.LOOP.model or tree.hidden):
            steps.LOOP.before_fetch(tree)
        timed = SERVICE is not None and SERVICE.on and recorder.guarded("service", SERVICE.begin)
        flag = recorder.FAILED
        begin = end = 0
        try:
            begin = now()
        except Exception:
            rec.failed("clock")
        try:
            row = original(self)
            flag = recorder.ROW
        except StopIteration:
            flag = recorder.STOPPED
            if tree.digest is not None:
                recorder.guarded("digest", tree.digest.epoch_ended)
            raise
        except BaseException as error:
            recorder.unseen(error)
            raise
        finally:
            try:
                end = now()
                if timed:
                    recorder.guarded("service", SERVICE.end, tree.number)
                rec.mark(recorder.FETCH, flag | tree.other_thread, tree.number, tree.rows, begin, end)
            except Exception:
                rec.failed("fetch")
        tree.rows += 1
        tree.last_row = end
        if tree.rows >= tree.take_at or tree.digest is not None:
            _handed_out(tree, row)
        return row

    iterator.__next__ = hooks.make(hooks.FETCH, original, __next__)


def _unwatched(original, iterator, tree, rec):
    """A fetch while nothing is recorded, or from an iterator that is older than the hooks."""
    if not rec.off and rec.adopts and _adopt(iterator) is not None:
        return iterator.__next__()
    row = original(iterator)
    if tree is not None:
        tree.rows += 1
        if tree.rows >= tree.readings_at:
            recorder.guarded("readings", _drop_readings, tree, rec)
    return row


def _drop_readings(tree, rec):
    """Nothing is recorded now, but MindSpore goes on keeping them."""
    if rec.pid == os.getpid():
        TREES.take(tree)


def _handed_out(tree, row):
    if tree.rows >= tree.weigh_at:
        recorder.guarded("weights", weights.weigh, tree, row)
    if tree.rows >= tree.readings_at:
        recorder.guarded("readings", TREES.take, tree)
    if tree.digest is not None:
        recorder.guarded("digest", tree.digest.add, row)


def _holds(graph, kind):
    return graph["type"] == kind or any(_holds(child, kind) for child in graph.get("children") or [])


def _time_services(tree, graph):
    """Switch the timing lines on for this tree if it is the only one; off as soon as a source makes its own.

    Off also for a graph with a concat: MindSpore 2.10 crashes printing the lines of a batch from two of its branches.
    """
    others = [other for other in _alive if other.alive()]
    _alive[:] = [*others, tree]
    if SERVICE is None:
        return
    rec = recorder.REC
    if tree.hidden or rec.off or not rec.options.get("service", True) or _holds(graph, "ConcatOp"):
        SERVICE.switch_off()
    elif not others:
        SERVICE.switch_on()


def _next_number():
    _counter[0] += 1
    return _counter[0] - 1


def _install_stop(iterator):
    original = iterator.stop

    def stop(self):
        tree = self.__dict__.get("_pipeprof")
        if tree is not None and "_runtime_context" in self.__dict__:
            rec = recorder.REC
            if tree.registered:
                recorder.guarded("tree", _finish, tree, rec)
            if not rec.off:
                recorder.guarded("tree", _closed, tree)
                recorder.guarded("window", windows.WINDOWS.loop_left)
        return original(self)

    stop.__wrapped__ = original
    iterator.stop = stop


def _finish(tree, rec):
    if not rec.off or rec.pid == os.getpid():
        TREES.finish(tree)


def _closed(tree):
    if SERVICE is not None and all(other is tree or not other.alive() for other in _alive):
        SERVICE.switch_off()
    callables.flush(tree.number)
    weights.tell(tree)
    recorder.REC.event("closed", number=tree.number, rows=tree.rows, last=tree.last_row)


def _prepare():
    """First iterator of a recording: let the recorder's thread look on; of MindSpore's find the manager of queues."""
    rec = recorder.REC
    rec.open()
    if "mindspore.dataset" in sys.modules and (not _equipped or _equipped[0] is not rec):
        first = not _equipped
        _equipped[:] = [rec]
        _equip(rec)
        if first:
            recorder.at_fork(after_in_child=SWAP.forked)
    attach(rec)


def _equip(rec):
    global SERVICE, TREES
    interval = rec.options.get("queue_interval_ms", 100)
    if interval and TREES is None:
        try:
            import mindspore._c_dataengine as engine
            from mindspore.dataset import config

            recorder.guarded("smaps", smaps.install)
            TREES = trees.Trees(engine.GlobalContext.profiling_manager(), config, interval)
        except Exception:
            rec.warn(
                "queues_off", "this MindSpore has no dataset profiling manager that pipeprof knows: no queue samples"
            )
    if TREES is not None and interval:
        TREES.interval = interval
    if SERVICE is None:
        SERVICE = service.make_sampler(SWAP)


def attach(rec):
    """Let a recorder's thread look after the iterators, each thing once per recorder."""
    if rec.off:
        return
    if TREES is not None and TREES.checkpoint not in rec.periodic:
        rec.periodic += [TREES.slow_down, TREES.checkpoint]
        if rec.live is not None:
            rec.live.still.append(TREES.still)
    if callables.flush not in rec.closing:
        rec.periodic += [_spare_descriptors, SWAP.pump, callables.flush]
        rec.closing += [callables.flush, _tell_weights]
        if rec.options.get("service", True):
            gil.restart()


def _tell_weights():
    for tree in _alive:
        weights.tell(tree)


def _spare_descriptors():
    """From the recorder's thread: where the program has few descriptors left, nothing of ours may need one.

    MindSpore's sampler opens files ten times a second, and ends the pipeline where it cannot.
    """
    if files.look():
        if TREES is not None:
            TREES.give_up()
        if SERVICE is not None:
            SERVICE.switch_off()


def retell():
    """Tell a new recorder about the iterators that were made before it; iterators that are gone are forgotten."""
    callables.forget()
    _alive[:] = [tree for tree in _alive if tree.alive()]
    for tree in _alive:
        tree.last_row = 0
        if tree.facts:
            recorder.REC.event("iterator", **dict(tree.facts, again=True))
    if _alive:
        _prepare()


def _adopt(iterator):
    """An iterator that was made before any hook: its fetches count from here, its queues stay unknown."""
    try:
        _prepare()
        hidden, site = _origin()
        tree = trees.Tree(iterator, _next_number(), hidden)
        graph = describe.describe(iterator.__dict__["_Iterator__ori_dataset"])
        at = recorder.now()
        tree.facts = {"hidden": hidden, "site": site, "epochs": None, "graph": graph, "queues": EARLIER}
        tree.facts.update(number=tree.number, begin=at, end=at, thread=tree.other_thread, again=True)
        _alive.append(tree)
        iterator.__dict__["_pipeprof"] = tree
        recorder.REC.event("iterator", **tree.facts)
    except Exception:
        recorder.REC.adopts = False
        recorder.REC.failed("iterator")
        return None
    return tree


def _origin():
    """Whether the iterator being made is not the training loop's own, and the file:line that asked for it."""
    thread = threading.current_thread()
    hidden = bool(getattr(_nesting, "depth", 0)) or isinstance(thread, threading._DummyThread)
    package = where.package_folder() + os.sep
    frame = sys._getframe(2)
    site = where.site(frame)
    while frame is not None and not hidden:
        name = frame.f_code.co_filename
        hidden = name.startswith(package) and (frame.f_code.co_name in GETTERS or name.endswith(SOURCE_FILE))
        frame = frame.f_back
    return hidden, site
