"""Where polls limit the threads of a source: shallow queues, and worker processes of a map behind it."""

from dataclasses import replace

import pytest

from pipeprof.verdict.capacity import Change, Loop, Stage, is_polled, poll_row_ns
from pipeprof.verdict.predict import predict
from pipeprof.verdict.tuning import candidates, worth_trying

ROWS = 8
LAW = 1e9 / (poll_row_ns(2, processes=False) * ROWS)  # batches/s
SOURCE = Stage(2, "GeneratorOp", node=2, workers=2, rate=LAW, rows=ROWS, kind="wait", is_python=True, capacity=16)
BATCH = Stage(0, "BatchOp", node=0, rate=50 * LAW, rows=1.0)
SHALLOW = "2:prefetch=2"


def loop_of(source, *others):
    return Loop(
        (BATCH, *others, source), consumer=10 * LAW, rate=0.9 * LAW, free_cores=1.5, process_cores=0.5, cpu_count=2
    )


def tried(source, *others):
    return list(worth_trying(candidates(loop_of(source, *others), {}), ()))


def test_a_polled_source_is_tried_with_shallow_queues():
    """Without a prediction where the polls hide what a row takes; else up to what its threads could make."""
    (hidden,) = (one for one in tried(SOURCE) if one.key == SHALLOW)
    assert hidden.is_unknown
    (known,) = (one for one in tried(replace(SOURCE, row_ns=4e6)) if one.key == SHALLOW)
    assert known.prediction.low == pytest.approx(1.0)
    assert known.prediction.high == pytest.approx(2e9 / (4e6 * ROWS) / LAW)
    assert [one["code"] for one in known.prediction.basis] == ["row_in_worker", "polled", "makes_meanwhile"]


@pytest.mark.parametrize(("capacity", "prefetch"), [(16, 16), (16, 64), (2, 4)])
def test_queues_that_become_no_shallower_change_nothing(capacity, prefetch):
    source = replace(SOURCE, row_ns=4e6, capacity=capacity)
    found = predict(loop_of(source), Change(2, prefetch=prefetch))
    assert found.ratio == pytest.approx(1.0)


@pytest.mark.parametrize(
    "changed",
    [{"workers": 1}, {"rate": LAW / 1.5}, {"capacity": 2}, {"uses_processes": True}],
    ids=["one worker", "slower than the polls", "shallow already", "processes"],
)
def test_others_are_not(changed):
    assert SHALLOW not in [one.key for one in tried(replace(SOURCE, **changed))]


def test_operators_that_are_about_equally_slow_are_changed_together_unless_one_does_not_scale():
    slow = Stage(1, "MapOp", node=1, rate=LAW / 4, rows=ROWS)
    reader = Stage(2, "MindRecordOp", node=2, workers=4, rate=1.05 * LAW / 4, rows=ROWS, is_python=False)
    source = replace(SOURCE, workers=1, rate=1.05 * LAW / 4, row_ns=1e9 / (1.05 * LAW / 4 * ROWS))
    assert any("+" in one.key for one in tried(source, slow))
    assert not any("+" in one.key or "2:workers=1" in one.key for one in tried(reader, slow))


def test_beside_a_source_with_worker_processes_there_are_none():
    beside = Stage(3, "GeneratorOp", node=3, workers=2, rate=40 * LAW, rows=ROWS, is_python=True, uses_processes=True)
    assert SHALLOW not in [one.key for one in tried(SOURCE, beside)]


def test_they_come_before_a_process_for_a_map_which_makes_the_source_wait_only_then():
    """The best of source_poll_map has both: deep queues take what the threads made between two polls at once."""
    light = Stage(1, "MapOp", node=1, rate=8 * LAW, rows=ROWS, kind="wait", is_python=True)
    deep, shallow = replace(SOURCE, row_ns=4e6), replace(SOURCE, row_ns=4e6, capacity=2)
    assert [one.key for one in tried(deep, light)] == [SHALLOW]
    assert [one.key for one in tried(shallow, light)][:1] == ["1:processes=True"]
    assert SHALLOW in [one.key for one in tried(deep, replace(light, uses_processes=True))]


def test_a_source_that_is_seen_to_wait_for_polls_is_polled_however_slow():
    assert is_polled(replace(SOURCE, kind="poll", rate=LAW / 2))
    assert not is_polled(replace(SOURCE, rate=LAW / 2))
    assert not is_polled(replace(SOURCE, rows=None))
