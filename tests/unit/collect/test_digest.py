"""Fingerprints of the first batches: equal for equal batches, different for anything that the network would see."""

import contextlib
import hashlib
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def digest(probe):
    return probe.digest


@pytest.fixture
def seeds(monkeypatch):
    """The seeds that MindSpore's dataset is given; it has its own one until somebody sets one."""
    given = []
    config = SimpleNamespace(get_seed=lambda: given[-1] if given else 5489, set_seed=given.append)
    monkeypatch.setitem(sys.modules, "mindspore.dataset", SimpleNamespace(config=config))
    return given


def of(digest, value):
    state = hashlib.blake2b(digest_size=16)
    digest.feed(state, value)
    return state.hexdigest()


ROW = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 2], np.int32)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ROW, [ROW[0].reshape(3, 2), ROW[1]]),
        (ROW, [ROW[0].astype(np.float64), ROW[1]]),
        (ROW, [ROW[0][::-1], ROW[1]]),
        (ROW, [ROW[0], ROW[1][::-1]]),
        (ROW, [ROW[1], ROW[0]]),
        (ROW, [ROW[0]]),
        (ROW, {"x": ROW[0], "y": ROW[1]}),
        # Values that are no arrays are told apart by where they stand.
        ([1, 11], [11, 1]),
        ([[1, 2], [3]], [[1], [2, 3]]),
        ([{"a": 1}, {"b": 2}], [{"a": 1, "b": 2}, {}]),
    ],
)
def test_other_batches_have_other_fingerprints(digest, one, other):
    assert of(digest, one) != of(digest, other)


class Tensor:
    """Of MindSpore or PyTorch: an array for NumPy, where NumPy has such numbers."""

    def __init__(self, array, is_known=True):
        self.array, self.is_known = array, is_known
        self.shape = array.shape

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        if not self.is_known:
            raise TypeError("BFloat16")
        return self.array

    def double(self):
        return Tensor(self.array.astype(np.float64))


def test_equal_batches_have_equal_ones_whatever_holds_them(digest):
    class OfMindSpore:
        def __init__(self, array):
            self.asnumpy = lambda: array

    array = ROW[0]
    assert of(digest, [OfMindSpore(part) for part in ROW]) == of(digest, tuple(np.array(part) for part in ROW))
    assert of(digest, {"b": ROW[1], "a": array}) == of(digest, {"a": array, "b": ROW[1]})
    assert of(digest, Tensor(array)) == of(digest, array)
    assert of(digest, Tensor(array, is_known=False)) == of(digest, array.astype(np.float64))
    assert [[value.tolist() for value in row] for row in digest.rows_of([Tensor(array)])] == [[[0, 1, 2]], [[3, 4, 5]]]


def test_only_the_first_batches_of_the_users_iterators_are_looked_at(digest, rec, seeds, told):
    rec._options = {"digest": 2}
    assert digest.begin(0, "train.py:3", True) is None
    found = digest.begin(1, "train.py:7", False)
    for _ in range(5):
        found.add(ROW)
    one, other = told("batch_digest")
    assert [(line["number"], line["row"], line["site"]) for line in (one, other)] == [
        (1, 0, "train.py:7"), (1, 1, "train.py:7"),
    ]  # fmt: skip
    assert one["digest"] == other["digest"] == of(digest, ROW)


def test_a_second_epoch_is_looked_at_however_many_other_iterators_there_are(digest, rec, seeds, told):
    """A cache hands out what it kept from the second epoch on, of this iterator or of another one."""
    rec._options = {"digest": 1}
    train = digest.begin(0, "train.py:7", False)
    for number in range(1, 10):
        digest.begin(number, "train.py:20", False)  # evaluations
    for _ in range(3):
        train.add(ROW)
        train.epoch_ended()
    assert digest.begin(10, "train.py:7", False) is not None
    assert [line["epoch"] for line in told("batch_digest")] == [0, 1]


@pytest.mark.parametrize(
    ("options", "before", "after"), [({"digest": 2}, [], ["SEED"]), ({"digest": 2}, [77], [77]), ({}, [], [])]
)
def test_a_dataset_without_a_seed_gets_one_once_where_that_was_asked_for(digest, rec, seeds, options, before, after):
    seeds += before
    rec._options = options
    found = [digest.begin(number, "train.py:7", False) for number in range(3)]
    assert seeds == [digest.SEED if one == "SEED" else one for one in after]
    assert options or found == [None] * 3


@pytest.fixture
def epochs(rec, told):
    """What was told of each epoch, with the next marks at the latest."""

    def of():
        rec.flush()
        return told("epoch_digest")

    return of


@pytest.fixture
def watched(digest, rec, seeds):
    """An iterator of which all is looked at: `watched(epoch, ...)` with the batches of each of its epochs."""
    rec._options = {"digest_all": True}

    def run(*rounds, ended=True):
        found = digest.begin(0, "train.py:7", False)
        for batches in rounds:
            for batch in batches:
                found.add(batch)
            if ended:
                found.epoch_ended()
        return found

    return run


def batch_of(*numbers):
    return [np.array(numbers, np.float32), np.array(numbers, np.int32) % 2]


def test_whole_epochs_have_the_same_sum_in_any_order_and_with_any_batches(watched, epochs):
    watched([batch_of(1, 2), batch_of(3, 4)], [batch_of(4, 1), batch_of(2, 3)], [batch_of(1, 2, 3), batch_of(4)])
    first, permuted, regrouped = epochs()
    assert first["sum"] == permuted["sum"] == regrouped["sum"]
    assert (first["rows"], first["batches"], first["epoch"], first["whole"]) == (4, 2, 0, True)
    assert len({one["ordered"] for one in (first, permuted, regrouped)}) == 3


