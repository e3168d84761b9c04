"""How often the queue samples of a running pipeline are saved, what a kill can cost; and which batches are weighed."""

import json
import os
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

S = 1_000_000_000


@pytest.fixture
def saves(probe, rec, monkeypatch):
    """`saves(times, call)`: seconds at which samples were saved of a pipeline whose clock says these, when it calls."""
    clock, saved = [0], []
    monkeypatch.setattr(probe.recorder, "now", lambda: clock[0])
    rec.open()
    config = SimpleNamespace(get_monitor_sampling_interval=lambda: 1000, set_monitor_sampling_interval=lambda _: None)
    manager = SimpleNamespace(init=int, start=int, stop=int, save=lambda _: saved.append(clock[0] / S))
    trees = probe.trees.Trees(manager, config, 100)
    trees.register(SimpleNamespace(number=0, rows=1, plan=lambda **_: None, alive=lambda: True))

    def run(times, still=False):
        for clock[0] in times:
            trees.still(clock[0]) if still else trees.checkpoint()
        return saved

    return run


def test_a_kill_costs_at_most_half_of_the_time_and_half_a_minute_in_the_first_five(saves):
    times = saves(range(0, 300 * S, S // 2))
    assert times[0] <= 1
    assert all(late <= 2 * early + 1 for early, late in pairwise(times))
    assert max(late - early for early, late in pairwise([*times, 300])) <= 30


def test_saves_become_rare_for_each_writes_all_samples_again(saves):
    times = saves(range(0, 6 * 3600 * S, S // 2))
    assert len(times) < 90
    assert all(late - early <= 0.08 * early + 0.5 for early, late in pairwise(times) if early > 1000)


def test_a_loop_that_stands_still_again_and_again_saves_as_rarely(saves):
    times = saves(range(S, 3600 * S, S), still=True)
    assert times[0] == 1
    assert all(late - early >= 0.08 * early for early, late in pairwise(times))


def test_a_save_takes_the_place_of_the_one_before_the_last(probe, rec):
    """Each has all samples: all of them together would fill the disk."""
    rec.open()
    trees = probe.trees.Trees(SimpleNamespace(save=lambda _folder: None), None, 100)
    trees.current = SimpleNamespace(number=0)
    for _ in range(5):
        trees._save("part")
    assert sorted(path.name for path in Path(rec.folder, "tree-0").iterdir()) == ["part-4", "part-5"]


def test_a_recorder_of_queues_that_fails_costs_no_fetch(probe, rec, mindspore):
    """It does not take any interval, for one."""
    dataset = probe.dataset
    rec._options_text = json.dumps({"service": False})

    def refuse(_interval):
        raise ValueError("Interval given is not within the required range")

    config = SimpleNamespace(get_monitor_sampling_interval=lambda: 1000, set_monitor_sampling_interval=refuse)
    dataset.TREES = probe.trees.Trees(SimpleNamespace(init=lambda: None), config, 1 << 31)
    tree, facts = dataset._before_build(type("Iterator", (), {})(), SimpleNamespace(children=[]), (), {})
    assert tree is not None
    assert facts["queues"] == "not_recorded: MindSpore's recorder of queues failed"


def test_what_mindspore_keeps_of_batches_is_taken_from_it_while_nothing_is_recorded(probe, rec):
    """After a profile of a part of a long training its iterator goes on for days."""
    dataset, taken = probe.dataset, []
    tree = SimpleNamespace(rows=0, readings_at=3, hidden=False)

    def take(one):
        taken.append(one.rows)
        one.readings_at = one.rows + 3

    dataset.TREES = SimpleNamespace(take=take)
    rec.off = True
    for pid in (os.getpid(), -1):  # a forked child has nothing to take
        rec.pid = pid
        for _ in range(7):
            assert dataset._unwatched(lambda _iterator: "row", None, tree, rec) == "row"
        assert taken == [3, 6]


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


@pytest.mark.parametrize(
    ("sizes", "apart_ms", "least", "most"),
    [
        ([16, 200] * 500, 1, 40, 60),  # of fast ones some fifty a second
        ([16] * 10_000, 100, 1, 999),  # of equal ones fewer and fewer
        (range(30_000), 20, 8_000, 9_000),  # of a long training so many that a record stays small
    ],
)
def test_some_of_many_batches_are_weighed(weighed, sizes, apart_ms, least, most):
    assert least <= len(weighed(sizes, apart_ms * 1_000_000)) <= most


def test_every_batch_of_slow_steps_is_weighed_but_those_that_do_not_say_are_not_asked_again(weighed):
    sizes, asked = [16, 200] * 20, []
    assert weighed(sizes, 100_000_000) == list(enumerate(sizes))
    assert weighed([1] * 9, S, make=asked.append) == list(enumerate(sizes))
    assert asked == [1]


def test_what_takes_long_to_be_weighed_is_weighed_seldom(weighed, probe, monkeypatch):
    clock = count(step=1_000_000)  # a look takes a millisecond
    monkeypatch.setattr(probe.dataset.weights.recorder, "now", lambda: next(clock))
    found = weighed([16, 200] * 500, 10_000_000)
    assert len(found) <= 10_000 / 500 + 10  # 500 times as long, once the first rows have told the pace
