"""CPU time of threads from the kernel's files."""

import os
import threading

import pytest

from pipeprof.collect.host import ThreadReader, scheduled

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Proc:
    def __init__(self, folder):
        self.folder = folder

    def thread(self, tid, name, ticks, start=5, schedstat=None):
        place = self.folder / "9" / "task" / str(tid)
        place.mkdir(parents=True, exist_ok=True)
        behind = ["S", *["0"] * 10, str(ticks - 1), "1", *["0"] * 6, str(start), "0"]
        (place / "stat").write_text(f"{tid} ({name}) {' '.join(behind)}\n", encoding="utf-8")
        if schedstat:
            (place / "schedstat").write_text(schedstat, encoding="utf-8")


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path)


def test_ticks_where_the_scheduler_counts_nothing(proc):
    proc.thread(9, "python", 30)
    proc.thread(10, "a (b) c", 7, start=11)
    found = ThreadReader(str(proc.folder)).look(9)
    assert sorted(found["cpu"]) == [[9, 30 * TICK_NS, None], [10, 7 * TICK_NS, None]]
    assert sorted(found["names"]) == [[9, "python", 5 * TICK_NS], [10, "a (b) c", 11 * TICK_NS]]


def test_the_schedulers_nanoseconds_and_waits_where_it_counts(proc):
    proc.thread(9, "python", 30, schedstat="301234567 42000000 17\n")
    assert ThreadReader(str(proc.folder)).look(9)["cpu"] == [[9, 301234567, 42000000]]
    assert scheduled(b"") is None


def test_only_what_changed_is_told_again(proc):
    reader = ThreadReader(str(proc.folder))
    proc.thread(9, "python", 30, schedstat="300 1 1")
    proc.thread(10, "worker", 7, schedstat="70 0 1")
    reader.look(9)
    proc.thread(10, "worker", 8, schedstat="80 5 1")
    assert reader.look(9) == {"cpu": [[10, 80, 5]], "names": []}
    proc.thread(10, "renamed", 9, schedstat="90 5 1")
    assert reader.look(9)["names"] == [[10, "renamed", 5 * TICK_NS]]


def test_a_process_that_is_gone_has_no_threads(proc):
    assert ThreadReader(str(proc.folder)).look(9) == {"cpu": [], "names": []}


def test_a_number_that_is_used_again_is_new_when_its_process_was_forgotten(proc):
    reader = ThreadReader(str(proc.folder))
    proc.thread(9, "python", 30)
    reader.look(9)
    reader.forget(set())
    assert len(reader.look(9)["names"]) == 1


def test_a_real_process_has_its_threads():
    go, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (go.set(), stop.wait()))
    thread.start()
    go.wait()
    tids = {entry[0] for entry in ThreadReader().look(os.getpid())["names"]}
    stop.set()
    thread.join()
    assert {os.getpid(), thread.native_id} <= tids
