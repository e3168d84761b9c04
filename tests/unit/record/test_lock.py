"""The lock of a run: held as long as its process lives, and by nobody else."""

import json
import os
import subprocess
import sys
import time

import pytest

from pipeprof.errors import RunError
from pipeprof.record import lock

TAKE = "import sys; from pathlib import Path; from pipeprof.record import lock; lock.take(Path(sys.argv[1]), 'theirs')"


def start_holder(folder):
    """A process that took the lock and has ended, but was not reaped."""
    holder = subprocess.Popen([sys.executable, "-c", TAKE, str(folder)])
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    assert folder.joinpath(lock.LOCK).is_file()
    return holder


def change(folder, **fields):
    path = folder / lock.LOCK
    path.write_text(json.dumps(json.loads(path.read_bytes()) | fields), encoding="utf-8")


def make_old(folder, age=2 * lock.QUIET_S):
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - age,) * 2)


def test_the_lock_names_run_process_and_start_and_goes_when_it_is_released(tmp_path):
    assert lock.is_held(tmp_path) is None
    lock.take(tmp_path, "mine")
    found = json.loads(tmp_path.joinpath(lock.LOCK).read_bytes())
    assert (found["run_id"], found["pid"]) == ("mine", os.getpid())
    assert found["start_ticks"] == lock.start_ticks(os.getpid()) > 0
    assert lock.is_held(tmp_path)
    assert lock.is_mine(tmp_path, "mine")
    assert not lock.is_mine(tmp_path, "another")
    lock.release(tmp_path, "theirs")
    assert lock.is_mine(tmp_path, "mine")
    lock.release(tmp_path, "mine")
    assert list(tmp_path.iterdir()) == []


def test_a_zombie_and_a_process_that_is_gone_hold_nothing(tmp_path):
    holder = start_holder(tmp_path)
    try:
        assert lock.is_held(tmp_path) is False
    finally:
        holder.wait()
    assert lock.is_held(tmp_path) is False
    lock.release(tmp_path, "theirs")
    assert tmp_path.joinpath(lock.LOCK).exists()


@pytest.mark.parametrize("later", [-1, 1])
def test_another_process_with_the_number_holds_nothing(tmp_path, later):
    lock.take(tmp_path, "mine")
    change(tmp_path, start_ticks=lock.start_ticks(os.getpid()) + later)
    assert lock.is_held(tmp_path) is False


def test_a_lock_from_elsewhere_holds_as_long_as_something_is_written(tmp_path):
    lock.take(tmp_path, "mine")
    change(tmp_path, place="another boot", pid=1 << 30)
    assert lock.is_held(tmp_path)
    make_old(tmp_path)
    assert lock.is_held(tmp_path) is False
    tmp_path.joinpath("host.jsonl").write_text("{}\n", encoding="utf-8")
    assert lock.is_held(tmp_path)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b'{"pid": 1}', b"\xff", b"[" * 100_000])
def test_a_lock_that_cannot_be_read_holds_while_it_is_new(tmp_path, text):
    tmp_path.joinpath(lock.LOCK).write_bytes(text)
    assert lock.is_held(tmp_path)
    make_old(tmp_path)
    assert lock.is_held(tmp_path) is False


def test_a_pipe_in_the_place_of_the_lock_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / lock.LOCK)
    assert lock.is_held(tmp_path)
    lock.release(tmp_path, "mine")
    assert tmp_path.joinpath(lock.LOCK).exists()


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    lock.take(other, "mine")
    tmp_path.joinpath(lock.LOCK).symlink_to(other / lock.LOCK)
    assert not lock.is_mine(tmp_path, "mine")
    lock.take(tmp_path, "new")
    assert lock.is_mine(other, "mine")


def test_one_process_at_a_time_decides_and_a_lock_that_cannot_be_written_says_so(tmp_path):
    with lock.deciding(tmp_path), pytest.raises(RunError, match="another pipeprof is opening"), lock.deciding(tmp_path):
        pass
    with lock.deciding(tmp_path):
        pass
    tmp_path.joinpath(lock.LOCK).mkdir()
    with pytest.raises(RunError, match=r"cannot write `.*/lock`"):
        lock.take(tmp_path, "mine")


def test_a_folder_is_free_again_when_what_follows_goes_wrong(tmp_path):
    lock.take(tmp_path, "a-run")
    with pytest.raises(OSError, match="full"), lock.released_if_it_fails(tmp_path, "a-run"):
        raise OSError("full")
    assert not lock.is_held(tmp_path)
    lock.take(tmp_path, "another")
