"""A run that ends after so many training steps: it leaves as sys.exit() does, from the main thread only."""

from importlib import import_module

import pytest


@pytest.fixture
def stop(probe, rec):
    """A run of three steps; `steps`: those that were counted, `told`: its warnings."""
    rec.open = lambda: None
    counted, told = [], []
    rec.warn = lambda code, message: told.append((code, message))
    rec.event = lambda name, **fields: told.append((name, fields))
    planted = import_module("_pipeprof_probe.stop").Stop(3, lambda: counted.append(1))
    planted.counted, planted.told = counted, told
    return planted


def test_the_last_step_is_counted_and_then_the_program_is_left(stop):
    stop()
    stop()
    with pytest.raises(SystemExit) as caught:
        stop()
    assert caught.value.code == 0
    assert len(stop.counted) == 3
    assert stop.told == [("stopped", "the training was to end after 3 steps, as asked"), ("stopped", {"steps": 3})]


def test_a_script_that_goes_on_is_left_at_the_next_step(stop):
    for number in range(5):
        if number < 2:
            stop()
        else:
            with pytest.raises(SystemExit):
                stop()
    assert len(stop.told) == 2


def test_a_loop_in_another_thread_goes_on_and_that_is_said(stop, monkeypatch):
    threads = import_module("_pipeprof_probe.stop").threading
    monkeypatch.setattr(threads, "current_thread", lambda: "a thread of the script's")
    for _ in range(6):
        stop()
    assert len(stop.counted) == 6
    (told,) = stop.told
    assert told[1] == "the training was to end after 3 steps, but goes on: its loop is not in the main thread"


def test_only_the_wish_replaces_what_counts_the_steps(probe, rec):
    rec._options = {"stop_after": 7, "stop_after_s": None}
    probe.steps._change_steps(rec)
    assert probe.windows.WINDOWS.step_done.steps == 7
    failed = []
    rec.failed, rec._options = failed.append, {"stop_after": "soon"}
    probe.steps._change_steps(rec)
    assert failed == ["stop_after"]


@pytest.fixture
def timed(stop, rec, tmp_path):
    """`run(rank, s)`: a step of a rank ends at that time; the step after which the rank leaves, None while it goes on.

    A run is to take 9 s and 4 steps.
    """
    rec.root = str(tmp_path)
    ranks = [type(stop)(4, lambda: None, 9.0) for _ in range(2)]

    def run(rank, seconds):
        rec_module.now = lambda: int(seconds * 1e9)
        try:
            ranks[rank]()
        except SystemExit:
            return ranks[rank].done
        return None

    rec_module = import_module("_pipeprof_probe.stop").recorder
    before = rec_module.now
    yield run
    rec_module.now = before


def ends(timed, rank, times):
    return next((done for done in (timed(rank, at) for at in times) if done), None)


def test_a_run_that_is_to_take_a_time_ends_some_steps_after_it(timed):
    assert ends(timed, 0, range(100, 200)) == 10 + 8  # 9 s after the first step, and as far as ranks may be apart


def test_it_has_a_least_number_of_steps(timed):
    assert ends(timed, 0, range(0, 2000, 100)) == 4 + 8


def test_all_ranks_leave_after_the_step_that_the_first_one_chose(timed):
    assert [timed(0, at) for at in range(10)] == [None] * 10  # the time is over after its tenth step
    assert [timed(1, at) for at in range(9)] == [None] * 9  # one step behind, and by its clock not yet there
    assert [ends(timed, rank, [9.5] * 20) for rank in (1, 0)] == [18, 18]


def test_a_choice_that_is_being_written_is_no_choice_yet(timed, tmp_path):
    (tmp_path / "stop").write_text("")
    assert timed(0, 0) is None
    (tmp_path / "stop").write_text("2")
    assert timed(0, 0) == 2


def test_a_disk_that_refuses_the_choice_ends_nothing(timed, tmp_path):
    (tmp_path / "stop").mkdir()
    assert ends(timed, 0, range(50)) is None
