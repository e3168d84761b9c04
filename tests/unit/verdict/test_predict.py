"""What a change of the pipeline would buy: the formulas, their limits, and what must hold for any pipeline."""

import dataclasses
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typed_rows import of_dicts

from pipeprof.verdict import loop as measured
from pipeprof.verdict.capacity import Change, Loop, Stage, poll_row_ns
from pipeprof.verdict.predict import MARGIN, WIDEST, predict
from pipeprof.verdict.tuning import candidates
from pipeprof.verdict.workers import enough_workers

loop_of = of_dicts(measured.loop_of)

MS = 1e6


def op(op_id, op_type="MapOp", workers=1, rate=100.0, **facts):
    return Stage(op_id=op_id, op_type=op_type, workers=workers, work_ns=workers * 1e9 / rate, rate=rate, **facts)


def source(op_id=9, workers=1, row_ms=1.0, rows=8, **facts):
    row = max(row_ms * MS / workers, poll_row_ns(workers, processes=facts.get("uses_processes", False)))
    return op(op_id, "GeneratorOp", workers, 1e9 / (row * rows), rows=rows, **{"row_ns": row_ms * MS} | facts)


def loop(*stages, consumer=1000.0, cores=8, free=6.0, **facts):
    lowest = min([stage.rate for stage in stages if stage.rate] + ([consumer] if consumer else []))
    return Loop(stages, consumer, **{"rate": lowest, "free_cores": free, "cpu_count": cores} | facts)


def test_a_waiting_map_scales_with_its_workers():
    found = predict(loop(op(0, "BatchOp", rate=900.0), op(1, rate=20.0)), Change(1, workers=2))
    assert found.ratio == pytest.approx(2.0)
    assert (found.low, found.high) == pytest.approx((2 * (1 - MARGIN), 2 * (1 + MARGIN)))
    assert found.limited_by == 1


@pytest.mark.parametrize(
    ("consumer", "other", "ratio", "limit"), [(30.0, 900.0, 1.5, "consumer"), (900.0, 25.0, 1.25, 0)]
)
def test_the_next_slowest_limits_the_gain(consumer, other, ratio, limit):
    found = predict(loop(op(0, rate=other), op(1, rate=20.0), consumer=consumer), Change(1, workers=4))
    assert found.ratio == pytest.approx(ratio)
    assert found.limited_by == limit


def test_an_operator_that_is_not_the_slowest_buys_nothing():
    assert predict(loop(op(0, rate=10.0), op(1, rate=20.0)), Change(1, workers=4)).ratio == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("row_ms", "ratio"),
    [(0.01, 0.0032), (1.0, 0.32), (2.0, 0.64), (4.0, 1.28), (8.0, 2.0)],  # 100 / 32 = 3.125 ms for a row with 2 workers
)
def test_threads_of_a_source_obey_the_poll_law(row_ms, ratio):
    found = predict(loop(source(row_ms=row_ms), consumer=1e6), Change(9, workers=2, processes=False))
    assert found.ratio == pytest.approx(ratio)


def test_processes_of_a_source_poll_more_rarely_with_a_larger_prefetch():
    assert poll_row_ns(2, processes=True) / MS == pytest.approx(100 / 32)
    assert poll_row_ns(8, processes=True) / MS == pytest.approx(100 / 64)
    assert poll_row_ns(2, processes=True, prefetch=64) / MS == pytest.approx(100 / 128)
    assert poll_row_ns(1, processes=True) == 0.0
    slow = source(workers=2, row_ms=0.5, uses_processes=True)
    assert predict(loop(slow, consumer=1e6), Change(9, prefetch=64)).ratio == pytest.approx(4.0)


def test_a_prefetch_size_is_of_all_operators():
    """Worker processes of a source keep no more rows than the queues: shallow ones slow it down, whatever is asked."""
    beside = source(8, workers=2, row_ms=4.0, uses_processes=True, capacity=16)
    slow = op(1, rate=20.0)  # limits, until the source polls for each second row: 5 batches/s
    found = predict(loop(slow, beside, consumer=1e6), Change(1, prefetch=2))
    assert found.ratio == pytest.approx(0.25)
    assert predict(loop(slow, beside, consumer=1e6), Change(1, prefetch=16)).ratio == pytest.approx(1.0)


