"""Worker processes and the training that reads what they count: with real forks, and pools shaped like MindSpore's."""

import os
import time
from types import SimpleNamespace

import pytest


class Tree:
    number, rows = 3, 0


@pytest.fixture
def workers(probe, rec):
    return probe.workers


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


def messages():
    """A class of MindSpore's queues: what is received or sent comes back."""
    return type("MessageQueue", (), {"msg_rcv": lambda _self, row: row, "msg_snd": lambda _self, row: row})


@pytest.fixture
def started(workers):
    """Starts a pool whose workers do `work`; gives what the training knows of it."""
    module = SimpleNamespace(
        _PythonMultiprocessing=type("Pool", (MindSporePool,), {"create_pool": MindSporePool.create_pool}),
        cde=SimpleNamespace(MessageQueue=messages()),
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


def test_rows_of_all_workers_are_summed_from_the_message_that_brings_one_to_the_one_that_takes_it(started, said):
    owner = started(rows(5))
    found = owner.take()
    assert (found["pipeline"], found["calls"], found["timed"]) == (3, 10, 10)  # of no other process
    assert (found["wall"], found["min"], found["max"]) == (10_000, 1_000, 1_000)  # a look at the clock is 1 us
    assert owner.take() is None  # figures begin again
    assert [(name, fields["pids"]) for name, fields in said] == [("workers", owner.pids)]  # once for each recorder
    assert len(owner.pids) == 2


def test_cpu_time_is_that_of_the_worker(started):
    found = started(rows(2, spin), count=1).take()
    assert 0.04e9 <= found["cpu"] < 0.2e9


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_row_that_was_not_answered_does_not_count_and_what_a_killed_worker_counted_stays(started, is_killed):
    def loop(messages):
        rows(4)(messages)
        messages.msg_rcv(1)
        if is_killed:
            os.kill(os.getpid(), 9)

    assert started(loop).take()["calls"] == 8


def test_many_rows_are_sampled_by_the_order_of_the_training_and_told_though_none_was_timed_at_the_end(workers, rec):
    owner = workers.Workers(Tree())
    owner.pool = workers.Pool(1)
    slot = workers.Slot(owner, owner.pool.memory, 0)
    for number, timed in ((1000, 1000), (1100, 100)):
        for _ in range(number):
            slot.begin()
            slot.end()
        found = owner.take()
        assert (found["calls"], found["timed"]) == (number, timed)
    slot.count(4, False)
    assert owner.take() is None
    found = owner.take(last=True)
    assert (found["calls"], found["timed"], found["max"]) == (4, 0, None)
    assert owner.take(last=True) is None


def test_the_longest_row_is_of_the_time_since_the_last_reading(workers, rec):
    pool = workers.Pool(1)
    slot = workers.Slot(None, pool.memory, 0)
    readings = []
    for walls in ((9, 2), (4, 3)):
        for wall in walls:
            slot.add(wall, (0, 0, 0))
        readings.append(pool.take()[-2:])
    assert readings == [(9, 2), (4, 3)]


def test_a_worker_that_is_no_worker_of_a_watched_pool_counts_nothing(workers):
    queue = messages()
    workers.install_datasets(SimpleNamespace(cde=SimpleNamespace(MessageQueue=queue)))
    assert (queue().msg_rcv(1), queue().msg_snd(2), workers.SLOT) == (1, 2, None)


def test_a_source_is_timed_in_its_workers_only(workers, probe):
    class _PickleGeneratorSource:
        def __getitem__(self, index):
            return index

    class SamplerFn:
        num_worker = 1

        def launch(self):
            self.workers = [SimpleNamespace(pid=in_child(lambda: [source[index] for index in range(4)]))]

    dataset = type("GeneratorDataset", (), {"prepare_multiprocessing": lambda _self: None})
    classes = {"_PickleGeneratorSource": _PickleGeneratorSource, "SamplerFn": SamplerFn}
    probe.callables.install_sources(SimpleNamespace(GeneratorDataset=dataset, **classes))
    workers.install_datasets(SimpleNamespace(cde=None))
    source, pool = _PickleGeneratorSource(), SamplerFn()
    found = source.__dict__[probe.callables.ATTRIBUTE] = workers.watch(pool, Tree())
    assert source[1] == 1
    pool.launch()
    assert found.take()["calls"] == 4
