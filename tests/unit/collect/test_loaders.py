"""Any loader that is described: its iterator, its fetches and the times of its stages, in the training and in its workers."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest


class Loader:
    """Hands out four batches; the stages of each are called one after the other, in a worker when there is one."""

    def __init__(self, hooks, count=0):
        self.hooks, self.count, self.feeds = hooks, count, {}
        self.stages = [hooks.Stage("Join", self.join), hooks.Stage("Rows", self.row), hooks.Stage("Order", range, True)]

    def row(self, index):
        if index == 99:
            raise ValueError("wrong row")
        return index

    def join(self, rows):
        return tuple(rows)

    def batch(self, feed, indices):
        rows, join = feed.timer("Rows"), feed.timer("Join")
        timed = rows is not None and rows.takes(len(indices))
        made = [self.hooks.timed(rows, self.row, index) if timed else self.row(index) for index in indices]
        return self.hooks.timed(join, self.join, made) if join is not None and join.takes(1) else self.join(made)

    def make(self):
        return Iterator(self)


class Iterator:
    orders = ((0, 1), (2, 3), (4, 5), (6, 7))

    def __init__(self, loader):
        self.loader, self.orders = loader, iter(self.orders)
        loader.feeds[self] = self.feed = loader.hooks.being_made()

    def following(self):
        return self.loader.batch(self.feed, next(self.orders))


@pytest.fixture
def loader(probe, rec, monkeypatch):
    """`loader(workers)`: one of this file's, hooked, with the recorder's events in `told`."""
    told = []
    monkeypatch.setattr(rec, "line", lambda name, **fields: told.append((name, fields)))
    monkeypatch.setattr(rec, "event", rec.line)
    monkeypatch.setattr(probe.dataset, "_prepare", lambda: None)
    hooks = probe.loaders

    def make(count=0, ready=lambda _iterator: None):
        settings = {"workers": count}
        describe = lambda loader: hooks.Description(loader, loader.stages, count, 2 * count, 2, settings)  # noqa: E731
        made = Loader(hooks, count)
        begin = hooks.with_feed(lambda loader: loader.make(), describe, lambda _loader: None, lambda _iterator: [])
        fetch = hooks.with_fetches(Iterator.following, lambda iterator: iterator.feed, ready)
        return SimpleNamespace(made=made, begin=lambda: begin(made), fetch=fetch, told=told, hooks=hooks, rec=rec)

    return make


def drained(one, iterator):
    batches = []
    while True:
        try:
            batches.append(one.fetch(iterator))
        except StopIteration:
            return batches


def figures(one, probe):
    probe.loaders.callables.flush()
    return {fields["node"]: fields for name, fields in one.told if name == "calls"}


def test_batches_that_are_skipped_while_an_iterator_is_made_are_none_of_the_loops(loader, monkeypatch):
    one = loader()

    def skipping(self):
        made = Iterator(self)
        one.fetch(made)
        return made

    monkeypatch.setattr(Loader, "make", skipping)
    iterator = one.begin()
    assert drained(one, iterator) == [(2, 3), (4, 5), (6, 7)]
    assert iterator.feed.rows == 3


def test_its_iterator_is_told_with_its_stages_from_the_loop_on(loader):
    one = loader()
    one.begin()
    (fields,) = [fields for name, fields in one.told if name == "iterator"]
    chain, node = [], fields["graph"]
    while node:
        chain.append((node["type"], node["node"], node["workers"], node["inlined"]))
        node = next(iter(node["children"]), None)
    assert chain == [("Join", 0, 1, True), ("Rows", 1, 1, True), ("Order", 2, 1, True)]
    assert fields["settings"] == {"workers": 0}
    assert fields["graph"]["name"].endswith("join")


def test_every_fetch_is_marked_and_every_row_counted_in_the_stage_that_made_it(loader, probe):
    one = loader()
    iterator = one.begin()
    assert drained(one, iterator) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    one.rec._pack()
    flags = [probe.marks.MARK.unpack(mark)[1] for mark in one.rec._pending]
    assert flags == [probe.recorder.ROW] * 4 + [probe.recorder.STOPPED]
    counted = figures(one, probe)
    assert {node: (told["calls"], told["timed"]) for node, told in counted.items()} == {0: (4, 4), 1: (8, 8)}


def test_a_fetch_in_a_step_that_runs_line_by_line_runs_at_its_own_pace(loader, probe, monkeypatch):
    monkeypatch.setattr(probe.lines.where, "package_folder", lambda: "/no/mindspore")
    one = loader()
    iterator = one.begin()
    lines = probe.lines.LINES
    seen = []
    one.made.row = lambda index: seen.append(sys.gettrace()) or index
    before = sys.gettrace()  # of the program: that of coverage, say
    sys.settrace(None)
    try:
        lines.start(lambda: None)
        watched = sys.gettrace()
        assert one.fetch(iterator) == (0, 1)
        assert sys.gettrace() is watched is not None
    finally:
        lines.stop()
        sys.settrace(before)
    assert seen == [None, None]


def test_rows_that_are_not_timed_are_counted(loader, probe):
    one = loader()
    iterator = one.begin()
    for cell in iterator.feed.cells.values():
        cell.every = 3
    drained(one, iterator)
    told = figures(one, probe)[1]
    assert told["calls"] == 8
    assert 0 < told["timed"] < 8


def test_rows_of_flushes_without_a_timed_one_are_told_with_the_next_and_no_stage_goes_untimed(loader, probe):
    one = loader()
    feed = one.begin().feed
    rows, wide = feed.timer("Rows"), 5_000
    for flush in range(12):
        for _ in range(2):
            if rows.takes(wide):
                rows.add(1, (1, 1, 1))
        probe.loaders.callables.flush()
        assert rows.every <= 8, flush
    told = [fields for name, fields in one.told if name == "calls" and fields["node"] == 1]
    assert len(told) >= 3
    assert sum(fields["calls"] for fields in told) >= wide * (24 - 8)


def test_how_many_rows_of_workers_are_timed_comes_from_the_last_flush_alone(probe):
    pool = probe.loaders.workers.Pool(1)
    slot = probe.loaders.workers.Slot(None, pool.memory, 0)
    strides = []
    for _ in range(8):
        for _ in range(2):
            if slot.takes(512):
                slot.add(1, (1, 1, 1))
                slot.count(511, timed=False)
        pool.take()
        strides.append(probe.loaders.workers.ORDERS.unpack_from(pool.memory, 0)[1])
    assert strides == [11] * 8  # 1,024 rows in a flush


def test_an_error_keeps_its_traceback_without_ours(loader):
    one = loader()
    iterator = one.begin()
    iterator.orders = iter([(0, 99)])
    with pytest.raises(ValueError, match="wrong row") as raised:
        one.fetch(iterator)
    files = [Path(str(entry.path)).parent.name for entry in raised.traceback]
    assert files.count("probe") == int(sys.version_info < (3, 11))  # Python 3.10 puts one back
    assert raised.traceback[-1].name == "row"


def test_how_many_batches_are_ready_is_told_in_order(loader):
    numbers = iter([(2, 1, 0), (1, 0, 1), (0, 0, 2), (0, 0, 0)])
    one = loader(ready=lambda _iterator: next(numbers))
    iterator = one.begin()
    drained(one, iterator)
    iterator.feed.write()
    (told,) = [fields for name, fields in one.told if name == "ready"]
    assert (told["first"], told["depth"], told["held"], told["tasks"]) == (0, [2, 1, 0, 0], [1, 0, 0, 0], [0, 1, 2, 0])


def test_batches_are_weighed(loader):
    one = loader()
    iterator = one.begin()
    drained(one, iterator)
    iterator.feed.write()
    (told,) = [fields for name, fields in one.told if name == "weights"]
    assert (told["number"], told["rows"][0]) == (iterator.feed.number, [0, 16])  # two numbers
    assert "warning" not in [name for name, _ in one.told]


def test_what_a_forked_worker_does_is_counted_in_the_training(loader, probe):
    one = loader(count=1)
    iterator, (receives, sends) = one.begin(), os.pipe()
    probe.loaders._starting.feed = iterator.feed
    pid = os.fork()
    if not pid:
        try:
            one.made.batch(iterator.feed, (0, 1, 2))
            os.write(sends, json.dumps(probe.loaders.WORKER is not None).encode())
        finally:
            os._exit(0)
    probe.loaders._starting.feed = None
    os.waitpid(pid, 0)
    os.close(sends)
    assert json.loads(os.read(receives, 100))
    os.close(receives)
    told = figures(one, probe)
    assert {node: told[node]["calls"] for node in (0, 1)} == {0: 1, 1: 3}
    assert iterator.feed.timer("Rows") is None  # here nothing is timed


def test_nothing_is_recorded_while_the_recorder_is_off(loader):
    one = loader()
    one.rec.off = True
    iterator = one.begin()
    assert iterator.feed is None
    assert one.told == []