@pytest.mark.parametrize(
    "other",
    [
        [batch_of(1, 2), batch_of(3)],
        [batch_of(1, 2), batch_of(3, 3)],
        [batch_of(1, 1), batch_of(3, 3)],
        [[np.array([1, 2], np.float32), np.array([0, 1], np.int32)], batch_of(3, 4)],  # labels change their rows
        [[part.astype(np.float64) for part in batch_of(1, 2)], batch_of(3, 4)],
    ],
)
def test_other_rows_have_another_sum(watched, other, epochs):
    watched([batch_of(1, 2), batch_of(3, 4)], other)
    first, second = epochs()
    assert first["sum"] != second["sum"]


def test_each_column_has_its_own_fingerprints(watched, epochs):
    noise = [[np.array([7, 8], np.float32), np.array([1, 0], np.int32)], batch_of(3, 4)]
    watched([batch_of(1, 2), batch_of(3, 4)], noise)
    (picture, label), (other, same) = (one["columns"] for one in epochs())
    assert label == same
    assert [picture[name] == other[name] for name in ("name", "form", "sum", "ordered")] == [True, True, False, False]
    assert len(picture["least"]) == 4
    assert len(label["least"]) == 2
    assert picture["least"] == sorted(picture["least"])


def test_columns_of_dicts_have_their_names_and_an_epoch_that_was_left_is_told_at_the_end(watched, rec, epochs):
    batches = [{"label": np.ones(2), "image": np.ones((2, 3))}, {"label": np.ones(1), "image": np.ones((1, 3))}]
    watched(batches, ended=False)
    for call in rec.closing:
        call()
    (one,) = epochs()
    assert [column["name"] for column in one["columns"]] == ["image", "label"]
    assert (one["whole"], one["batches"], one["rows"]) == (False, 2, 3)


@pytest.mark.parametrize(("set_before", "given"), [([], 2), ([77], 2), ([2], 1)])
def test_other_seeds_are_given_to_all_that_draw(digest, rec, seeds, set_before, given):
    seeds += set_before
    rec._options = {"digest_all": True, "other_seed": True}
    drawn = []
    for begins in (False, True):
        random.seed(5)
        np.random.seed(5)  # noqa: NPY002 - what scripts use
        if begins:
            digest.begin(0, "train.py:7", False)
        drawn.append((random.random(), np.random.rand()))  # noqa: NPY002, S311
    assert seeds[-1] == given
    assert all(one != other for one, other in zip(*drawn, strict=True))


def test_an_epoch_with_a_batch_that_cannot_be_read_is_not_told(watched, epochs):
    """Nor is it the same as another one of which nothing was read."""
    broken = SimpleNamespace(asnumpy=lambda: int("bfloat16"))
    found = watched([batch_of(1, 2)])
    for batch in (batch_of(3, 4), [broken], batch_of(5, 6)):
        with contextlib.suppress(ValueError):
            found.add(batch)
    found.epoch_ended()
    found.add(batch_of(7, 8))
    found.epoch_ended()
    assert [(one["epoch"], one["batches"]) for one in epochs()] == [(0, 1), (2, 1)]


def test_a_batch_with_keys_is_a_dict_and_a_single_array_a_column(digest):
    keyed = type(
        "Encoding", (), {"keys": lambda _self: ["ids"], "__getitem__": lambda _self, name: {"ids": ROW[1]}[name]}
    )
    assert digest.columns_of(keyed()) == {"ids": ROW[1]}
    assert digest.columns_of(ROW[1]) == [ROW[1]]
    assert digest.columns_of(ROW) is ROW


def test_the_generators_of_the_process_begin_anew_at_the_first_iterator_of_a_loader(digest, rec, seeds):
    drawn = []
    for options in ({"digest": 2}, {"digest": 2}, {"digest_all": True, "other_seed": True}):
        digest._begun.clear()
        rec._options = options
        assert digest.begin(0, "train.py:1", hidden=False, of_loader=True) is not None
        drawn.append((random.random(), np.random.random()))  # noqa: NPY002, S311
    assert drawn[0] == drawn[1] != drawn[2]
    assert seeds == []  # of MindSpore's dataset


def test_a_generator_that_a_loader_makes_itself_gets_a_seed_and_that_of_the_script_stays(digest, rec):
    class Loader:
        def __init__(self, rows, generator=None):
            self.rows = rows
            self.generator = np.random.default_rng() if generator is None else generator

    rec._options = {"digest_all": True}
    digest.install(Loader)
    assert Loader([1]).generator.random() == Loader([1], None).generator.random()
    assert Loader([1], np.random.default_rng(7)).generator.random() == np.random.default_rng(7).random()
    with pytest.raises(TypeError, match="batches"):
        Loader([1], batches=3)


def test_an_epoch_that_a_loop_left_is_told_when_it_begins_again(digest, rec, seeds, epochs):
    rec._options = {"digest_all": True}
    found = digest.begin(0, "train.py:1", hidden=False, of_loader=True)
    found.epoch_left()
    for batch in (batch_of(1, 2), batch_of(3, 4)):
        found.add(batch)
    found.epoch_left()
    found.add(batch_of(1, 2))
    found.epoch_ended()
    assert [(one["epoch"], one["whole"], one["batches"]) for one in epochs()] == [(0, False, 2), (1, True, 1)]


@pytest.mark.parametrize(
    "batch", [[np.float32(3.0)], [np.ones(3), np.ones(4)], [{"a": 1}], {"x": np.ones(2), "n": "a name"}]
)
def test_a_batch_that_has_no_rows_counts_as_one(digest, batch):
    assert digest.rows_of(batch) == [batch]
