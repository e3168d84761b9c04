"""How long a thread had no core, what it read, and which ones wait for the lock: with files as the kernel's."""

import os
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.collect.conftest import in_thread


@pytest.fixture
def delay(probe, tmp_path, monkeypatch):
    """The module, reading a file that the tests write."""
    statistics = tmp_path / "schedstat"
    statistics.write_text("300 42 17\n", encoding="utf-8")
    monkeypatch.setattr(probe.delay, "STATISTICS", str(statistics))
    yield probe.delay
    for file in probe.delay._files.values():
        file.close()


def test_the_second_number_counts_and_the_file_stays_open(delay):
    assert delay.of_thread() == 42
    Path(delay.STATISTICS).write_text("310 50 18\n", encoding="utf-8")
    assert delay.of_thread() == 50
    (file,) = delay._files.values()
    os.close(file.number)  # as the program may
    assert delay.of_thread() == 50


@pytest.mark.parametrize("text", ["", "none", "7"])
def test_what_cannot_be_read_is_no_delay_and_stays_open_nowhere(delay, text, monkeypatch):
    Path(delay.STATISTICS).write_text(text, encoding="utf-8")
    opened, original = [], delay._opened
    monkeypatch.setattr(delay, "_opened", lambda thread: opened.append(original(thread)) or opened[-1])
    assert delay.of_thread() is None
    assert opened
    for file in opened:
        with pytest.raises(OSError):
            os.fstat(file.number)


def test_without_statistics_nothing_is_known(delay, monkeypatch):
    monkeypatch.setattr(delay, "STATISTICS", "/nowhere/schedstat")
    assert not delay.is_known()
    assert delay.of_thread() is None


@pytest.mark.parametrize(("before", "after", "added"), [(5, 9, 4), (9, 5, 0), (None, 9, None), (5, None, None)])
def test_what_is_not_known_at_both_ends_is_no_delay(delay, before, after, added):
    assert delay.between(before, after) == added


def test_no_more_files_than_allowed_and_none_where_descriptors_are_few(delay, probe, monkeypatch):
    monkeypatch.setattr(delay, "MOST", 1)
    delay.of_thread()
    assert in_thread(delay.of_thread) is None
    assert len(delay._files) == 1
    monkeypatch.setattr(probe.files, "_few", [True])
    delay.forget()
    assert delay._files == {}
    assert delay.of_thread() is None


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="the kernel does not count it")
def test_each_thread_has_its_own_file_which_is_closed_when_it_has_ended(delay, monkeypatch):
    monkeypatch.setattr(delay, "STATISTICS", "/proc/thread-self/schedstat")
    delay.of_thread()
    in_thread(delay.of_thread)
    assert len({file.number for file in delay._files.values()}) == 2
    (ended,) = {thread for thread, _ in delay._files} - {threading.get_native_id()}
    while Path(f"/proc/self/task/{ended}").exists():  # the system is done with a thread a little after Python
        time.sleep(0.001)
    delay.forget()
    assert [thread for thread, _ in delay._files] == [threading.get_native_id()]


def test_a_number_that_is_the_users_by_now_is_left_open(delay, tmp_path):
    delay.of_thread()
    (file,) = delay._files.values()
    other = os.open(tmp_path / "other", os.O_CREAT | os.O_WRONLY)  # not to be read, as the file of an ended thread
    os.dup2(other, file.number)
    delay.forget()
    assert delay._files == {}
    os.fstat(file.number)
    os.close(file.number)
    os.close(other)


@pytest.mark.skipif(not Path("/proc/thread-self/io").exists(), reason="the kernel does not count it")
def test_only_what_the_thread_reads_counts(delay, tmp_path):
    (tmp_path / "data").write_bytes(bytes(5000))
    before = delay.read_by_thread()
    in_thread((tmp_path / "data").read_bytes)
    assert delay.read_since(before) == 0
    (tmp_path / "data").read_bytes()
    assert 5000 <= delay.read_since(before) < 5400  # with what the first look has read


@pytest.fixture
def gil(probe, monkeypatch):
    monkeypatch.setattr(probe.gil, "_started", [True])
    yield probe.gil
    probe.gil._forget()


def test_the_lock_is_held_as_much_as_sleeps_are_late(probe, rec, gil, monkeypatch):
    clock, lines = [0], []

    def line(name, **fields):
        lines.append((name, fields))
        rec.off = True

    monkeypatch.setattr(probe.recorder, "now", lambda: clock[0])
    monkeypatch.setattr(
        probe.recorder, "sleep", lambda _seconds: clock.append(clock.pop() + 102_500_000)
    )  # half a turn
    monkeypatch.setattr(gil.sys, "getswitchinterval", lambda: 0.005)
    monkeypatch.setattr(rec, "line", line)
    gil._run()
    ((name, fields),) = lines
    assert (name, fields["probes"], fields["held"]) == ("gil", 10, pytest.approx(0.5))


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
    ends, ready, waits = threading.Event(), threading.Barrier(4), {}

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
    while waits.get((0, 1), 0) < 10:
        time.sleep(0.01)
        gil._count_waits(inside, waits)
    ends.set()
    for thread in threads:
        thread.join()
    assert waits[0, 2] < 5  # on its way to sleep it waits for the lock once
    while gil._threads:  # those that have ended are forgotten
        gil._count_waits(inside, {})
