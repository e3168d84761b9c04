"""Outputs are remembered and handed out in turn; sources count; nothing of the user's is changed."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.collect.conftest import operator


@pytest.fixture
def stand_in(probe, rec):
    return probe.stand_in


class Doubled:
    def __init__(self):
        self.calls = 0

    def __call__(self, *rows):
        self.calls += 1
        return tuple(2 * row for row in rows) if len(rows) > 1 else 2 * rows[0]


def rows(number):
    return [np.full(3, value, np.float32) for value in range(number)]


def test_the_first_outputs_come_back_in_turn(stand_in):
    real = Doubled()
    given = stand_in.Memory(real)
    assert [float(given(row)[0]) for row in rows(3 * 16)] == 3 * [2.0 * value for value in range(16)]
    assert real.calls == 16


def test_what_is_remembered_stays_when_the_memory_of_the_row_is_used_again(stand_in):
    row = np.zeros(3, np.float32)
    given = stand_in.Memory(lambda value: value)
    given(row)
    row[:] = 7
    for _ in range(stand_in.ROWS - 1):
        given(row)
    assert given(row)[0] == 0


def test_large_outputs_are_few(stand_in, monkeypatch):
    monkeypatch.setattr(stand_in, "MOST_BYTES", 20)
    real = Doubled()
    given = stand_in.Memory(real)
    for row in rows(10):
        given(row, row)
    assert real.calls == 1  # 24 bytes


def test_a_shorter_last_batch_has_outputs_of_its_own(stand_in):
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


@pytest.mark.parametrize(("iterable", "limit", "counted"), [(False, 0, 5), (True, 0, 5), (False, 3, 3)])
def test_an_unsized_source_counts_its_rows(stand_in, told, iterable, limit, counted):
    copied = SimpleNamespace(source=range(5) if iterable else lambda: iter(range(5)), num_samples=limit)
    assert stand_in.Counted({"node": 4}, copied).apply(copied) is None
    for number, _ in enumerate(copied.source(), start=1):
        if number == limit:
            break  # as MindSpore does
    assert [(event["node"], event["rows"]) for event in told("source_rows")] == [(4, counted)]


def test_a_map_in_worker_processes_hands_out_in_a_thread(stand_in):
    how = {"python_multiprocessing": True, "per_batch_map": Doubled()}
    node, copied = operator("BatchOp", operator("GeneratorOp"), **how), operator("BatchOp", **how)
    wanted, again = (stand_in.StandIn({"stand_in": "alone", "node": 0}, node) for _ in range(2))
    assert wanted.apply(copied) is None
    assert (copied.python_multiprocessing, node.python_multiprocessing) == (False, True)
    assert isinstance(copied.per_batch_map, stand_in.BatchMemory)
    assert isinstance(node.per_batch_map, Doubled)
    assert again.given is wanted.given  # of the iterator of the next epoch
    with pytest.raises(stand_in.CannotError, match="runs no function"):
        stand_in.StandIn({"stand_in": "alone", "node": 0}, operator("MapOp", operator("GeneratorOp")))
