"""A DataLoader that hands out its first batch for ever: one set of workers is started, and ended behind that batch."""

from importlib import import_module
from itertools import count
from types import SimpleNamespace

import pytest

SITE = "train.py:7"


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
def make(probe, rec, monkeypatch):
    """`make(wish, batches)`: a hooked loader of the training's."""
    again = import_module(f"{probe.package.__name__}.again")
    numbers = count()
    monkeypatch.setattr(
        again.loaders,
        "being_made",
        lambda: SimpleNamespace(number=next(numbers), description=SimpleNamespace(site=SITE)),
    )
    monkeypatch.setattr(again.loaders, "with_fetches", unmarked)

    def made(wish, *args, **more):
        rec._options = (
            {"cached": [{"site": SITE, "epochs": {}, "usual": None, "only": True} | wish]} if wish is not None else {}
        )
        loader = type("Hooked", (Loader,), {"__iter__": Loader.__iter__})
        kept = Workers.__next__
        monkeypatch.setattr(Workers, "__next__", kept)  # taken back at the end
        again.install(loader, Workers, "shut", {})
        return loader(*args, **more)

    return made


@pytest.mark.parametrize("persistent", [False, True])
def test_all_epochs_hand_out_the_first_batch_and_workers_are_started_once(make, persistent):
    loader = make({"usual": 3}, [[1], [2], [3]], persistent=persistent)
    assert [list(loader) for _ in range(3)] == [[[1], [1], [1]]] * 3
    assert (loader.started, loader.ended, loader.fetched) == (1, 1, 1)


def test_epochs_are_as_long_as_they_were_else_as_the_loader_says(make):
    loader = make({"epochs": {"0": [2], "1": [4]}}, [[1], [2], [3]])
    assert [len(list(loader)) for _ in range(3)] == [2, 4, 3]


@pytest.mark.parametrize("persistent", [False, True])
def test_an_epoch_that_the_loop_leaves_does_not_shorten_the_next(make, persistent):
    loader = make({}, [[1], [2], [3]], persistent=persistent)
    for _ in loader:
        break
    assert len(list(loader)) == 3


@pytest.mark.parametrize("wish", [None, {"site": "eval.py:1"}, {"only": False, "epochs": {"5": []}}])
def test_other_loaders_hand_out_what_they_have(make, wish):
    loader = make(wish, [[1], [2]])
    assert [list(loader) for _ in range(2)] == [[[1], [2]]] * 2
    assert (loader.started, loader.ended) == (2, 0)
