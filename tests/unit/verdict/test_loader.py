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


@pytest.mark.parametrize(
    ("now", "wanted", "ratio", "limit"),
    [(0, 1, 100 / 80, 1), (0, 8, 100 / 20, "consumer"), (1, 2, 2.0, 1), (2, 0, 40 / 100, 1), (2, 1, 0.5, 1)],
)
def test_stages_take_turns_in_the_loop_and_run_beside_it_in_workers(now, wanted, ratio, limit):
    found = predict(loop(workers=now), Change(1, workers=wanted))
    assert found.ratio == pytest.approx(ratio, rel=0.05)
    assert found.low <= found.ratio <= found.high
    assert found.limited_by == limit


def test_the_change_is_of_the_whole_loader_whichever_stage_names_it():
    both = loop(rows=40.0, collate=40.0)
    assert predict(both, Change(0, workers=2)) == predict(both, Change(1, workers=2))
    assert predict(both, Change(1, workers=2)).ratio == pytest.approx(100 / 40, rel=0.05)


def test_two_sides_that_are_alike_wait_for_each_other():
    found = predict(loop(rows=40.0, own=20.0), Change(1, workers=2))
    assert 60 / 25 < found.ratio < 60 / 20


def test_the_order_of_rows_is_made_in_the_loop_whatever_the_workers():
    slow = loop(rows=0.0)
    slow = replace(slow, stages=(*slow.stages[:2], stage(2, "Sampler", 80.0)), rate=10.0)
    assert predict(slow, Change(1, workers=4)).ratio == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("kind", ["cpu", "lock_wait"])
def test_free_cores_limit_what_workers_that_compute_bring(kind):
    computing = loop()
    stages = tuple(replace(one, kind=kind) for one in computing.stages)
    half = replace(computing, stages=stages, free_cores=0.5, cores=1.5)
    assert predict(half, Change(1, workers=4)).ratio == pytest.approx(1.5, rel=0.05)
    assert predict(replace(computing, stages=stages), Change(1, workers=4)).ratio > 3
    none = predict(replace(half, free_cores=0.0), Change(1, workers=4))
    assert (none.ratio, none.low) == (None, pytest.approx(1.0, abs=0.05))
    assert none.high > 3


def test_threads_that_only_wait_for_work_may_give_their_cores_to_workers():
    """The loop takes 1.7 cores, one of which its own thread can fill; 0.4 are idle."""
    computing = loop(process_cores=1.7, free_cores=0.4, cores=2.1)
    stages = tuple(replace(one, kind="cpu") for one in computing.stages)
    found = predict(replace(computing, stages=stages), Change(1, workers=2))
    assert found.high == pytest.approx(2.1 * 1.2, rel=0.02)
    assert found.low <= 2.1 / 1.7
    alone = replace(computing, stages=stages, process_cores=1.0, cores=1.4)
    assert predict(alone, Change(1, workers=2)).high == pytest.approx(1.4 * 1.2, rel=0.02)


def test_beside_other_programs_more_processes_may_get_more_of_the_cores():
    """Of two cores other programs take one: what they leave idle is not all that workers get."""
    computing = loop(process_cores=0.7, free_cores=0.3, cores=2.0)
    stages = tuple(replace(one, kind="cpu", cores=0.3 if one.op_id == 1 else 0.0) for one in computing.stages)
    found = predict(replace(computing, stages=stages), Change(1, workers=2))
    assert found.high == pytest.approx(100 / 40 / 0.9, rel=0.02)  # two workers make a batch in 40 ms
    quiet = predict(replace(computing, stages=stages, cores=1.0), Change(1, workers=2))
    assert quiet.high == pytest.approx(1.0 / 0.7 * 1.2, rel=0.02)


def test_a_short_stage_that_computes_does_not_make_a_loader_compute():
    mixed = loop(collate=1.0, free_cores=0.0)
    stages = tuple(replace(one, kind="cpu" if one.op_type == "Collate" else "wait") for one in mixed.stages)
    assert predict(replace(mixed, stages=stages), Change(1, workers=2)).ratio > 2


