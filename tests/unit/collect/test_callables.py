"""Timing the user's Python: with objects shaped like MindSpore's, and the clock of the fixtures (1 us a look).

What these functions are given and make, in bytes: an answer or none, never an error, and never a long look. And the
interpreter's instructions of the first calls.
"""

import functools
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from pipeprof.collect.probe import sizes


class FuncWrapper:
    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args)

    def __getstate__(self):
        return {"function": self.function}  # as MindSpore's: what it needs, nothing that hangs on it


class Tree:
    def __init__(self, number=3):
        self.number = number
        self.rows = 0


@pytest.fixture
def calls(probe, rec):
    original = FuncWrapper.__call__
    probe.callables.install_functions(SimpleNamespace(FuncWrapper=FuncWrapper))
    yield probe.callables
    FuncWrapper.__call__ = original
    probe.callables._cells.clear()


def double(value):
    return 2 * value


def hung(calls, function=double, tree=None):
    cell = calls.Cell(tree or Tree())
    wrapper = FuncWrapper(function)
    wrapper.__dict__[calls.ATTRIBUTE] = cell
    return wrapper, cell


def test_calls_are_counted_and_timed_and_their_results_and_errors_pass(calls):
    tree = Tree()
    wrapper, cell = hung(calls, tree=tree)
    assert [wrapper(number) for number in range(5)] == [0, 2, 4, 6, 8]
    tree.rows = 2
    found = cell.take()
    assert (found["pipeline"], found["calls"], found["timed"], found["batches"]) == (3, 5, 5, 2)
    assert (found["wall"], found["min"], found["max"]) == (5_000, 1_000, 1_000)
    assert found["cpu"] >= 0
    assert cell.take() is None  # figures begin again
    wrapper.function = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        wrapper()
    assert cell.take()["timed"] == 1
    assert calls.ATTRIBUTE not in pickle.loads(pickle.dumps(hung(calls)[0])).__dict__  # noqa: S301 - our own
    assert FuncWrapper(double)(4) == 8  # one that nothing hangs on


@pytest.mark.parametrize(("count", "stride"), [(50, 1), (150, 2), (1_000, 11), (10_000_000, 1597)])
def test_many_calls_are_sampled(calls, count, stride):
    wrapper, cell = hung(calls)
    cell.count(count, False)
    cell.take()
    assert cell.every == stride
    for _ in range(3 * stride):
        wrapper(1)
    assert (len(cell.timed), cell.take()["calls"]) == (3, count + 3 * stride)


def test_calls_at_the_end_of_which_none_was_timed_are_told(calls):
    wrapper, cell = hung(calls)
    cell.every = 1_000
    wrapper(1)
    assert cell.take() is None
    cell.every = 1_000
    wrapper(1)
    found = cell.take(last=True)
    assert (found["calls"], found["timed"], found["wall"], found["max"]) == (2, 0, 0, None)
    assert cell.take(last=True) is None


GRAPH = {"type": "BatchOp", "node": 0, "children": [{"type": "MapOp", "node": 1, "children": [{"type": "GeneratorOp", "node": 2}]}]}  # fmt: skip


def test_two_functions_of_a_map_are_two_parts_of_one_node(calls):
    calls.begin(Tree(), GRAPH)
    nested = SimpleNamespace(transforms=[FuncWrapper(double)])
    calls._hang_map(SimpleNamespace(operations=[FuncWrapper(double), nested, object()]))
    calls.end()
    assert [(cell.node, cell.part) for cell in calls._cells] == [(1, 0), (1, 1)]


def test_what_does_not_match_the_graph_or_runs_in_worker_processes_or_outside_a_build_is_left_alone(calls):
    wrapper = FuncWrapper(double)
    calls._hang_map(SimpleNamespace(operations=[wrapper]))
    calls._hang_batch(SimpleNamespace(per_batch_map=wrapper))
    calls.begin(Tree(), GRAPH)
    for _ in range(2):
        calls._hang_map(SimpleNamespace(operations=[FuncWrapper(double)]))
    calls.end()
    assert calls._cells == []
    calls.begin(Tree(), GRAPH)
    calls._hang_map(SimpleNamespace(operations=[wrapper], process_pool=FuncWrapper(None)))
    calls.end()
    assert calls.ATTRIBUTE not in wrapper.__dict__
    assert [(type(cell).__name__, cell.node) for cell in calls._cells] == [("Workers", 1)]


def test_a_generator_is_wrapped_and_still_gives_its_rows(calls):
    calls.begin(Tree(), GRAPH)
    dataset = SimpleNamespace(sample_fn=None, prepared_source=functools.partial(range, 3))
    calls._hang_source(dataset)
    calls.end()
    assert list(dataset.prepared_source()) == [0, 1, 2]
    assert (calls._cells[0].node, len(calls._cells[0].timed)) == (2, 3)