def test_the_polls_of_a_source_are_those_of_its_own_queue():
    """8 processes that keep 64 rows: 1,280 rows/s, where 16 would be 640."""
    deep = op(9, "GeneratorOp", 8, rate=60.0, rows=32, uses_processes=True, capacity=64)
    found = predict(loop(op(1, rate=25.0), deep, consumer=200.0), Change(1, workers=2))
    assert found.ratio == pytest.approx(2.0)


def test_every_source_with_two_workers_is_capped():
    other = op(8, "GeneratorOp", 2, rate=500.0, rows=8)  # its lines say 500, the polls let 40 through
    found = predict(loop(op(0, rate=20.0), other, rate=20.0), Change(0, workers=8))
    assert found.ratio == pytest.approx(2.0)
    assert found.limited_by == 8


def test_back_to_one_worker_needs_the_hidden_row_time():
    hidden = source(workers=2, row_ms=0.1, row_ns=None)
    found = predict(loop(hidden, consumer=1e6), Change(9, workers=1))
    assert found.ratio is None
    assert found.reason == {"code": "row_hidden"}
    assert predict(loop(source(workers=2, row_ms=0.1), consumer=1e6), Change(9, workers=1)).ratio == pytest.approx(
        31.25
    )


def test_the_gil_makes_threads_useless():
    held = op(1, rate=20.0, kind="gil")
    assert predict(loop(held), Change(1, workers=4)).ratio == pytest.approx(1.0)


def test_a_computing_operator_gets_an_interval_from_the_free_cores():
    busy = op(1, rate=20.0, cores=1.0, utilisation=1.0, kind="cpu")
    found = predict(loop(busy, cores=4, free=1.5, process_cores=2.0), Change(1, workers=3))
    assert (found.low, found.high) == pytest.approx((1.75 * 0.8, 1.75 * 1.2))
    assert found.low <= found.ratio <= found.high


def test_an_interval_that_is_too_wide_is_no_prediction():
    busy = op(1, rate=20.0, kind="cpu")  # how much of the machine it takes is not known
    found = predict(loop(busy, cores=4, free=0.5), Change(1, workers=4))
    assert found.ratio is None
    assert (found.low, found.high) == pytest.approx((1.0, 4.0))
    assert found.reason == {"code": "too_wide"}


def test_a_busy_machine_does_not_hinder_who_waits_or_gives_up_workers():
    waits = op(1, rate=20.0, kind="wait")
    assert predict(loop(waits, free=0.1), Change(1, workers=2)).ratio == pytest.approx(2.0)
    busy = op(1, workers=2, rate=20.0, kind="cpu")
    found = predict(loop(busy, free=0.1), Change(1, workers=1))
    assert (found.low, found.high) == pytest.approx((0.5, 0.6))


@pytest.mark.parametrize(("gil_share", "low"), [(0.05, 1.6), (0.6, 1.0), (None, 1.0)])
def test_threads_of_python_that_leaves_the_lock_alone_scale(gil_share, low):
    sorts = op(1, rate=20.0, cores=1.0, utilisation=1.0, is_python=True, kind="cpu")
    found = predict(loop(sorts, cores=4, free=2.0, process_cores=1.0, gil_share=gil_share), Change(1, workers=2))
    assert (found.low, found.high) == pytest.approx((low, 2.0))


@pytest.mark.parametrize(
    ("kind", "change", "low", "high"),
    [
        ("cpu", Change(1, processes=False), 0.8, 1.28),
        ("cpu", Change(1, workers=2, processes=False), 0.8, 2.57),
        ("wait", Change(1, processes=False), 1.0, 1.28),
        ("wait", Change(1, workers=2, processes=False), 2.0, 2.57),
    ],
)
def test_rows_that_stay_in_the_process_take_the_time_of_the_function(kind, change, low, high):
    """RandAugment of mindcv, 16 rows of 224 x 224 a batch: 33.5 ms in a worker process, of which 26.1 in the function.

    Measured: one thread x1.34, two threads x1.50 of one process, on two cores whose loop could take x2.8.
    """
    computes = {"cores": 0.77, "utilisation": 0.95, "is_python": True, "uses_processes": True, "kind": kind}
    augments = op(1, rate=29.85, row_ns=1.634e6, rows=16.0, **computes)
    found = predict(loop(augments, consumer=1e6, cores=4, free=3.0, process_cores=1.0), change)
    assert (found.low, found.high) == pytest.approx((low, high), rel=0.02)