def test_workers_that_live_on_save_their_start_in_each_epoch():
    """Ten batches of 20 ms take 200 ms, and 50 more to start and to end the workers."""
    short = loop(rows=10.0, workers=2, restart_ns=50 * MS, epoch_batches=10.0)
    assert predict(short, Change(1, persistent=True)).ratio == pytest.approx(250 / 200, rel=0.03)
    long = replace(short, epoch_batches=1000.0)
    assert predict(long, Change(1, persistent=True)).ratio == pytest.approx(1.0, abs=0.01)
    assert predict(replace(short, restart_ns=None), Change(1, persistent=True)).reason == {"code": "no_epoch_began"}


def test_what_more_workers_gain_is_less_where_each_epoch_starts_them():
    once = predict(loop(), Change(1, workers=4))
    each = predict(loop(restart_ns=0.0, epoch_batches=4.0), Change(1, workers=4))
    assert each.high < once.low


def test_deeper_queues_do_not_make_a_stage_faster_and_what_was_not_timed_is_not_predicted():
    assert predict(loop(workers=2), Change(1, prefetch=8)).ratio == pytest.approx(1.0)
    untimed = replace(loop(workers=2), consumer=None)
    assert predict(untimed, Change(1, workers=4)).reason == {"code": "loader_not_timed"}


def test_the_list_holds_what_may_pay_and_the_smallest_of_what_brings_as_much():
    best = options(loop(cpu_count=16), 1)[0]
    assert best.changes == (Change(1, workers=5),)  # 4 would only just do
    short = options(loop(rows=10.0, workers=2, restart_ns=50 * MS, epoch_batches=10.0), 1)[0]
    assert short.changes == (Change(1, persistent=True),)
    fed = loop(rows=10.0, workers=2)
    assert not [one for one in options(fed, 1) if one.may_pay and (one.prediction.ratio or 1.0) > 1.1]


def test_a_trial_of_any_stage_of_the_loader_counts_for_all():
    trial = Trial("whatif", "Dataset", None, {"workers": 0}, {"workers": 2}, 2.2, 2.0, 2.4)
    found = predict(loop(trials=(trial,)), Change(0, workers=2))
    assert (found.ratio, found.trial) == (2.2, "whatif")
    assert predict(loop(workers=1, trials=(trial,)), Change(0, workers=2)).trial is None


def test_a_tuning_tries_a_loader_once_whatever_its_stages_and_more_workers_before_those_that_live_on():
    short = loop(workers=1, restart_ns=2 * MS, epoch_batches=10.0)
    tried = list(worth_trying(candidates(short, {}, "time"), ()))
    assert {change.op_id for one in tried for change in one.changes} == {0}
    assert len({one.key for one in tried}) == len(tried)
    first, second = tried[0].changes[0], tried[1].changes[0]
    assert (first.workers, first.persistent, second.persistent) == (second.workers, None, True)
    assert not limits_itself(short)
    assert limits_itself(loop(rows=1.0, workers=2))


def test_where_rare_stalls_limit_a_loader_more_batches_ahead_are_tried():
    stages = tuple(replace(one, kind="burst") if one.op_id == 1 else one for one in loop(workers=2).stages)
    stalling = replace(loop(workers=2), stages=stages)
    found = [one for one in candidates(stalling, {}, "time") if one.changes and one.changes[0].prefetch]
    assert [(one.changes[0].prefetch, one.is_unknown, one.may_pay) for one in found] == [(8, True, True)]
    assert not [one for one in candidates(loop(workers=2), {}, "time") if one.changes and one.changes[0].prefetch]


def test_of_workers_that_are_not_needed_the_fewest_are_tried():
    (one,) = candidates(loop(rows=10.0, workers=4), {}, "memory")[:1]
    assert [(change.op_id, change.workers) for change in one.changes] == [(0, 1)]
