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
def loader(probe, said, monkeypatch):
    """`loader(workers)`: one of this file's, hooked: its iterator, and how it is fetched from."""
    monkeypatch.setattr(probe.dataset, "_prepare", lambda: None)
    hooks = probe.loaders

    def make(count=0, ready=lambda _iterator: None):
        settings = {"workers": count}
        describe = lambda loader: hooks.Description(loader, loader.stages, count, 2 * count, 2, settings)  # noqa: E731
        made = Loader(hooks, count)
        begin = hooks.with_feed(lambda loader: loader.make(), describe, lambda _loader: None, lambda _iterator: [])
        fetch = hooks.with_fetches(Iterator.following, lambda iterator: iterator.feed, ready)
        return SimpleNamespace(made=made, iterator=begin(made), fetch=fetch)

    return make


def drained(one):
    batches = []
    while True:
        try:
            batches.append(one.fetch(one.iterator))
        except StopIteration:
            return batches


@pytest.fixture
def events(said, probe):
    """`events(name)`: what was told of them, once all is counted."""

    def of(name):
        probe.loaders.callables.flush()
        return [fields for told, fields in said if told == name]

    return of


@pytest.fixture
def figures(events):
    """Calls and timed calls by stage."""
    return lambda: {fields["node"]: (fields["calls"], fields["timed"]) for fields in events("calls")}


def test_batches_that_are_skipped_while_an_iterator_is_made_are_none_of_the_loops(loader, monkeypatch):
    fetch = loader().fetch

    def skipping(self):
        made = Iterator(self)
        fetch(made)
        return made

    monkeypatch.setattr(Loader, "make", skipping)
    one = loader()
    assert drained(one) == [(2, 3), (4, 5), (6, 7)]
    assert one.iterator.feed.rows == 3


def test_its_iterator_is_told_with_its_stages_from_the_loop_on(loader, events):
    loader()
    (fields,) = events("iterator")
    chain, node = [], fields["graph"]
    while node:
        chain.append((node["type"], node["node"], node["workers"], node["inlined"]))
        node = next(iter(node["children"]), None)
    assert chain == [("Join", 0, 1, True), ("Rows", 1, 1, True), ("Order", 2, 1, True)]
    assert fields["settings"] == {"workers": 0}
    assert fields["graph"]["name"].endswith("join")


def test_every_fetch_is_marked_and_every_row_counted_in_the_stage_that_made_it(loader, probe, rec, figures):
    one = loader()
    assert drained(one) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    rec._pack()
    flags = [probe.marks.MARK.unpack(mark)[1] for mark in rec._pending]
    assert flags == [probe.recorder.ROW] * 4 + [probe.recorder.STOPPED]
    assert figures() == {0: (4, 4), 1: (8, 8)}


def test_rows_that_are_not_timed_are_counted(loader, figures):
    one = loader()
    for cell in one.iterator.feed.cells.values():
        cell.every = 3
    drained(one)
    calls, timed = figures()[1]
    assert calls == 8 > timed > 0


def test_how_many_batches_are_ready_is_told_in_order_and_they_are_weighed(loader, events, said):
    numbers = iter([(2, 1, 0), (1, 0, 1), (0, 0, 2), (0, 0, 0)])
    one = loader(ready=lambda _iterator: next(numbers))
    drained(one)
    one.iterator.feed.write()
    (told,), (weights,) = events("ready"), events("weights")
    assert (told["first"], told["depth"], told["held"], told["tasks"]) == (0, [2, 1, 0, 0], [1, 0, 0, 0], [0, 1, 2, 0])
    assert (weights["number"], weights["rows"][0]) == (one.iterator.feed.number, [0, 16])  # two numbers
    assert not [name for name, _ in said if name.startswith("probe_failed")]


def test_a_fetch_in_a_step_that_runs_line_by_line_runs_at_its_own_pace(loader, probe, monkeypatch):
    monkeypatch.setattr(probe.lines.where, "package_folder", lambda: "/no/mindspore")
    one, lines, seen = loader(), probe.lines.LINES, []
    one.made.row = lambda index: seen.append(sys.gettrace()) or index
    before = sys.gettrace()  # of the program: that of coverage, say
    sys.settrace(None)
    try:
        lines.start(lambda: None)
        watched = sys.gettrace()
        assert one.fetch(one.iterator) == (0, 1)
        assert sys.gettrace() is watched is not None
    finally:
        lines.stop()
        sys.settrace(before)
    assert seen == [None, None]


def test_rows_of_flushes_without_a_timed_one_are_told_with_the_next_and_no_stage_goes_untimed(loader, probe, events):
    one, wide = loader(), 5_000
    rows = one.iterator.feed.timer("Rows")
    for flush in range(12):
        for _ in range(2):
            if rows.takes(wide):
                rows.add(1, (1, 1, 1))
        probe.loaders.callables.flush()
        assert rows.every <= 8, flush
    told = [fields["calls"] for fields in events("calls") if fields["node"] == 1]
    assert len(told) >= 3
    assert sum(told) >= wide * (24 - 8)


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
    one.iterator.orders = iter([(0, 99)])
    with pytest.raises(ValueError, match="wrong row") as raised:
        one.fetch(one.iterator)
    files = [Path(str(entry.path)).parent.name for entry in raised.traceback]
    assert files.count("probe") == int(sys.version_info < (3, 11))  # Python 3.10 puts one back
    assert raised.traceback[-1].name == "row"


def test_what_a_forked_worker_does_is_counted_in_the_training(loader, probe, figures):
    one, (receives, sends) = loader(count=1), os.pipe()
    probe.loaders._starting.feed = feed = one.iterator.feed
    pid = os.fork()
    if not pid:
        try:
            one.made.batch(feed, (0, 1, 2))
            os.write(sends, json.dumps(probe.loaders.WORKER is not None).encode())
        finally:
            os._exit(0)
    probe.loaders._starting.feed = None
    os.waitpid(pid, 0)
    os.close(sends)
    assert json.loads(os.read(receives, 100))
    os.close(receives)
    assert {node: calls for node, (calls, _) in figures().items()} == {0: 1, 1: 3}
    assert feed.timer("Rows") is None  # here nothing is timed


def test_nothing_is_recorded_while_the_recorder_is_off(loader, rec, said):
    rec.off = True
    assert loader().iterator.feed is None
    assert said == []
