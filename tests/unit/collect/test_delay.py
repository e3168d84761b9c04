"""How long a thread had no core: with files as the kernel's, one for each thread."""

import os
import threading
import time
from importlib import import_module
from pathlib import Path

import pytest


@pytest.fixture
def delay(probe, tmp_path, monkeypatch):
    """The module, reading a file that the tests write."""
    module = import_module("_pipeprof_probe.delay")
    statistics = tmp_path / "schedstat"
    statistics.write_text("300 42 17\n", encoding="utf-8")
    monkeypatch.setattr(module, "STATISTICS", str(statistics))
    yield module
    for file in module._files.values():
        file.close()


def in_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_the_second_number_counts_and_the_file_stays_open(delay):
    assert delay.of_thread() == 42
    Path(delay.STATISTICS).write_text("310 50 18\n", encoding="utf-8")
    assert delay.of_thread() == 50
    assert len(delay._files) == 1


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


def test_a_file_that_the_user_closed_is_opened_again(delay):
    delay.of_thread()
    (file,) = delay._files.values()
    os.close(file.number)
    assert delay.of_thread() == 42


def test_without_statistics_nothing_is_known(delay, monkeypatch):
    monkeypatch.setattr(delay, "STATISTICS", "/nowhere/schedstat")
    assert not delay.is_known()
    assert delay.of_thread() is None


@pytest.mark.parametrize(("before", "after", "added"), [(5, 9, 4), (9, 5, 0), (None, 9, None), (5, None, None)])
def test_what_is_not_known_at_both_ends_is_no_delay(delay, before, after, added):
    assert delay.between(before, after) == added


def test_no_more_files_than_allowed(delay, monkeypatch):
    monkeypatch.setattr(delay, "MOST", 1)
    delay.of_thread()
    assert in_thread(delay.of_thread) is None
    assert len(delay._files) == 1


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


def test_where_descriptors_are_few_none_is_kept(delay, probe, monkeypatch):
    delay.of_thread()
    monkeypatch.setattr(probe.files, "_few", [True])
    delay.forget()
    assert delay._files == {}
    assert delay.of_thread() is None


@pytest.mark.skipif(not Path("/proc/thread-self/io").exists(), reason="the kernel does not count it")
def test_only_what_the_thread_reads_counts(delay, tmp_path):
    (tmp_path / "data").write_bytes(bytes(5000))
    before = delay.read_by_thread()
    in_thread((tmp_path / "data").read_bytes)
    assert delay.read_since(before) == 0
    (tmp_path / "data").read_bytes()
    assert 5000 <= delay.read_since(before) < 5400  # with what the first look has read
