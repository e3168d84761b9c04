"""Looks at where a training waits that fetches from nothing with hooks: found in its own loop, whatever it iterates over."""

import queue
import sys
import threading
import time
from concurrent import futures

import pytest


class Training:
    """A training in a thread of its own, stopped in the middle of making a batch."""

    def __init__(self, looks):
        self.looks = looks
        self.here, self.go_on = threading.Event(), threading.Event()

    def waits(self):
        self.here.set()
        self.go_on.wait()

    def update(self):
        self.looks.update(sys._getframe(1))

    def batches(self):
        yield from range(3)
        self.waits()
        yield 3

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.made)

    def over_generator(self):
        for _ in enumerate(self.batches()):
            self.update()

    def over_own_class(self):
        self.made = self.batches()
        for _ in self:
            self.update()

    def by_next(self):
        rows = self.batches()
        for _ in range(4):
            next(rows)
            self.update()

    def by_a_function(self):
        rows = self.batches()

        def get_batch():
            return next(rows), 1

        for _ in range(4):
            get_batch()
            self.update()

    def made_in_the_loop(self):
        for number in range(4):
            if number == 3:
                self.waits()
            self.update()

    def inside_the_step(self):
        for number in range(4):
            self.update()
            for _ in self.rows_of_a_metric(number):
                pass

    def rows_of_a_metric(self, number):
        if number == 3:
            self.waits()
        yield number


@pytest.fixture
def look(probe, rec, said):
    """`look(name)`: what a look finds in a training, and the event of the iterator that it tells, if any."""
    looks = probe.iterables.Looks(rec)

    def at(name):
        training = Training(looks)
        ident = probe.recorder._thread.start_new_thread(getattr(training, name), ())
        training.here.wait()
        try:
            while looks._new:
                looks._find_loops(looks._new.pop())
            found, number = looks._found(sys._current_frames()[ident])
        finally:
            training.go_on.set()
        return found, next((fields for _, fields in said if fields["number"] == number), None)

    return at


@pytest.mark.parametrize("style", ["over_generator", "over_own_class", "by_next", "by_a_function"])
def test_the_wait_for_an_iterable_is_found(look, probe, style):
    found, event = look(style)
    assert found == probe.iterables.WAITS
    assert event["graph"]["name"].rpartition(".")[2] in ("batches", "__next__")
    assert event["graph"]["code"].startswith(__file__)
    assert event["site"].startswith(__file__)


@pytest.mark.parametrize("style", ["made_in_the_loop", "inside_the_step"])
def test_other_work_of_the_loop_is_no_wait_and_a_fetch_with_hooks_is_measured_by_them(look, probe, monkeypatch, style):
    assert look(style) == (probe.iterables.ELSEWHERE, None)
    monkeypatch.setattr(probe.iterables, "_is_fetch", lambda code: code.co_name == "batches")
    assert look("over_generator")[0] == probe.iterables.HOOKED


class Future(futures.Future):
    def put(self, batch):
        self.set_result(batch)

    get = futures.Future.result


@pytest.mark.parametrize("made", [queue.Queue, queue.SimpleQueue, Future])
def test_where_another_thread_hands_batches_over_is_a_wait_with_a_name(probe, rec, said, made):
    looks, batches, begun = probe.iterables.Looks(rec), made(), threading.Event()

    def train():
        begun.set()
        batches.get()

    ident = probe.recorder._thread.start_new_thread(train, ())
    begun.wait()
    found = probe.iterables.ELSEWHERE
    for _ in range(1000):
        found = looks._found(sys._current_frames()[ident])[0]
        if found == probe.iterables.WAITS:
            break
        time.sleep(0.01)
    batches.put(None)
    assert found == probe.iterables.WAITS
    graph = said[-1][1]["graph"]
    assert (graph["site"] or "").startswith(__file__)
    assert graph["name"].rpartition(".")[2] in ("get", "result")
    assert "code" not in graph


def test_no_look_is_taken_before_several_updates_had_no_batch(probe, rec):
    looks = probe.iterables.Looks(rec)
    looks.update(sys._getframe())
    assert looks._new == []


def test_what_nothing_names_yet_is_told_when_it_is_seen_again(probe, rec, said, monkeypatch):
    monkeypatch.setattr(probe.iterables, "_read", lambda _: ({0: "for"}, ()))
    monkeypatch.setattr(probe.iterables, "_instruction", lambda *_: 0)
    looks, named = probe.iterables.Looks(rec), probe.iterables.Looks(rec)
    outer = sys._getframe()
    assert looks._number([outer], 0) is None  # the loop is between two functions
    assert said == []
    assert named._number([outer, outer], 0) is not None
    assert looks._number([outer], 0) is not None  # what it iterates over is written in C
    assert [fields["graph"].get("name") for _, fields in said] == [outer.f_code.co_name, None]
