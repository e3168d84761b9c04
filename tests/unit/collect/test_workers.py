"""Worker processes and the training that reads what they count: with real forks, and pools shaped like MindSpore's."""

import os
import time
from importlib import import_module
from types import SimpleNamespace

import pytest


class Tree:
    number, rows = 3, 0


@pytest.fixture
def workers(probe, rec):
    return import_module("_pipeprof_probe.workers")


def in_child(work):
    """Run `work` in a forked process, to its end."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    return pid


def spin(seconds=0.02):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class MindSporePool:
    """Forks as many workers as it is told, and one process more, as MindSpore does."""

    def __init__(self, work, count=2):
        self.num_parallel_workers = count
        self.work = work
        self.workers = None

    def create_pool(self):
        self.workers = [SimpleNamespace(pid=in_child(self.work)) for _ in range(self.num_parallel_workers)]
        in_child(self.work)


class Messages:
    def __init__(self, answer=None):
        self.answer = answer

    def msg_rcv(self, *_args):
        return self.answer

    def msg_snd(self, *_args):
        return self.answer


@pytest.fixture
def started(workers):
    """Starts a pool whose workers do `work`; gives what the training knows of it."""
    module = SimpleNamespace(
        _PythonMultiprocessing=type("Pool", (MindSporePool,), {"create_pool": MindSporePool.create_pool}),
        cde=SimpleNamespace(MessageQueue=type("Messages", (Messages,), dict(vars(Messages)))),
    )
    workers.install_datasets(module)

    def start(work, **how):
        pool = module._PythonMultiprocessing(lambda: work(module.cde.MessageQueue()), **how)
        found = workers.watch(pool, Tree())
        pool.create_pool()
        return found

    return start


def rows(number, work=lambda: None):
    def loop(messages):
        for _ in range(number):
            messages.msg_rcv(1)
            work()
            messages.msg_snd(1)

    return loop


def test_rows_of_all_workers_are_summed_and_no_other_process_counts(started):
    found = started(rows(5)).take()
    assert (found["pipeline"], found["calls"], found["timed"]) == (3, 10, 10)


def test_time_is_from_the_message_that_brings_a_row_to_the_one_that_takes_it(started):
    found = started(rows(3)).take()
    assert (found["wall"], found["min"], found["max"]) == (6_000, 1_000, 1_000)  # a look at the clock is 1 us


def test_cpu_time_is_that_of_the_worker(started):
    found = started(rows(2, spin), count=1).take()
    assert 0.04e9 <= found["cpu"] < 0.2e9


def test_a_row_that_failed_counts_and_one_that_was_not_answered_does_not(started):
    def loop(messages):
        messages.msg_rcv(1)
        messages.msg_snd(1)
        messages.msg_rcv(1)

    assert started(loop, count=1).take()["calls"] == 1


def test_figures_begin_again_after_each_reading(started):
    found = started(rows(5))
    assert found.take()["calls"] == 10
    assert found.take() is None


def test_what_a_killed_worker_counted_stays(started):
    def die(messages):
        rows(4)(messages)
        messages.msg_rcv(1)
        os.kill(os.getpid(), 9)

    assert started(die).take()["calls"] == 8


def test_rows_at_the_end_of_which_none_was_timed_are_told(workers, rec):
    owner = workers.Workers(Tree())
    owner.pool = workers.Pool(1)
    slot = workers.Slot(owner, owner.pool.memory, 0)
    slot.count(4, False)
    assert owner.take() is None
    found = owner.take(last=True)
    assert (found["calls"], found["timed"], found["max"]) == (4, 0, None)
    assert owner.take(last=True) is None


def test_many_rows_are_sampled_by_the_order_of_the_training(workers, rec):
    owner = workers.Workers(Tree())
    owner.pool = workers.Pool(1)
    slot = workers.Slot(owner, owner.pool.memory, 0)
    for _ in range(1000):
        slot.begin()
        slot.end()
    assert owner.take()["timed"] == 1000
    for _ in range(1100):
        slot.begin()
        slot.end()
    found = owner.take()
    assert (found["calls"], found["timed"]) == (1100, 100)


def test_the_longest_row_is_of_the_time_since_the_last_reading(workers, rec):
    pool = workers.Pool(1)
    slot = workers.Slot(None, pool.memory, 0)
    readings = []
    for walls in ((9, 2), (4, 3)):
        for wall in walls:
            slot.add(wall, (0, 0, 0))
        readings.append(pool.take()[-2:])
    assert readings == [(9, 2), (4, 3)]


def test_a_worker_that_is_no_worker_of_a_watched_pool_counts_nothing(workers, rec):
    seen = []
    queue = type("Messages", (Messages,), dict(vars(Messages)))
    workers.install_datasets(SimpleNamespace(cde=SimpleNamespace(MessageQueue=queue)))
    seen.append(queue("answer").msg_rcv(1))
    seen.append(queue("answer").msg_snd(1))
    assert seen == ["answer", "answer"]
    assert workers.SLOT is None


def test_processes_are_told_once_for_each_recorder(started, rec, monkeypatch):
    lines = []
    monkeypatch.setattr(rec, "line", lambda name, **fields: lines.append((name, fields["pids"])))
    found = started(rows(1))
    found.take()
    found.take()
    assert lines == [("workers", found.pids)]
    assert len(found.pids) == 2


def test_a_source_is_timed_in_its_workers_only(workers, rec):
    callables = import_module("_pipeprof_probe.callables")

    class _PickleGeneratorSource:
        def __getitem__(self, index):
            return index

    class SamplerFn:
        num_worker = 1

        def launch(self):
            self.workers = [SimpleNamespace(pid=in_child(lambda: [source[index] for index in range(4)]))]

    callables.install_sources(
        SimpleNamespace(
            GeneratorDataset=type("GeneratorDataset", (), {"prepare_multiprocessing": lambda _self: None}),
            _PickleGeneratorSource=_PickleGeneratorSource,
            SamplerFn=SamplerFn,
        )
    )
    workers.install_datasets(SimpleNamespace(cde=None))
    source, pool = _PickleGeneratorSource(), SamplerFn()
    found = source.__dict__[callables.ATTRIBUTE] = workers.watch(pool, Tree())
    assert source[1] == 1
    pool.launch()
    assert found.take()["calls"] == 4