def test_python_that_waited_for_the_lock_is_not_known_once_it_is_free():
    held = op(1, rate=20.0, cores=1.0, is_python=True, kind="gil")
    waits = op(2, rate=21.0, is_python=True, kind="wait")
    found = predict(loop(held, waits), Change(1, workers=2, processes=True))
    assert found.ratio is None
    assert (found.low, found.high) == pytest.approx((1.0, 2.0))
    assert predict(loop(held, dataclasses.replace(waits, is_python=False)), Change(1, 2, processes=True)).high < 1.3


@pytest.mark.parametrize(
    ("facts", "gil_share", "high"),
    [
        ({"kind": "gil", "cores": 0.56}, 0.30, 53.3 / 48),
        ({"kind": "cpu", "cores": 0.35}, 0.30, 53.3 / 48),
        ({"kind": "cpu", "cores": 0.35}, 0.20, 1.0),
        ({"kind": "cpu", "cores": 0.25}, 0.30, 1.0),
    ],
)
def test_threads_of_worker_processes_wait_for_the_lock_that_another_map_holds(facts, gil_share, high):
    """A map of 2 ms of Python before one of 4 ms in two processes, 8 rows a batch: its own process brought x1.10."""
    freed = op(1, workers=2, rate=48.0, rows=8, uses_processes=True, is_python=True, kind="cpu", row_ns=4.69e6)
    holds = op(2, rate=54.0, rows=8, is_python=True, **facts)
    found = predict(loop(freed, holds, op(9, rate=58.0), gil_share=gil_share, rate=37.5), Change(2, processes=True))
    assert found.high == pytest.approx(high, rel=0.01)


def test_rows_that_go_to_a_process_make_a_polled_source_wait_to_hand_them_on():
    """2 ms a row in two threads: 40 batches/s while they are polled, 125 if they never were. Measured: x1.3."""
    light = op(1, rate=300.0, rows=8, is_python=True)
    polled, change = source(workers=2, row_ms=2.0, capacity=2), Change(1, processes=True)
    found = predict(loop(light, polled), change)
    assert (found.ratio, found.low, found.reason) == (None, 1.0, {"code": "polled_less"})
    assert found.high == pytest.approx(125 / 40)
    others = source(row_ms=2.0, capacity=2), source(workers=2, row_ms=9.0, capacity=2), replace(polled, capacity=16)
    for other in (*others, source(workers=2, row_ms=2.0, capacity=2, uses_processes=True)):
        assert predict(loop(light, other), change).high == pytest.approx(1.1)
    assert predict(loop(replace(light, uses_processes=True), polled), change).high == pytest.approx(1.1)
    assert predict(loop(light, polled), Change(1, workers=2, processes=True)).high == pytest.approx(1.1)
    assert predict(loop(op(1, rate=35.0, rows=8, is_python=True), polled), change).high < 1.2


@pytest.mark.parametrize(("cores", "known"), [(0.05, True), (0.5, False), (None, False)])
def test_an_untimed_batch_that_hardly_computes_is_no_unknown(cores, known):
    batch = Stage(op_id=0, op_type="BatchOp", cores=cores)
    found = predict(loop(batch, op(1, rate=20.0)), Change(1, workers=2))
    assert (found.ratio is not None) == known


@pytest.mark.parametrize(
    ("change", "low", "high"),
    [
        (Change(1, workers=2), 0.9, 1.1),
        (Change(1, processes=True), 0.9, 1.1),
        (Change(1, workers=2, processes=True), 1.0, 2.0),
    ],
)
def test_stalls_far_apart_overlap_only_where_each_process_has_its_own(change, low, high):
    """240 ms in each 48 rows, behind a queue of 16. Measured: two threads x0.95 to x1.11, two processes x1.79 to x2.03."""
    bursty = op(1, rate=20.0, kind="burst", row_ns=5.2e6, max_row_ns=240e6, capacity=16)
    found = predict(loop(bursty, consumer=1e6), change)
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize(("now", "high"), [(False, 2.0), (True, 1.1)])
def test_two_threads_that_wait_for_one_stall_may_be_twice_as_fast_as_processes(now, high):
    """MindSpore's default is two threads on two cores: none of their stalls may overlap now."""
    bursty = op(1, rate=20.0, workers=2, kind="burst", row_ns=5.2e6, max_row_ns=240e6, capacity=16, uses_processes=now)
    found = predict(loop(bursty, consumer=1e6), Change(1, workers=2, processes=True))
    assert found.high == pytest.approx(high)


