"""Iterators that hand out their first batch for ever, and end their epochs where they would have ended.

So of a dataset, whose pipeline is stopped, and of a DataLoader, whose workers are started and ended once.
"""

from itertools import count
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

    def made(rows, wish=None, number=0, epochs=1, site=SITE, dataset=None, hidden=False):
        rec._options = {"cached": [{"site": SITE, "epochs": {"0": []}, "usual": None, "only": False} | (wish or {})]}
        kind = type("Hooked", (Iterator,), {"__next__": Iterator.__next__})
        probe.cached.install(kind)
        iterator = kind(rows)
        facts = {"hidden": hidden, "site": site, "epochs": epochs}
        probe.cached.attach(iterator, SimpleNamespace(number=number), facts, dataset)
        return iterator

    return made


@pytest.mark.parametrize("row", [[1, 2], {"x": 1}])
def test_the_first_batch_comes_again_until_the_epoch_ends(make, row):
    iterator = make([row, "another"], {"epochs": {"0": [3]}})
    rows = list(iterator)
    assert rows == [row] * 3
    assert (iterator.fetched, iterator.stopped) == (1, True)
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


@pytest.mark.parametrize("kind", [dict, list, tuple])
def test_a_loop_may_take_its_batch_apart_and_a_column_that_is_a_dict(make, kind):
    column = {"x": 1, "y": 2}
    for row in make([{"row": column} if kind is dict else kind([column])], {"usual": 3}):
        (column,) = row.values() if isinstance(row, dict) else row
        assert column.pop("x") == 1
    for row in make([[1, 2]], {"usual": 3}):
        row.pop(0)
        assert row == [2]


def test_epochs_are_as_long_as_they_were_else_as_usual_else_as_the_dataset_says(make):
    iterator = make([[1]], {"epochs": {"0": [3, 2]}}, epochs=2)
    assert [len(list(iterator)) for _ in range(3)] == [3, 2, 0]
    assert len(list(make([[1]], {"usual": 4}))) == 4
    assert len(list(make([[1]], dataset=SimpleNamespace(dataset_size=5)))) == 5
    endless = make([[1]], dataset=SimpleNamespace(dataset_size=None))
    assert [next(endless) for _ in range(100)] == [[1]] * 100
    assert list(make([])) == []  # an empty dataset stays empty


def test_other_iterators_go_on_fetching_and_without_the_wish_nothing_is_hooked(make, probe, rec):
    rows = [[1], [2], [3]]
    assert list(make(rows, number=1)) == rows
    assert list(make(rows, site="eval.py:3")) == rows
    assert list(make(rows, {"only": True}, hidden=True)) == rows
    assert len(list(make(rows, {"only": True, "usual": 2}, number=1))) == 2
    rec._options, before = {}, Iterator.__next__
    probe.cached.install(Iterator)
    assert Iterator.__next__ is before


class Workers:
    """An iterator of a loader, whose workers are counted; `shut` ends them."""

    def __init__(self, loader):
        loader.started += 1
        self.loader, self.left = loader, list(loader.batches)

    def __iter__(self):
        return self

    def __next__(self):
        self.loader.fetched += 1
        if not self.left:
            raise StopIteration
        return self.left.pop(0)

    def reset(self):
        assert not self.loader.ended, "it waits for workers that are gone"

    def shut(self):
        self.loader.ended += 1


class Loader:
    def __init__(self, batches, persistent=False):
        self.batches, self.persistent, self._iterator = batches, persistent, None
        self.started = self.ended = self.fetched = 0

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        if not self.persistent:
            return Workers(self)
        if self._iterator is None:
            self._iterator = Workers(self)
        else:
            self._iterator.reset()
        return self._iterator


def unmarked(original, *_):
    def following(self):
        return original(self)

    return following


@pytest.fixture
def load(probe, rec, monkeypatch):
    """`load(wish, persistent)`: a hooked loader of the training's, of three batches."""
    again, numbers, kept = probe.again, count(), Workers.__next__
    feed = lambda: SimpleNamespace(number=next(numbers), description=SimpleNamespace(site=SITE))  # noqa: E731
    monkeypatch.setattr(again.loaders, "being_made", feed)
    monkeypatch.setattr(again.loaders, "with_fetches", unmarked)

    def made(wish, persistent=False):
        every = [{"site": SITE, "epochs": {}, "usual": None, "only": True} | (wish or {})]
        rec._options = {} if wish is None else {"cached": every}
        loader = type("Hooked", (Loader,), {"__iter__": Loader.__iter__})
        monkeypatch.setattr(Workers, "__next__", kept)  # taken back at the end
        again.install(loader, Workers, "shut", {})
        return loader([[1], [2], [3]], persistent=persistent)

    return made


@pytest.mark.parametrize("persistent", [False, True])
def test_all_epochs_of_a_loader_hand_out_the_first_batch_and_workers_are_started_once(load, persistent):
    loader = load({"usual": 3}, persistent)
    assert [list(loader) for _ in range(3)] == [[[1], [1], [1]]] * 3
    assert (loader.started, loader.ended, loader.fetched) == (1, 1, 1)
    left = load({}, persistent)
    for _ in left:
        break
    assert len(list(left)) == 3  # an epoch that the loop leaves does not shorten the next


def test_epochs_of_a_loader_are_as_long_as_they_were_else_as_it_says(load):
    loader = load({"epochs": {"0": [2], "1": [4]}})
    assert [len(list(loader)) for _ in range(3)] == [2, 4, 3]


@pytest.mark.parametrize("wish", [None, {"site": "eval.py:1"}, {"only": False, "epochs": {"5": []}}])
def test_other_loaders_hand_out_what_they_have(load, wish):
    loader = load(wish)
    assert [list(loader) for _ in range(2)] == [[[1], [2], [3]]] * 2
    assert (loader.started, loader.ended) == (2, 0)
