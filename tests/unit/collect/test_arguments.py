"""A DataLoader is made with other arguments where it is the one that is meant; the others, and what is refused, as written."""

from importlib import import_module

import pytest


class Loader:
    """Takes its arguments as PyTorch's and MindSpore's do, and refuses what they refuse."""

    def __init__(
        self, dataset, batch_size=1, num_workers=0, collate_fn=None, *, prefetch_factor=None, persistent_workers=False
    ):
        if not num_workers and (prefetch_factor is not None or persistent_workers):
            raise ValueError("needs num_workers > 0")
        self.made = (dataset, batch_size, collate_fn)
        self.num_workers, self.persistent_workers = num_workers, persistent_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor


@pytest.fixture
def make(probe, rec, monkeypatch):
    """`make(wish, *arguments)`: a loader made where the wish says, and the events."""
    told = []
    monkeypatch.setattr(rec, "event", lambda name, **fields: told.append((name, fields)))
    module = import_module(f"{probe.package.__name__}.arguments")
    monkeypatch.setattr(module.where, "site", lambda _frame: "train.py:7")
    original = Loader.__init__

    def made(wish, *args, **kwargs):
        rec._options = {"override": wish and {"loader": True, "site": "train.py:7"} | wish}
        module.install(Loader)
        try:
            return Loader(*args, **kwargs), told
        finally:
            Loader.__init__ = original

    return made


def settings(loader):
    return loader.num_workers, loader.prefetch_factor, loader.persistent_workers


@pytest.mark.parametrize(("args", "kwargs"), [(([1], 4, 1), {}), (([1], 4), {"num_workers": 1})])
def test_arguments_are_replaced_wherever_the_script_writes_them(make, args, kwargs):
    loader, told = make({"workers": 3, "prefetch": 5, "persistent": True}, *args, **kwargs)
    assert settings(loader) == (3, 5, True)
    assert loader.made == ([1], 4, None)
    before, after = (told[0][1][side] for side in ("before", "after"))
    assert [name for name, _ in told] == ["override"]
    assert before == {"workers": 1, "prefetch": None, "persistent": False}
    assert after == {"workers": 3, "prefetch": 5, "persistent": True}


def test_what_a_tuning_sets_is_told_with_the_stage_that_stands_for_the_loader(make):
    loader, told = make({"changes": [{"node": 0, "workers": 2, "prefetch": None, "persistent": True}]}, [1], 4)
    assert settings(loader) == (2, 2, True)
    assert told[0] == (
        "override",
        {"node": 0, "before": {"workers": 0, "persistent": False}, "after": {"workers": 2, "persistent": True}},
    )


def test_without_workers_nothing_is_left_of_what_needs_them(make):
    loader, _ = make({"workers": 0}, [1], num_workers=2, prefetch_factor=4, persistent_workers=True)
    assert settings(loader) == (0, None, False)


def test_what_the_library_refuses_is_not_done_and_said(make):
    loader, told = make({"persistent": True}, [1])
    assert settings(loader) == (0, None, False)
    assert told == [("override_missed", {"why": "ValueError: needs num_workers > 0"})]


@pytest.mark.parametrize("wish", [None, {"site": "other.py:1", "workers": 2}])
def test_another_loader_stays_as_it_is(make, wish):
    loader, told = make(wish, [1], 8)
    assert (settings(loader), loader.made, told) == ((0, None, False), ([1], 8, None), [])


def test_a_wrong_call_fails_as_without_us(make):
    with pytest.raises(TypeError, match="batches"):
        make({"workers": 2}, [1], batches=3)


def test_without_a_wish_the_class_is_not_hooked(probe, rec):
    original = Loader.__init__
    rec._options = {"override": {"workers": 2, "site": "train.py:7"}}  # of an operator
    import_module(f"{probe.package.__name__}.arguments").install(Loader)
    assert Loader.__init__ is original
