"""Counting the interpreter's instructions of the user's Python, by windows of the first calls."""

import sys
from importlib import import_module

import pytest


@pytest.fixture
def counting(probe, rec):
    module = import_module("_pipeprof_probe.instructions")
    rec.options["instructions"] = True
    module._windows = 0
    return module


def work(amount):
    total = 0
    for number in range(amount):
        total += number
    return total


def counts(window, amount, times=1):
    for _ in range(times):
        assert window.counted(window.next(), work, amount) == work(amount)
    return window.take()


def test_the_same_work_takes_the_same_number_and_more_work_more(counting):
    window = counting.window()
    (hundred, again), (more,) = counts(window, 100, 2), counts(window, 101)
    assert hundred == again
    assert 0 < more - hundred < hundred / 50
    assert window.take() == []


def test_only_the_first_calls_and_the_first_functions_are_counted(counting):
    window = counting.window()
    counts(window, 1, counting.CALLS)
    assert window.next() is None
    windows = [counting.window() for _ in range(counting.WINDOWS + 3)]
    assert sum(one is not None for one in windows) == counting.WINDOWS - 1


def test_a_long_call_is_counted_to_the_limit_and_is_the_last_one(counting, monkeypatch):
    monkeypatch.setattr(counting, "MOST", 500)
    window = counting.window()
    assert counts(window, 10_000) == [501]
    assert window.next() is None


def test_nothing_is_counted_unless_it_is_asked_for(counting, rec):
    rec.options["instructions"] = False
    assert counting.window() is None


def test_what_the_function_raises_passes_and_the_trace_is_off_again(counting):
    window = counting.window()
    with pytest.raises(ZeroDivisionError):
        window.counted(window.next(), lambda: 1 / 0)
    assert len(window.take()) == 1
    assert sys.gettrace() is None


def test_a_thread_that_something_else_traces_is_left_alone(counting):
    def other(_frame, _event, _arg):
        return None

    window = counting.window()
    before = sys.gettrace()
    sys.settrace(other)
    try:
        call = window.next()
    finally:
        sys.settrace(before)
    assert call is None
    window.counted(window.next(), sys.settrace, None)  # the function takes the trace for itself
    assert window.take() == []
