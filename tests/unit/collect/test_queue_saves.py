"""How often the queue samples of a running pipeline are saved: what a kill can cost."""

import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

S = 1_000_000_000


@pytest.fixture
def sampled(probe, rec, monkeypatch):
    """A pipeline's samples, a clock that the test sets, and the seconds at which they were saved."""
    clock, times = [0], []
    monkeypatch.setattr(probe.recorder, "now", lambda: clock[0])
    rec.open()
    config = SimpleNamespace(get_monitor_sampling_interval=lambda: 1000, set_monitor_sampling_interval=lambda _: None)
    manager = SimpleNamespace(
        init=lambda: None, start=lambda: None, stop=lambda: None, save=lambda _: times.append(clock[0] / S)
    )
    trees = probe.trees.Trees(manager, config, 100)
    trees.register(SimpleNamespace(number=0, rows=1, plan=lambda **_: None, alive=lambda: True))
    return trees, clock, times


@pytest.fixture
def saves(sampled):
    """`saves(600)`: seconds at which the samples of a pipeline were saved that runs for so long."""
    trees, clock, times = sampled

    def run(seconds):
        for at in range(0, seconds * S, S // 2):
            clock[0] = at
            trees.checkpoint()
        return times

    return run


def test_a_kill_costs_at_most_half_of_the_time_and_half_a_minute_in_the_first_five(saves):
    times = saves(300)
    assert times[0] <= 1
    assert all(late <= 2 * early + 1 for early, late in pairwise(times))
    assert max(late - early for early, late in pairwise([*times, 300])) <= 30


def test_saves_become_rare_for_each_writes_all_samples_again(saves):
    times = saves(6 * 3600)
    assert len(times) < 90
    assert all(late - early <= 0.08 * early + 0.5 for early, late in pairwise(times) if early > 1000)


def test_a_loop_that_stands_still_again_and_again_saves_as_rarely(sampled):
    trees, clock, saved = sampled
    for at in range(1, 3600):
        clock[0] = at * S
        trees.still(clock[0])
    assert saved[0] == 1
    assert all(late - early >= 0.08 * early for early, late in pairwise(saved))


def test_a_save_takes_the_place_of_the_one_before_the_last(probe, rec):
    """Each has all samples: all of them together would fill the disk."""
    rec.open()
    trees = probe.trees.Trees(SimpleNamespace(save=lambda _folder: None), None, 100)
    trees.current = SimpleNamespace(number=0)
    for _ in range(5):
        trees._save("part")
    folder = Path(rec.folder) / "tree-0"
    assert sorted(path.name for path in folder.iterdir()) == ["part-4", "part-5"]


def test_a_recorder_of_queues_that_fails_costs_no_fetch(probe, rec, monkeypatch):
    """It does not take any interval, for one."""
    dataset = probe.dataset
    rec._options_text = json.dumps({"service": False})
    monkeypatch.setitem(sys.modules, "mindspore", SimpleNamespace(__file__="/nowhere/mindspore/__init__.py"))

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
    rec.off, rec.pid = True, os.getpid()
    for _ in range(7):
        assert dataset._unwatched(lambda _iterator: "row", None, tree, rec) == "row"
    assert taken == [3, 6]
    rec.pid = -1  # a forked child has nothing to take
    for _ in range(7):
        dataset._unwatched(lambda _iterator: "row", None, tree, rec)
    assert taken == [3, 6]
