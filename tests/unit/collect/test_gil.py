"""Which threads of an operator wait for the interpreter's lock."""

from __future__ import annotations

import sys
import threading
import time
from importlib import import_module
from types import SimpleNamespace

import pytest


@pytest.fixture
def gil(probe, monkeypatch):
    module = import_module("_pipeprof_probe.gil")
    monkeypatch.setattr(module, "_started", [True])
    yield module
    module._forget()


@pytest.mark.parametrize(
    ("line", "address"),
    [(b"running\n", 0), (b"202 0x7f0a 0x80 0x0 0x7ffd\n", 0x7F0A), (b"-1 0x7ffd 0x4\n", 0x7FFD), (b"", 0)],
)
def test_where_a_thread_waits(gil, line, address):
    assert gil.waits_at(line) == address


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's files are Linux's")
def test_threads_that_compute_in_python_wait_for_the_lock_and_one_that_sleeps_does_not(gil):
    inside = gil.lock_range()
    assert inside is not None
    ends, ready = threading.Event(), threading.Barrier(4)

    def run(node, work):
        gil.runs(SimpleNamespace(number=0, node=node))
        ready.wait()
        while not ends.is_set():
            work()

    works = [*[(1, lambda: sum(range(1000)))] * 2, (2, lambda: ends.wait(10))]
    threads = [threading.Thread(target=run, args=work) for work in works]
    for thread in threads:
        thread.start()
    ready.wait()
    waits: dict[tuple[int, int], int] = {}
    while waits.get((0, 1), 0) < 10:
        time.sleep(0.01)
        gil._count_waits(inside, waits)
    ends.set()
    for thread in threads:
        thread.join()
    assert waits[0, 2] < 5  # on its way to sleep it waits for the lock once
    while gil._threads:  # those that have ended are forgotten
        gil._count_waits(inside, {})
