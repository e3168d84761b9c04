"""Fingerprints of the first batches: equal for equal batches, different for anything that the network would see."""

from __future__ import annotations

import hashlib
import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def digest(probe):
    return import_module(f"{probe.package.__name__}.digest")


@pytest.fixture
def seeds(monkeypatch):
    """The seeds that MindSpore's dataset is given; it has its own one until somebody sets one."""
    import sys

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
    "other",
    [
        [ROW[0].reshape(3, 2), ROW[1]],
        [ROW[0].astype(np.float64), ROW[1]],
        [ROW[0][::-1], ROW[1]],
        [ROW[0], ROW[1][::-1]],
        [ROW[1], ROW[0]],
        [ROW[0]],
        {"x": ROW[0], "y": ROW[1]},
    ],
)
def test_other_batches_have_other_fingerprints(digest, other):
    assert of(digest, other) != of(digest, ROW)


def test_equal_batches_have_equal_ones_whatever_holds_them(digest):
    class Tensor:
        def __init__(self, array):
            self.array = array

        def asnumpy(self):
            return self.array

    assert of(digest, [Tensor(part) for part in ROW]) == of(digest, tuple(np.array(part) for part in ROW))
    assert of(digest, {"b": ROW[1], "a": ROW[0]}) == of(digest, {"a": ROW[0], "b": ROW[1]})


def test_only_the_first_batches_of_the_users_iterators_are_looked_at(digest, rec, seeds):
    rec._options = {"digest": 2}
    assert digest.begin(0, "train.py:3", True) is None
    found = digest.begin(1, "train.py:7", False)
    for _ in range(5):
        found.add(ROW)
    rec.flush()
    lines = [json.loads(line) for line in (Path(rec.folder) / "events.jsonl").read_text().splitlines()]
    told = [line for line in lines if line["e"] == "batch_digest"]
    assert [(line["number"], line["row"], line["site"]) for line in told] == [
        (1, 0, "train.py:7"),
        (1, 1, "train.py:7"),
    ]
    assert told[0]["digest"] == told[1]["digest"] == of(digest, ROW)


def test_a_second_epoch_is_looked_at_however_many_other_iterators_there_are(digest, rec, seeds):
    """A cache hands out what it kept from the second epoch on, of this iterator or of another one."""
    rec._options = {"digest": 1}
    train = digest.begin(0, "train.py:7", False)
    for number in range(1, 10):
        digest.begin(number, "train.py:20", False)  # evaluations
    for _ in range(3):
        train.add(ROW)
        train.epoch_ended()
    assert digest.begin(10, "train.py:7", False) is not None
    rec.flush()
    lines = [json.loads(line) for line in (Path(rec.folder) / "events.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines if line["e"] == "batch_digest"] == [0, 1]


def test_a_dataset_without_a_seed_gets_one_once(digest, rec, seeds):
    rec._options = {"digest": 2}
    for number in range(3):
        digest.begin(number, "train.py:7", False)
    assert seeds == [digest.SEED]


def test_the_users_own_seed_stays(digest, rec, seeds):
    seeds.append(77)
    rec._options = {"digest": 2}
    digest.begin(0, "train.py:7", False)
    assert seeds == [77]


def test_nothing_is_done_where_nothing_was_asked_for(digest, rec, seeds):
    rec._options = {}
    assert digest.begin(0, "train.py:7", False) is None
    assert seeds == []
