"""What other settings of a DataLoader bring: its stages take turns, in the loop or in each worker."""

from dataclasses import replace

import pytest

from pipeprof.verdict.capacity import Change, Loop, Stage, Trial
from pipeprof.verdict.options import options
from pipeprof.verdict.predict import predict
from pipeprof.verdict.tuning import candidates, limits_itself, worth_trying

MS = 1e6


def stage(op_id, op_type, work_ms, workers=0, **facts):
    alone = op_type == "Sampler"
    return Stage(
        op_id, op_type, workers=1 if alone else max(workers, 1), work_ns=work_ms * MS, chained=True, kind="wait",
        uses_processes=bool(workers) and not alone, is_python=True, node=op_id, capacity=None if op_id else 2 * workers,
        **facts,
    )  # fmt: skip


def loop(rows=80.0, own=20.0, workers=0, collate=0.0, **facts):
    """`rows` and `collate` ms of the stages, `own` ms of the training."""
    made = (rows + collate) / workers if workers else rows + collate + own
    stages = stage(0, "Collate", collate, workers), stage(1, "Dataset", rows, workers), stage(2, "Sampler", 0.0)
    facts = {"cpu_count": 4, "free_cores": 3.0, "process_cores": 1.0} | facts
    return Loop(stages, consumer=1e3 / own, rate=1e3 / max(made, own), **facts)


def of_kind(kind, whole, **facts):
    """A loop with all of its stages of one kind."""
    return replace(whole, stages=tuple(replace(one, kind=kind) for one in whole.stages), **facts)


def more(whole, workers, op_id=1):
    return predict(whole, Change(op_id, workers=workers))


SHORT = loop(rows=10.0, workers=2, restart_ns=50 * MS, epoch_batches=10.0)
LIVES_ON = Change(1, persistent=True)


@pytest.mark.parametrize(
    ("now", "wanted", "ratio", "limit"),
    [(0, 1, 100 / 80, 1), (0, 8, 100 / 20, "consumer"), (1, 2, 2.0, 1), (2, 0, 40 / 100, 1), (2, 1, 0.5, 1)],
)
def test_stages_take_turns_in_the_loop_and_run_beside_it_in_workers(now, wanted, ratio, limit):
    found = more(loop(workers=now), wanted)
    assert found.ratio == pytest.approx(ratio, rel=0.05)
    assert found.low <= found.ratio <= found.high
    assert found.limited_by == limit


def test_the_change_is_of_the_whole_loader_and_two_sides_that_are_alike_wait_for_each_other():
    both = loop(rows=40.0, collate=40.0)
    assert more(both, 2, op_id=0) == more(both, 2)
    assert more(both, 2).ratio == pytest.approx(100 / 40, rel=0.05)
    assert 60 / 25 < more(loop(rows=40.0, own=20.0), 2).ratio < 60 / 20
    slow = loop(rows=0.0)
    slow = replace(slow, stages=(*slow.stages[:2], stage(2, "Sampler", 80.0)), rate=10.0)
    assert more(slow, 4).ratio == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("kind", ["cpu", "lock_wait"])
def test_free_cores_limit_what_workers_that_compute_bring(kind):
    computing = of_kind(kind, loop())
    half = replace(computing, free_cores=0.5, cores=1.5)
    assert more(half, 4).ratio == pytest.approx(1.5, rel=0.05)
    assert more(computing, 4).ratio > 3
    none = more(replace(half, free_cores=0.0), 4)
    assert (none.ratio, none.low) == (None, pytest.approx(1.0, abs=0.05))
    assert none.high > 3
    mixed = loop(collate=1.0, free_cores=0.0)  # a short stage that computes does not make a loader compute
    stages = tuple(replace(one, kind=kind if one.op_type == "Collate" else "wait") for one in mixed.stages)
    assert more(replace(mixed, stages=stages), 2).ratio > 2


