"""Where the process is: written once a second, with all threads when nothing moves."""

import _thread
import json
import threading
import time
from pathlib import Path

import pytest

S = 1_000_000_000


@pytest.fixture
def look(probe, rec, monkeypatch):
    """`look(at)`: what is in the file after a look at that second; None when nothing was written."""
    clock = [0]
    monkeypatch.setattr(probe.recorder, "now", lambda: clock[0])
    rec.open()
    rec.moved = 0
    path = Path(rec.folder) / probe.live.FILE

    def at(seconds):
        clock[0] = int(seconds * S)
        path.unlink(missing_ok=True)
        rec.live()
        return json.loads(path.read_bytes()) if path.exists() else None

    return at


def functions(entries):
    return [entry[2] for entry in entries]


def test_it_writes_once_a_second(look):
    assert [look(at) is not None for at in (0, 0.5, 1, 1.5, 2)] == [True, False, True, False, True]


def test_the_stack_of_the_main_thread_is_told_with_the_programs_own_frames(look):
    told = look(0)["stack"]
    assert [(entry[2], entry[3]) for entry in told[:2]] == [("frames", 0), ("__call__", 0)]
    mine = next(entry for entry in told if entry[2].startswith("test_"))
    assert (mine[0], mine[3]) == (__file__, 1)


def test_a_mark_is_a_movement_and_a_second_without_one_is_none(look, rec, probe):
    rec.mark(probe.recorder.FETCH, 0, 0, 0, 0, 1)
    assert "threads" not in look(3)
    rec.flush()
    told = look(10)
    assert told["moved"] == 3 * S
    assert "threads" in told


def test_a_hook_on_the_stack_is_a_known_call(look, probe, monkeypatch):
    class Executor:
        def compile(self):
            return look(5), True

    probe.steps._install_compile(Executor, None)
    told, _ = Executor().compile()
    (call,) = [entry[4] for entry in told["stack"] if entry[4] is not None]
    assert call.pop("since") <= time.monotonic_ns()
    assert call == {"call": "compile"}


def test_another_thread_of_the_program_is_told_as_long_as_it_is_in_one_call(look):
    begun, over = threading.Event(), threading.Event()

    def waits():
        begun.set()
        over.wait()

    _thread.start_new_thread(waits, ())
    begun.wait()
    try:
        told = [look(at)["threads"] for at in (5, 7)]
    finally:
        over.set()
    first, second = (next(one for one in threads if "waits" in functions(one["stack"])) for threads in told)
    assert first["since"] == second["since"] == 5 * S
    assert first["line"]


def test_who_looks_when_nothing_moves_is_called_then_only(look, rec, probe):
    called = []
    rec.live.still.append(called.append)
    rec.mark(probe.recorder.FETCH, 0, 0, 0, 0, 1)
    look(1)
    assert called == []
    rec._taken()
    look(9)
    assert called == [9 * S]


def test_a_folder_that_was_deleted_is_no_matter(look, rec, probe, tmp_path):
    probe.live.replace(str(tmp_path / "gone" / "now.json"), {})
    assert not (tmp_path / "gone").exists()


def test_a_password_in_the_line_that_stands_still_is_not_written(probe, tmp_path):
    file = tmp_path / "job.py"
    file.write_text("connect(password='hunter2secret')\n", encoding="utf-8")
    line = probe.live._line([[str(file), 1, "<module>", 1, None]])
    assert line.startswith("connect(")
    assert "hunter2secret" not in line
