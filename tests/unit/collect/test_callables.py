"""Timing the user's Python: with objects shaped like MindSpore's, and the clock of the fixtures (1 us a look)."""

import functools
import pickle
from importlib import import_module
from types import SimpleNamespace

import pytest


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
    module = import_module("_pipeprof_probe.callables")
    original = FuncWrapper.__call__
    module.install_functions(SimpleNamespace(FuncWrapper=FuncWrapper))
    yield module
    FuncWrapper.__call__ = original
    module._cells.clear()


def double(value):
    return 2 * value


def hung(calls, function=double, tree=None):
    cell = calls.Cell(tree or Tree())
    wrapper = FuncWrapper(function)
    wrapper.__dict__[calls.ATTRIBUTE] = cell
    return wrapper, cell


def test_calls_are_counted_and_timed_and_their_results_pass(calls):
    tree = Tree()
    wrapper, cell = hung(calls, tree=tree)
    assert [wrapper(number) for number in range(5)] == [0, 2, 4, 6, 8]
    tree.rows = 2
    found = cell.take()
    assert (found["pipeline"], found["calls"], found["timed"], found["batches"]) == (3, 5, 5, 2)
    assert (found["wall"], found["min"], found["max"]) == (5_000, 1_000, 1_000)
    assert found["cpu"] >= 0


def test_figures_begin_again_after_each_flush(calls):
    wrapper, cell = hung(calls)
    wrapper(1)
    assert cell.take()["calls"] == 1
    assert cell.take() is None


def test_without_a_cell_nothing_is_timed(calls):
    assert FuncWrapper(double)(4) == 8


def test_exceptions_pass_and_count(calls):
    wrapper, cell = hung(calls, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        wrapper()
    assert cell.take()["timed"] == 1


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


def test_rows_of_a_source_pass_and_are_timed(calls):
    tree = Tree()
    cell = calls.Cell(tree)
    assert list(calls._timed_rows(cell, range, 4)) == [0, 1, 2, 3]
    assert len(cell.timed) == 4


def test_the_pickled_state_does_not_hold_the_cell(calls):
    wrapper, _ = hung(calls)
    assert calls.ATTRIBUTE not in pickle.loads(pickle.dumps(wrapper)).__dict__  # noqa: S301 - our own


GRAPH = {"type": "BatchOp", "node": 0, "children": [{"type": "MapOp", "node": 1, "children": [{"type": "GeneratorOp", "node": 2}]}]}  # fmt: skip


def test_two_functions_of_a_map_are_two_parts_of_one_node(calls):
    calls.begin(Tree(), GRAPH)
    nested = SimpleNamespace(transforms=[FuncWrapper(double)])
    calls._hang_map(SimpleNamespace(operations=[FuncWrapper(double), nested, object()]))
    calls.end()
    assert [(cell.node, cell.part) for cell in calls._cells] == [(1, 0), (1, 1)]


def test_operators_that_do_not_match_the_graph_are_dropped(calls):
    calls.begin(Tree(), GRAPH)
    for _ in range(2):
        calls._hang_map(SimpleNamespace(operations=[FuncWrapper(double)]))
    calls.end()
    assert calls._cells == []


def test_functions_of_worker_processes_are_left_alone(calls):
    calls.begin(Tree(), GRAPH)
    wrapper = FuncWrapper(double)
    calls._hang_map(SimpleNamespace(operations=[wrapper], process_pool=FuncWrapper(None)))
    calls.end()
    assert calls.ATTRIBUTE not in wrapper.__dict__
    assert [(type(cell).__name__, cell.node) for cell in calls._cells] == [("Workers", 1)]


def test_outside_a_build_nothing_is_hung(calls):
    wrapper = FuncWrapper(double)
    calls._hang_map(SimpleNamespace(operations=[wrapper]))
    calls._hang_batch(SimpleNamespace(per_batch_map=wrapper))
    assert calls.ATTRIBUTE not in wrapper.__dict__


def test_a_generator_is_wrapped_and_still_gives_its_rows(calls):
    tree = Tree()
    calls.begin(tree, GRAPH)
    dataset = SimpleNamespace(sample_fn=None, prepared_source=functools.partial(range, 3))
    calls._hang_source(dataset)
    calls.end()
    assert list(dataset.prepared_source()) == [0, 1, 2]
    assert (calls._cells[0].node, len(calls._cells[0].timed)) == (2, 3)


def test_a_flush_writes_each_cell_and_forgets_those_of_a_tree_that_ends(calls, rec, monkeypatch):
    lines = []
    monkeypatch.setattr(rec, "line", lambda name, **fields: lines.append((name, fields)))
    tree = Tree()
    wrapper, cell = hung(calls, tree=tree)
    calls._cells.append(cell)
    wrapper(1)
    calls.flush()
    assert [(name, fields["calls"]) for name, fields in lines] == [("calls", 1)]
    assert calls._cells == [cell]
    calls.flush(number=4)
    assert calls._cells == [cell]
    calls.flush(number=3)
    assert calls._cells == []
    assert len(lines) == 1


def test_the_lock_is_held_as_much_as_sleeps_are_late(probe, rec, monkeypatch):
    gil = import_module("_pipeprof_probe.gil")
    clock = [0]
    lines = []

    def sleep(_seconds):
        clock[0] += 102_500_000  # half of the interpreter's interval late

    def line(name, **fields):
        lines.append((name, fields))
        rec.off = True

    monkeypatch.setattr(probe.recorder, "now", lambda: clock[0])
    monkeypatch.setattr(probe.recorder, "sleep", sleep)
    monkeypatch.setattr(gil.sys, "getswitchinterval", lambda: 0.005)
    monkeypatch.setattr(rec, "line", line)
    gil._run()
    ((name, fields),) = lines
    assert (name, fields["probes"], fields["held"]) == ("gil", 10, pytest.approx(0.5))


def test_bytes_that_calls_are_given_and_make(calls):
    np = pytest.importorskip("numpy")
    wrapper, cell = hung(calls, lambda row: (row, np.zeros(3, np.int32)))
    wrapper(np.zeros(10))
    wrapper(np.zeros(20))
    found = cell.take()
    assert (found["given"], found["made"]) == (80 + 160, 80 + 160 + 2 * 12)


def test_one_result_of_unknown_size_leaves_the_sum_unknown(calls):
    wrapper, cell = hung(calls, lambda known: 1 if known else object())
    wrapper(True)
    assert cell.take()["made"] == 8
    wrapper(True)
    wrapper(False)
    assert cell.take()["made"] is None


def test_rows_of_a_source_are_given_nothing(calls):
    cell = calls.Cell(Tree())
    list(calls._timed_rows(cell, lambda: iter([(b"abc", "ü"), (b"", "")])))
    found = cell.take()
    assert (found["given"], found["made"]) == (0, 5)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (b"abc", 3),
        ("ü", 2),
        (1.5, 8),
        ([b"ab"] * 1000, 2000),
        ({"a": b"a", "b": (b"bc",)}, 3),
        ([], 0),
        (object(), None),
    ],
)
def test_the_size_of_a_value(calls, value, size):
    assert import_module("_pipeprof_probe.sizes").of(value) == size
