"""Which batches are weighed: each of slow ones, some of fast ones, fewer where all are alike."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

SECOND = 1_000_000_000


@pytest.fixture
def weighed(probe, rec, monkeypatch):
    """Sizes that were told, by position, of batches with these numbers of bytes that come so far apart."""
    told = []
    monkeypatch.setattr(type(rec), "line", lambda _self, _name, **facts: told.append(facts))

    def run(sizes, apart_ns, make=lambda size: (np.zeros(size, np.uint8),)):
        tree = probe.trees.Tree(SimpleNamespace, 3, False)
        for size in sizes:
            tree.rows += 1
            tree.last_row += apart_ns
            if tree.rows >= tree.take_at:
                probe.dataset._handed_out(tree, make(size))
        probe.dataset.weights.tell(tree)
        assert {facts["number"] for facts in told} <= {3}
        return [tuple(row) for facts in told for row in facts["rows"]]

    return run


def test_every_batch_of_slow_steps_is_weighed(weighed):
    sizes = [16, 200] * 20
    assert weighed(sizes, 100_000_000) == list(enumerate(sizes))


def test_of_fast_ones_some_fifty_a_second_are(weighed):
    assert 40 <= len(weighed([16, 200] * 500, 1_000_000)) <= 60


def test_of_equal_ones_fewer_and_fewer(weighed):
    assert len(weighed([16] * 10_000, 100_000_000)) < 1000


def test_of_a_long_training_so_many_that_a_record_stays_small(weighed, probe):
    assert len(weighed(range(30_000), 20_000_000)) < 16 * probe.dataset.weights.MOST


def test_what_takes_long_to_be_weighed_is_weighed_seldom(weighed, probe, monkeypatch):
    clock = itertools.count(step=1_000_000)  # a look takes a millisecond
    monkeypatch.setattr(probe.dataset.weights.recorder, "now", lambda: next(clock))
    found = weighed([16, 200] * 500, 10_000_000)
    assert len(found) <= 10_000 / 500 + 10  # 500 times as long, once the first rows have told the pace


def test_batches_that_do_not_say_are_not_asked_again(weighed):
    asked = []
    assert weighed([1] * 9, SECOND, make=asked.append) == []
    assert asked == [1]