def test_a_flush_writes_each_cell_and_forgets_those_of_a_tree_that_ends(calls, said):
    tree = Tree()
    wrapper, cell = hung(calls, tree=tree)
    calls._cells.append(cell)
    wrapper(1)
    for number, left in ((None, [cell]), (4, [cell]), (3, [])):
        calls.flush(number=number)
        assert calls._cells == left
    assert [(name, fields["calls"]) for name, fields in said] == [("calls", 1)]


def test_bytes_that_calls_are_given_and_make(calls):
    wrapper, cell = hung(calls, lambda row: (row, np.zeros(3, np.int32)))
    wrapper(np.zeros(10))
    wrapper(np.zeros(20))
    found = cell.take()
    assert (found["given"], found["made"]) == (80 + 160, 80 + 160 + 2 * 12)
    wrapper.function = lambda known: 1 if known else object()
    wrapper(True)
    assert cell.take()["made"] == 8
    wrapper(True)
    wrapper(False)
    assert cell.take()["made"] is None  # one result of unknown size leaves the sum unknown
    rows = [(b"abc", "ü"), (b"", ""), (b"", ""), (b"", "")]
    assert list(calls._timed_rows(cell, iter, rows)) == rows
    found = cell.take()
    assert (found["timed"], found["given"], found["made"]) == (4, 0, 5)


class Closed:
    @property
    def nbytes(self):
        raise RuntimeError("the file is closed")


class Unsliced(list):
    def __getitem__(self, _):
        raise IndexError("not a plain list")


ITSELF = []
ITSELF.append(ITSELF)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros((3, 4), np.float32), 48),
        ((np.zeros(2, np.int64), b"abc", "h\u00e4"), 16 + 3 + 3),
        ({"image": np.zeros(5, np.uint8), "label": 7, "more": (b"bc",)}, 5 + 8 + 2),
        (1.5, 8),
        ([1.0] * 640, 8 * 640),  # the first 64 stand for the others
        ([b"ab"] * 1000, 2000),
        ([], 0),
        (object(), None),
        (Closed(), None),
        ([np.zeros(2), Closed()], None),
        (ITSELF, None),
        (Unsliced([1, 2]), None),
        ([[[0] * 64] * 64] * 64, None),  # it would take 80 ms to look at all of these
    ],
)
def test_bytes_of_a_value(value, expected):
    assert sizes.of(value) == expected
    assert sizes.together((value, 1)) == (None if expected is None else expected + 8)


@pytest.fixture
def counting(probe, rec):
    rec.options["instructions"] = True
    probe.instructions._windows = 0
    return probe.instructions


def work(amount):
    total = 0
    for number in range(amount):
        total += number
    return total


def counts(window, amount, times=1):
    for _ in range(times):
        assert window.counted(window.next(), work, amount) == work(amount)
    return window.take()


def test_the_same_work_takes_the_same_number_of_instructions_and_more_work_more(counting):
    window = counting.window()
    (hundred, again), (more,) = counts(window, 100, 2), counts(window, 101)
    assert hundred == again
    assert 0 < more - hundred < hundred / 50
    assert window.take() == []


def test_only_the_first_calls_and_the_first_functions_are_counted_where_it_is_asked_for(counting, rec):
    window = counting.window()
    counts(window, 1, counting.CALLS)
    assert window.next() is None
    windows = [counting.window() for _ in range(counting.WINDOWS + 3)]
    assert sum(one is not None for one in windows) == counting.WINDOWS - 1
    rec.options["instructions"], counting._windows = False, 0
    assert counting.window() is None


def test_a_long_call_is_counted_to_the_limit_and_is_the_last_one(counting, monkeypatch):
    monkeypatch.setattr(counting, "MOST", 500)
    window = counting.window()
    assert counts(window, 10_000) == [501]
    assert window.next() is None


def test_what_the_function_raises_passes_and_the_trace_is_off_again(counting):
    window = counting.window()
    with pytest.raises(ZeroDivisionError):
        window.counted(window.next(), lambda: 1 / 0)
    assert len(window.take()) == 1
    assert sys.gettrace() is None


def test_a_thread_that_something_else_traces_is_left_alone(counting):
    window, before = counting.window(), sys.gettrace()
    sys.settrace(lambda _frame, _event, _arg: None)
    try:
        call = window.next()
    finally:
        sys.settrace(before)
    assert call is None
    window.counted(window.next(), sys.settrace, None)  # the function takes the trace for itself
    assert window.take() == []
