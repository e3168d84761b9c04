"""An iterator that hands out its first batch for ever, and ends its epochs where they would have ended."""

from importlib import import_module
from types import SimpleNamespace

import pytest

SITE = "train.py:7"


class Iterator:
    def __init__(self, rows):
        self.rows = iter(rows)
        self.fetched = 0

    def __iter__(self):
        return self

    def stop(self):
        self.stopped = True

    def __next__(self):
        self.fetched += 1
        return next(self.rows)


@pytest.fixture
def make(probe, rec):
    """`make(rows, wish)`: an iterator with the hook, as the training gets it."""
    cached = import_module(f"{probe.package.__name__}.cached")

    def made(rows, wish=None, number=0, epochs=1, site=SITE, dataset=None, hidden=False):
        rec._options = {"cached": [{"site": SITE, "epochs": {"0": []}, "usual": None, "only": False} | (wish or {})]}
        kind = type("Hooked", (Iterator,), {"__next__": Iterator.__next__})
        cached.install(kind)
        iterator = kind(rows)
        facts = {"hidden": hidden, "site": site, "epochs": epochs}
        cached.attach(iterator, SimpleNamespace(number=number), facts, dataset)
        return iterator

    return made


@pytest.mark.parametrize("row", [[1, 2], {"x": 1}])
def test_the_first_batch_comes_again_until_the_epoch_ends(make, row):
    iterator = make([row, "another"], {"epochs": {"0": [3]}})
    rows = list(iterator)
    assert rows == [row] * 3
    assert iterator.fetched == 1
    assert iterator.stopped
    assert rows[0] is not rows[1]


def test_an_iterator_for_each_epoch_hands_out_the_batch_of_the_first_and_starts_no_pipeline(make):
    dataset = type("Dataset", (), {"dataset_size": 2})()
    first = make([[1]], dataset=dataset)
    assert list(first) == [[1]] * 2
    kind = type(first)
    again, other = kind([[2]]), kind([[3]])
    other._output_numpy = True
    for iterator in (again, other):
        iterator.__dict__["_pipeprof_cached"] = type(vars(first)["_pipeprof_cached"])(dataset, [], None, 1)
    assert (list(again), again.fetched) == ([[1]] * 2, 0)
    assert (list(other), other.fetched) == ([[3]] * 2, 1)


def test_a_loop_may_take_its_batch_apart(make):
    iterator = make([[1, 2]], {"usual": 3})
    for row in iterator:
        row.pop(0)
        assert row == [2]


@pytest.mark.parametrize("kind", [dict, list, tuple])
def test_a_loop_may_take_a_column_apart_that_is_a_dict(make, kind):
    column = {"x": 1, "y": 2}
    for row in make([{"row": column} if kind is dict else kind([column])], {"usual": 3}):
        (column,) = row.values() if isinstance(row, dict) else row
        assert column.pop("x") == 1


def test_every_epoch_has_its_own_length(make):
    iterator = make([[1]], {"epochs": {"0": [3, 2]}}, epochs=2)
    assert [len(list(iterator)), len(list(iterator)), len(list(iterator))] == [3, 2, 0]


def test_unseen_epochs_are_as_long_as_usual_or_as_the_dataset_says(make):
    assert len(list(make([[1]], {"usual": 4}))) == 4
    assert len(list(make([[1]], dataset=SimpleNamespace(dataset_size=5)))) == 5
    endless = make([[1]], dataset=SimpleNamespace(dataset_size=None))
    assert [next(endless) for _ in range(100)] == [[1]] * 100


def test_an_empty_dataset_stays_empty(make):
    assert list(make([])) == []


def test_other_iterators_go_on_fetching(make):
    rows = [[1], [2], [3]]
    assert list(make(rows, number=1)) == rows
    assert list(make(rows, site="eval.py:3")) == rows
    assert list(make(rows, {"only": True}, hidden=True)) == rows
    assert len(list(make(rows, {"only": True, "usual": 2}, number=1))) == 2


def test_without_the_wish_nothing_is_hooked(probe, rec):
    rec._options = {}
    before = Iterator.__next__
    import_module(f"{probe.package.__name__}.cached").install(Iterator)
    assert Iterator.__next__ is before