@pytest.mark.parametrize("max_row_ns", [80e6, None])
def test_stalls_nearer_than_the_queue_is_long_may_overlap_in_threads(max_row_ns):
    bursty = op(1, rate=20.0, kind="burst", row_ns=5.2e6, max_row_ns=max_row_ns, capacity=16)
    found = predict(loop(bursty, consumer=1e6), Change(1, workers=2))
    assert (found.ratio, found.low, found.high) == (None, pytest.approx(0.9), pytest.approx(2.0))


def test_stalls_do_not_get_rarer_with_fewer_workers():
    bursty = op(1, rate=20.0, workers=2, kind="burst", row_ns=5.2e6, max_row_ns=80e6, capacity=16)
    found = predict(loop(bursty, consumer=1e6), Change(1, workers=1))
    assert (found.low, found.high) == pytest.approx((0.45, 1.1))


@pytest.mark.parametrize("processes", [False, True])
def test_the_stalls_of_a_source_may_overlap_or_hold_up_all_its_workers(processes):
    """5 ms for a row, nearly all in stalls: x2 if they overlap, and 3.1 ms more for each row if none does."""
    bursty = source(workers=1, row_ms=5.0, kind="burst")
    found = predict(loop(bursty, consumer=1e6), Change(9, workers=2, processes=processes))
    assert found.ratio is None
    assert (found.low, found.high) == pytest.approx((5 / 8.125, 2.0), rel=0.11)


def test_without_an_idle_core_more_workers_bring_between_nothing_and_a_core_each():
    busy = op(1, rate=20.0, kind="cpu", cores=1.0)
    found = predict(loop(busy, free=0.5, process_cores=7.0), Change(1, workers=2))
    assert (found.ratio, found.low, found.high) == (None, pytest.approx(1.0), pytest.approx(2.0))
    assert found.reason == {"code": "no_idle_core"}


@pytest.mark.parametrize(
    ("free", "lock", "most"),
    [(0.0, 0.0, 200.0), (0.49, None, 200.0), (0.5, None, 100.0), (1.0, 0.3, 200.0), (1.0, 0.2, 100.0)],
)
def test_what_the_loop_could_take_without_its_pipeline(free, lock, most):
    """It used 1 of the pipeline's and its own 2 cores for 100 batches/s: on both it could make 200 at most."""
    busy = op(1, rate=100.0, cores=1.0)
    one = loop(busy, consumer=100.0, cores=2, free=free, process_cores=2.0, gil_share=lock)
    assert one.consumer_most == pytest.approx(most)


def test_refusals_say_why():
    assert predict(loop(op(1)), Change(5, workers=2)).reason == {"code": "not_measured"}
    untimed = Stage(op_id=2, op_type="ImageFolderOp")
    found = predict(loop(op(1), untimed), Change(2, workers=2))
    assert found.reason == {"code": "not_timed", "op_type": "ImageFolderOp"}


def test_an_untimed_reader_below_lowers_the_bound_and_is_named():
    found = predict(loop(op(1, rate=20.0), Stage(op_id=2, op_type="ImageFolderOp")), Change(1, workers=2))
    assert found.ratio is None
    assert found.low == pytest.approx(1.0)
    assert {"code": "others_not_timed", "op_types": ["ImageFolderOp"]} in found.basis


def test_enough_workers_is_the_smallest_that_is_enough():
    pipeline = loop(op(0, rate=300.0), op(1, rate=20.0), consumer=90.0)
    assert enough_workers(pipeline, 1) == 5
    assert enough_workers(dataclasses.replace(pipeline, cpu_count=2), 1) == 2
    assert enough_workers(loop(source(row_ms=0.1)), 9) == 1
    assert enough_workers(loop(Stage(op_id=2, op_type="ImageFolderOp"), op(1)), 2) is None


RATES = st.floats(0.5, 5000.0)
STAGES = st.builds(
    lambda kind, workers, rate, cores, nature: (kind, workers, rate, cores, nature),
    st.sampled_from(["MapOp", "BatchOp"]),
    st.integers(1, 8),
    RATES,
    st.none() | st.floats(0.0, 8.0),
    st.sampled_from([None, "cpu", "wait", "gil"]),
)


@st.composite
def pipelines(draw, sources=False):
    stages = []
    for number, (kind, workers, rate, cores, nature) in enumerate(draw(st.lists(STAGES, min_size=1, max_size=5))):
        made = op(number, kind, workers, rate, cores=cores, utilisation=1.0, is_python=draw(st.booleans()))
        stages.append(dataclasses.replace(made, kind=nature))
    if sources:
        workers, row = draw(st.integers(1, 8)), draw(st.floats(0.01, 20.0))
        stages.append(source(99, workers, row, uses_processes=draw(st.booleans())))
    return loop(*stages, consumer=draw(st.none() | RATES), free=draw(st.floats(0.8, 8.0)))