def test_threads_that_only_wait_or_other_programs_may_give_their_cores_to_workers():
    """The loop takes 1.7 cores, one of which its own thread can fill; 0.4 are idle."""
    computing = of_kind("cpu", loop(process_cores=1.7, free_cores=0.4, cores=2.1))
    found = more(computing, 2)
    assert found.high == pytest.approx(2.1 * 1.2, rel=0.02)
    assert found.low <= 2.1 / 1.7
    assert more(replace(computing, process_cores=1.0, cores=1.4), 2).high == pytest.approx(1.4 * 1.2, rel=0.02)
    # Of two cores other programs take one: what they leave idle is not all that workers get.
    computing = of_kind("cpu", loop(process_cores=0.7, free_cores=0.3, cores=2.0))
    stages = tuple(replace(one, cores=0.3 if one.op_id == 1 else 0.0) for one in computing.stages)
    computing = replace(computing, stages=stages)
    assert more(computing, 2).high == pytest.approx(100 / 40 / 0.9, rel=0.02)  # two workers make a batch in 40 ms
    assert more(replace(computing, cores=1.0), 2).high == pytest.approx(1.0 / 0.7 * 1.2, rel=0.02)


def test_workers_that_live_on_save_their_start_in_each_epoch_which_lessens_what_more_workers_gain():
    """Ten batches of 20 ms take 200 ms, and 50 more to start and to end the workers."""
    assert predict(SHORT, LIVES_ON).ratio == pytest.approx(250 / 200, rel=0.03)
    assert predict(replace(SHORT, epoch_batches=1000.0), LIVES_ON).ratio == pytest.approx(1.0, abs=0.01)
    assert predict(replace(SHORT, restart_ns=None), LIVES_ON).reason == {"code": "no_epoch_began"}
    assert more(loop(restart_ns=0.0, epoch_batches=4.0), 4).high < more(loop(), 4).low


def test_the_list_holds_what_may_pay_what_was_tried_and_no_deeper_queues():
    assert predict(loop(workers=2), Change(1, prefetch=8)).ratio == pytest.approx(1.0)
    assert more(replace(loop(workers=2), consumer=None), 4).reason == {"code": "loader_not_timed"}
    assert options(loop(cpu_count=16), 1)[0].changes == (Change(1, workers=5),)  # 4 would only just do
    assert options(SHORT, 1)[0].changes == (LIVES_ON,)
    fed = options(loop(rows=10.0, workers=2), 1)
    assert not [one for one in fed if one.may_pay and (one.prediction.ratio or 1.0) > 1.1]
    trial = Trial("whatif", "Dataset", None, {"workers": 0}, {"workers": 2}, 2.2, 2.0, 2.4)
    found = more(loop(trials=(trial,)), 2, op_id=0)
    assert (found.ratio, found.trial) == (2.2, "whatif")
    assert more(loop(workers=1, trials=(trial,)), 2, op_id=0).trial is None


def test_a_tuning_tries_a_loader_once_whatever_its_stages_and_more_workers_before_those_that_live_on():
    short = loop(workers=1, restart_ns=2 * MS, epoch_batches=10.0)
    tried = list(worth_trying(candidates(short, {}, "time"), ()))
    assert {change.op_id for one in tried for change in one.changes} == {0}
    assert len({one.key for one in tried}) == len(tried)
    first, second = tried[0].changes[0], tried[1].changes[0]
    assert (first.workers, first.persistent, second.persistent) == (second.workers, None, True)
    assert not limits_itself(short)
    assert limits_itself(loop(rows=1.0, workers=2))
    one = candidates(loop(rows=10.0, workers=4), {}, "memory")[0]  # of workers that are not needed the fewest
    assert [(change.op_id, change.workers) for change in one.changes] == [(0, 1)]


@pytest.mark.parametrize(("kind", "expected"), [("burst", [(8, True, True)]), ("wait", [])])
def test_where_rare_stalls_limit_a_loader_more_batches_ahead_are_tried(kind, expected):
    stages = tuple(replace(one, kind=kind) if one.op_id == 1 else one for one in loop(workers=2).stages)
    found = candidates(replace(loop(workers=2), stages=stages), {}, "time")
    deeper = [one for one in found if one.changes and one.changes[0].prefetch]
    assert [(one.changes[0].prefetch, one.is_unknown, one.may_pay) for one in deeper] == expected
