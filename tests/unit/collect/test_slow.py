"""The planted slow-down: the share of each step that it sleeps, and that nothing happens without it."""

from importlib import import_module

import pytest

MS = 1_000_000


@pytest.fixture
def slow(probe, rec, monkeypatch):
    """The module, a clock that only sleeping and looking move on, and the sleeps."""
    module = import_module("_pipeprof_probe.slow")
    module.clock, module.sleeps = [0], []

    def now():
        module.clock[0] += 1_000
        return module.clock[0]

    def sleep(seconds):
        module.sleeps.append(seconds)
        module.clock[0] += int(seconds * 1e9)

    monkeypatch.setattr(probe.recorder, "now", now)
    monkeypatch.setattr(module.time, "sleep", sleep)
    rec.open = lambda: None
    return module


def steps(module, lengths, share=0.1):
    """How much longer each step became, ns."""
    done = []
    planted = module.Slow(share, lambda: done.append(1))
    added = []
    for length in lengths:
        module.clock[0] += length
        before = module.clock[0]
        planted()
        added.append(module.clock[0] - before)
    assert len(done) == len(lengths)
    return added


def test_each_step_takes_its_share_longer(slow):
    added = steps(slow, [10 * MS] * 20)
    assert added[0] < MS // 10  # nothing is known of the first
    assert added[1:] == pytest.approx([MS] * 19, rel=0.02)
    assert len(slow.sleeps) == 19


def test_short_steps_are_waited_for_awake(slow):
    added = steps(slow, [MS] * 10)
    assert slow.sleeps == []
    assert added[1:] == pytest.approx([MS // 10] * 9, rel=0.1)


def test_an_evaluation_between_two_steps_is_no_long_step(slow):
    added = steps(slow, [10 * MS] * 5 + [5000 * MS] + [10 * MS] * 5)
    assert max(added) <= 4.2 * MS
    assert added[-1] == pytest.approx(MS, rel=0.2) or added[-1] < 2 * MS


def test_the_run_says_that_it_was_slowed_down(slow, probe):
    told = []
    probe.recorder.REC.warn = lambda code, message: told.append((code, message))
    steps(slow, [MS] * 3, share=0.05)
    assert told == [("slow_down", "on purpose, every step took 5 % longer")]


def test_a_failure_is_silent(slow, probe, monkeypatch):
    failed = []
    probe.recorder.REC.failed = failed.append
    monkeypatch.setattr(slow.time, "sleep", lambda _seconds: 1 / 0)
    steps(slow, [10 * MS] * 3)
    assert failed == ["slow_down"] * 2


def test_nothing_is_replaced_without_the_wish(probe, rec):
    rec._options = {}
    probe.steps._change_steps(rec)
    assert "step_done" not in vars(probe.windows.WINDOWS)


def test_the_wish_replaces_what_counts_the_steps(probe, rec):
    rec._options = {"slow_down": 0.05}
    probe.steps._change_steps(rec)
    assert probe.windows.WINDOWS.step_done.share == 0.05
    rec._options = {"slow_down": "much"}
    failed = []
    rec.failed = failed.append
    probe.steps._change_steps(rec)
    assert failed == ["slow_down"]
