"""A run that ends after so many training steps: it leaves as sys.exit() does, from the main thread only."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.fixture
def stop(probe, rec):
    """A run of three steps; `steps`: those that were counted, `told`: its warnings."""
    rec.open = lambda: None
    counted, told = [], []
    rec.warn = lambda code, message: told.append((code, message))
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
    assert stop.told == [("stopped", "the training was to end after 3 steps, as asked")]


def test_a_script_that_goes_on_is_left_at_the_next_step(stop):
    for number in range(5):
        if number < 2:
            stop()
        else:
            with pytest.raises(SystemExit):
                stop()
    assert len(stop.told) == 1


def test_a_loop_in_another_thread_goes_on_and_that_is_said(stop, monkeypatch):
    threads = import_module("_pipeprof_probe.stop").threading
    monkeypatch.setattr(threads, "current_thread", lambda: "a thread of the script's")
    for _ in range(6):
        stop()
    assert len(stop.counted) == 6
    assert [message for _, message in stop.told] == [
        "the training was to end after 3 steps, but goes on: its loop is not in the main thread"
    ]


def test_only_the_wish_replaces_what_counts_the_steps(probe, rec):
    rec._options = {"stop_after": 7}
    probe.steps._change_steps(rec)
    assert probe.windows.WINDOWS.step_done.steps == 7
    failed = []
    rec.failed, rec._options = failed.append, {"stop_after": "soon"}
    probe.steps._change_steps(rec)
    assert failed == ["stop_after"]