@given(pipelines(), st.integers(0, 7))
def test_more_workers_of_a_map_are_never_predicted_to_hurt(pipeline, more):
    stage = pipeline.stages[0]
    found = predict(pipeline, Change(stage.op_id, workers=stage.workers + more))
    for ratio in (found.ratio, found.high):
        assert ratio is None or ratio >= 1.0 - 1e-9


@given(pipelines(sources=True), st.data())
def test_an_interval_holds_its_ratio_and_stays_below_the_consumer(pipeline, data):
    stage = data.draw(st.sampled_from(pipeline.stages))
    change = Change(stage.op_id, data.draw(st.integers(1, 8)), data.draw(st.sampled_from([None, 4, 64])))
    found = predict(pipeline, change)
    if found.ratio is None:
        assert found.reason
        return
    assert found.low <= found.ratio * (1 + 1e-9)
    assert found.ratio <= found.high * (1 + 1e-9)
    assert found.high <= WIDEST * found.low * (1 + 1e-9)
    if pipeline.consumer is not None and not pipeline.is_contended:
        assert found.high * pipeline.rate <= pipeline.consumer * (1 + 1e-6) or found.high <= 1.0 + 1e-6


def test_a_source_that_is_iterated_makes_its_rows_in_turn_whatever_its_workers():
    one = source(row_ms=5.0, iterated=True)
    assert enough_workers(loop(one), 9) == 1
    for change in (Change(9, workers=4), Change(9, processes=True), Change(9, workers=2, processes=True)):
        assert predict(loop(one), change).reason == {"code": "iterated"}
    assert predict(loop(one), Change(9, prefetch=2)).ratio == pytest.approx(1.0)
    found = candidates(loop(one, op(0, rate=500.0)), {})
    assert [each.key for each in found if any(change.op_id == 9 for change in each.changes)] == []


def test_parts_of_a_concatenation_work_one_after_the_other():
    """A tenth of the batches comes from a branch that makes 2 a second: 9.6 a second in all."""
    parts = op(2, rate=2.0, below_concat=True), op(3, rate=100.0, below_concat=True)
    whole = loop(op(1, rate=12.0), *parts, consumer=16.7, rate=9.6)
    slow_branch = predict(whole, Change(2, workers=4))
    assert (slow_branch.ratio, slow_branch.low, slow_branch.reason) == (None, 1.0, {"code": "works_in_turn"})
    assert 1.56 <= slow_branch.high <= 16.7 / 9.6 + 1e-9  # 1 / (0.9 / 16.7 + 0.1 / 8) would be made
    assert predict(whole, Change(1, workers=2)).high > 1.3
    assert enough_workers(whole, 1) == 2
    fast = loop(op(1, rate=12.0), replace(parts[0], rate=90.0), parts[1], consumer=16.7)
    assert predict(fast, Change(1, workers=2)).ratio == pytest.approx(16.7 / 12)  # neither branch ever limits
    assert predict(fast, Change(2, workers=2)).ratio == pytest.approx(1.0)  # it is not waited for while it works


def test_idle_cores_are_of_all_ranks_that_share_them():
    row = {
        "op_id": 1, "op_type": "MapOp", "name": "m", "workers": 4, "work_ns": 4e8, "rate": 10.0, "cores": 3.9,
        "utilisation": 1.0, "kind": "cpu", "row_ns": None, "rows_per_batch": 8.0, "uses_processes": False,
        "is_python": False, "capacity": 16, "consumer_rate": 1000.0, "loop_rate": 10.0, "process_cores": 4.0,
        "job_cores": 32.5, "room_cores": 64.0, "idle_share": 0.5,
    }  # fmt: skip
    shared = loop_of([row], 64.0)
    assert shared.sharing == pytest.approx(32.5 / 4.0)
    assert predict(shared, Change(1, workers=16)).high == pytest.approx(1.2 * (4 + 32 / (32.5 / 4)) / 4)
    for apart in ({"room_cores": 8.0}, {"job_cores": 4.3}, {"job_cores": None}, {"idle_share": None}):
        assert loop_of([row | apart], 64.0).sharing == 1.0
