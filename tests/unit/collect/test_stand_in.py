"""Outputs are remembered and handed out in turn; sources count; nothing of the user's is changed."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def stand_in(probe):
    return import_module(f"{probe.package.__name__}.stand_in")


class Doubled:
    def __init__(self):
        self.calls = 0

    def __call__(self, *rows):
        self.calls += 1
        return tuple(2 * row for row in rows) if len(rows) > 1 else 2 * rows[0]


def rows(number):
    return [np.full(3, value, np.float32) for value in range(number)]


def test_the_first_outputs_come_back_in_turn(stand_in, rec):
    real = Doubled()
    given = stand_in.Memory(real)
    found = [float(given(row)[0]) for row in rows(3 * stand_in.ROWS)]
    once = [2.0 * value for value in range(stand_in.ROWS)]
    assert found == 3 * once
    assert real.calls == stand_in.ROWS


def test_what_is_remembered_stays_when_the_memory_of_the_row_is_used_again(stand_in, rec):
    row = np.zeros(3, np.float32)
    given = stand_in.Memory(lambda value: value)
    given(row)
    row[:] = 7
    for _ in range(stand_in.ROWS - 1):
        given(row)
    assert given(row)[0] == 0


def test_large_outputs_are_few(stand_in, rec, monkeypatch):
    monkeypatch.setattr(stand_in, "MOST_BYTES", 20)
    real = Doubled()
    given = stand_in.Memory(real)
    for row in rows(10):
        given(row, row)
    assert real.calls == 1  # 24 bytes


def test_a_shorter_last_batch_has_outputs_of_its_own(stand_in, rec):
    given = stand_in.BatchMemory(lambda images, _info: np.stack(images))
    sizes = [len(given(rows(size), None)) for _ in range(2 * stand_in.ROWS) for size in (8, 8, 2)]
    assert sizes == 2 * stand_in.ROWS * [8, 8, 2]


def test_a_function_that_fails_is_told_and_fails(stand_in, told):
    given = stand_in.Memory(lambda _value: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            given(rows(1)[0])
    assert [event["why"] for event in told("stand_in_failed")] == ["ZeroDivisionError: division by zero"]


def test_a_source_is_as_long_as_it_was(stand_in):
    known = [(0,), (1,), (2,)]
    source = stand_in.Rows(known, ["x"], 7)
    assert [[row[0] for row in source()] for _ in range(2)] == 2 * [[0, 1, 2, 0, 1, 2, 0]]
    endless = stand_in.Rows(known, ["x"], None)()
    assert [next(endless)[0] for _ in range(8)] == [0, 1, 2, 0, 1, 2, 0, 1]


@pytest.mark.parametrize(
    ("source", "limit", "counted"),
    [
        (lambda: iter(range(5)), 0, 5),
        (range(5), 0, 5),
        (lambda: iter(range(5)), 3, 3),
    ],
)
def test_an_unsized_source_counts_its_rows(stand_in, told, source, limit, counted):
    copied = SimpleNamespace(source=source, num_samples=limit)
    found = stand_in.Counted({"node": 4}, copied)
    assert found.apply(copied) is None
    for number, _ in enumerate(copied.source(), start=1):
        if number == limit:
            break  # as MindSpore does
    assert [(event["node"], event["rows"]) for event in told("source_rows")] == [(4, counted)]


def test_a_map_in_worker_processes_hands_out_in_a_thread(stand_in, rec):
    node = SimpleNodes(python_multiprocessing=True, per_batch_map=Doubled(), children=[SimpleNodes(children=[])])
    wanted = stand_in.StandIn({"stand_in": "alone", "node": 0}, node)
    copied = SimpleNodes(python_multiprocessing=True, per_batch_map=node.per_batch_map, children=[])
    assert wanted.apply(copied) is None
    assert (copied.python_multiprocessing, node.python_multiprocessing) == (False, True)
    assert isinstance(copied.per_batch_map, stand_in.BatchMemory)
    assert isinstance(node.per_batch_map, Doubled)
    again = stand_in.StandIn({"stand_in": "alone", "node": 0}, node)  # the iterator of the next epoch
    assert again.given is wanted.given


def test_an_operator_without_a_function_cannot_be_replaced_alone(stand_in):
    node = SimpleNodes(children=[SimpleNodes(children=[])])
    with pytest.raises(stand_in.CannotError, match="runs no function"):
        stand_in.StandIn({"stand_in": "alone", "node": 0}, node)


class SimpleNodes:
    """A dataset operator with these attributes."""

    def __init__(self, **facts):
        self.__dict__.update(facts)
