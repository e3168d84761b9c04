"""What a change of the pipeline would buy: the formulas, their limits, and what must hold for any pipeline."""

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


def slow(workers=1, **facts):
    """The map that limits."""
    return op(1, workers=workers, **{"rate": 20.0} | facts)


def source(op_id=9, workers=1, row_ms=1.0, rows=8, **facts):
    row = max(row_ms * MS / workers, poll_row_ns(workers, processes=facts.get("uses_processes", False)))
    return op(op_id, "GeneratorOp", workers, 1e9 / (row * rows), rows=rows, **{"row_ns": row_ms * MS} | facts)


def loop(*stages, consumer=1000.0, cores=8, free=6.0, **facts):
    lowest = min([stage.rate for stage in stages if stage.rate] + ([consumer] if consumer else []))
    return Loop(stages, consumer, **{"rate": lowest, "free_cores": free, "cpu_count": cores} | facts)


def of_map(stage, *others, change=None, workers=2, processes=None, **facts):
    """What a change of the map brings, which is of its workers if no other is given."""
    return predict(loop(stage, *others, **facts), change or Change(1, workers=workers, processes=processes))


def of_source(stage, *others, **change):
    return predict(loop(stage, *others, consumer=1e6), Change(9, **change))


def span(found):
    return found.low, found.high


@pytest.mark.parametrize(
    ("consumer", "other", "ratio", "limit"),
    [(30.0, 900.0, 1.5, "consumer"), (900.0, 25.0, 1.25, 0), (1000.0, 10.0, 1.0, 0)],
)
def test_the_next_slowest_limits_the_gain(consumer, other, ratio, limit):
    found = of_map(slow(), op(0, rate=other), workers=4, consumer=consumer)
    assert (found.ratio, found.limited_by) == (pytest.approx(ratio), limit)


@pytest.mark.parametrize(
    ("row_ms", "ratio"),
    [(0.01, 0.0032), (1.0, 0.32), (2.0, 0.64), (4.0, 1.28), (8.0, 2.0)],  # 100 / 32 = 3.125 ms for a row with 2 workers
)
def test_threads_of_a_source_obey_the_poll_law(row_ms, ratio):
    assert of_source(source(row_ms=row_ms), workers=2, processes=False).ratio == pytest.approx(ratio)


def test_processes_of_a_source_poll_more_rarely_with_a_larger_prefetch():
    assert poll_row_ns(2, processes=True) / MS == pytest.approx(100 / 32)
    assert poll_row_ns(8, processes=True) / MS == pytest.approx(100 / 64)
    assert poll_row_ns(2, processes=True, prefetch=64) / MS == pytest.approx(100 / 128)
    assert poll_row_ns(1, processes=True) == 0.0
    assert of_source(source(workers=2, row_ms=0.5, uses_processes=True), prefetch=64).ratio == pytest.approx(4.0)


def test_a_prefetch_size_is_of_all_operators_and_the_polls_of_a_source_are_those_of_its_own_queue():
    """Worker processes of a source keep no more rows than the queues: shallow ones slow it down, whatever is asked."""
    beside = source(8, workers=2, row_ms=4.0, uses_processes=True, capacity=16)
    for prefetch, ratio in ((2, 0.25), (16, 1.0)):  # the map limits, until the source polls for each second row: 5 /s
        found = of_map(slow(), beside, change=Change(1, prefetch=prefetch), consumer=1e6)
        assert found.ratio == pytest.approx(ratio)
    # 8 processes that keep 64 rows: 1,280 rows/s, where 16 would be 640
    deep = op(9, "GeneratorOp", 8, rate=60.0, rows=32, uses_processes=True, capacity=64)
    assert of_map(slow(rate=25.0), deep, consumer=200.0).ratio == pytest.approx(2.0)


def test_a_waiting_map_scales_with_its_workers_and_sources_that_poll_or_the_lock_do_not():
    found = predict(loop(op(0, "BatchOp", rate=900.0), slow()), Change(1, workers=2))
    assert (found.ratio, found.limited_by) == (pytest.approx(2.0), 1)
    assert span(found) == pytest.approx((2 * (1 - MARGIN), 2 * (1 + MARGIN)))
    other = op(8, "GeneratorOp", 2, rate=500.0, rows=8)  # its lines say 500, the polls let 40 through
    found = of_map(slow(), other, workers=8, rate=20.0)
    assert (found.ratio, found.limited_by) == (pytest.approx(2.0), 8)
    found = of_source(source(workers=2, row_ms=0.1, row_ns=None), workers=1)
    assert (found.ratio, found.reason) == (None, {"code": "row_hidden"})
    assert of_source(source(workers=2, row_ms=0.1), workers=1).ratio == pytest.approx(31.25)
    assert of_map(slow(kind="gil"), workers=4).ratio == pytest.approx(1.0)


@pytest.mark.parametrize(("stage", "workers", "facts", "expected"), [
    # an operator that computes gets an interval from the free cores
    (slow(cores=1.0, utilisation=1.0, kind="cpu"), 3, {"cores": 4, "free": 1.5, "process_cores": 2.0},
     ((1.4 * 2.1) ** 0.5, 1.75 * 0.8, 1.75 * 1.2, None)),
    # one that is too wide is no prediction: how much of the machine it takes is not known
    (slow(kind="cpu"), 4, {"cores": 4, "free": 0.5}, (None, 1.0, 4.0, "too_wide")),
    # a busy machine does not hinder who waits or gives up workers
    (slow(kind="wait"), 2, {"free": 0.1}, (2.0, 1.8, 2.2, None)),
    (slow(workers=2, kind="cpu"), 1, {"free": 0.1}, (0.3**0.5, 0.5, 0.6, None)),
    # without an idle core more workers bring between nothing and a core each
    (slow(kind="cpu", cores=1.0), 2, {"free": 0.5, "process_cores": 7.0}, (None, 1.0, 2.0, "no_idle_core")),
    # stalls do not get rarer with fewer workers
    (slow(workers=2, kind="burst", row_ns=5.2e6, max_row_ns=80e6, capacity=16), 1, {"consumer": 1e6},
     (None, 0.45, 1.1, "too_wide")),
])  # fmt: skip
def test_free_cores_bound_what_more_workers_bring(stage, workers, facts, expected):
    found = of_map(stage, workers=workers, **facts)
    *ends, reason = expected
    assert (found.ratio, *span(found)) == tuple(end and pytest.approx(end) for end in ends)
    assert (found.reason or {}).get("code") == reason


@pytest.mark.parametrize(("gil_share", "low"), [(0.05, 1.6), (0.6, 1.0), (None, 1.0)])
def test_threads_of_python_that_leaves_the_lock_alone_scale(gil_share, low):
    sorts = slow(cores=1.0, utilisation=1.0, is_python=True, kind="cpu")
    found = of_map(sorts, cores=4, free=2.0, process_cores=1.0, gil_share=gil_share)
    assert span(found) == pytest.approx((low, 2.0))


@pytest.mark.parametrize(
    ("kind", "workers", "low", "high"),
    [("cpu", None, 0.8, 1.28), ("cpu", 2, 0.8, 2.57), ("wait", None, 1.0, 1.28), ("wait", 2, 2.0, 2.57)],
)
def test_rows_that_stay_in_the_process_take_the_time_of_the_function(kind, workers, low, high):
    """RandAugment of mindcv, 16 rows of 224 x 224 a batch: 33.5 ms in a worker process, of which 26.1 in the function.

    Measured: one thread x1.34, two threads x1.50 of one process, on two cores whose loop could take x2.8.
    """
    computes = {"cores": 0.77, "utilisation": 0.95, "is_python": True, "uses_processes": True, "kind": kind}
    augments = slow(rate=29.85, row_ns=1.634e6, rows=16.0, **computes)
    found = of_map(augments, workers=workers, processes=False, consumer=1e6, cores=4, free=3.0, process_cores=1.0)
    assert span(found) == pytest.approx((low, high), rel=0.02)


def test_python_that_waited_for_the_lock_is_not_known_once_it_is_free():
    held, waits = slow(cores=1.0, is_python=True, kind="gil"), op(2, rate=21.0, is_python=True, kind="wait")
    found = of_map(held, waits, processes=True)
    assert (found.ratio, *span(found)) == (None, pytest.approx(1.0), pytest.approx(2.0))
    assert of_map(held, replace(waits, is_python=False), processes=True).high < 1.3


@pytest.mark.parametrize(
    ("kind", "cores", "gil_share", "high"),
    [("gil", 0.56, 0.3, 53.3 / 48), ("cpu", 0.35, 0.3, 53.3 / 48), ("cpu", 0.35, 0.2, 1.0), ("cpu", 0.25, 0.3, 1.0)],
)
def test_threads_of_worker_processes_wait_for_the_lock_that_another_map_holds(kind, cores, gil_share, high):
    """A map of 2 ms of Python before one of 4 ms in two processes, 8 rows a batch: its own process brought x1.10."""
    freed = slow(workers=2, rate=48.0, rows=8, uses_processes=True, is_python=True, kind="cpu", row_ns=4.69e6)
    holds = op(2, rate=54.0, rows=8, is_python=True, kind=kind, cores=cores)
    found = predict(loop(freed, holds, op(9, rate=58.0), gil_share=gil_share, rate=37.5), Change(2, processes=True))
    assert found.high == pytest.approx(high, rel=0.01)


def test_rows_that_go_to_a_process_make_a_polled_source_wait_to_hand_them_on():
    """2 ms a row in two threads: 40 batches/s while they are polled, 125 if they never were. Measured: x1.3."""
    light = slow(rate=300.0, rows=8, is_python=True)
    polled, change = source(workers=2, row_ms=2.0, capacity=2), Change(1, processes=True)
    found = of_map(light, polled, change=change)
    assert (found.ratio, found.low, found.reason) == (None, 1.0, {"code": "polled_less"})
    assert found.high == pytest.approx(125 / 40)
    others = source(row_ms=2.0, capacity=2), source(workers=2, row_ms=9.0, capacity=2), replace(polled, capacity=16)
    for other in (*others, source(workers=2, row_ms=2.0, capacity=2, uses_processes=True)):
        assert of_map(light, other, change=change).high == pytest.approx(1.1)
    assert of_map(replace(light, uses_processes=True), polled, change=change).high == pytest.approx(1.1)
    assert of_map(light, polled, processes=True).high == pytest.approx(1.1)
    assert of_map(replace(light, rate=35.0, work_ns=1e9 / 35), polled, change=change).high < 1.2


@pytest.mark.parametrize(("cores", "known"), [(0.05, True), (0.5, False), (None, False)])
def test_an_untimed_batch_that_hardly_computes_is_no_unknown(cores, known):
    found = of_map(slow(), Stage(op_id=0, op_type="BatchOp", cores=cores))
    assert (found.ratio is not None) == known


@pytest.mark.parametrize(("stage", "workers", "processes", "expected"), [
    # 240 ms in each 48 rows, behind a queue of 16; measured: two threads x0.95 to x1.11, two processes x1.79 to x2.03
    ({}, 2, None, (0.9, 1.1)), ({}, None, True, (0.9, 1.1)), ({}, 2, True, (1.0, 2.0)),
    # two threads that wait for one stall, MindSpore's default on two cores: none of their stalls may overlap now
    ({"workers": 2}, 2, True, (None, 2.0)), ({"workers": 2, "uses_processes": True}, 2, True, (None, 1.1)),
    # nearer than the queue is long they may overlap in threads
    ({"max_row_ns": 80e6}, 2, None, (0.9, 2.0)), ({"max_row_ns": None}, 2, None, (0.9, 2.0)),
])  # fmt: skip
def test_stalls_far_apart_overlap_only_where_each_process_has_its_own(stage, workers, processes, expected):
    bursty = slow(**{"kind": "burst", "row_ns": 5.2e6, "max_row_ns": 240e6, "capacity": 16} | stage)
    found = of_map(bursty, workers=workers, processes=processes, consumer=1e6)
    low, high = expected
    assert found.high == pytest.approx(high)
    assert low is None or found.low == pytest.approx(low)
    assert "max_row_ns" not in stage or found.ratio is None


@pytest.mark.parametrize("processes", [False, True])
def test_the_stalls_of_a_source_may_overlap_or_hold_up_all_its_workers(processes):
    """5 ms for a row, nearly all in stalls: x2 if they overlap, and 3.1 ms more for each row if none does."""
    found = of_source(source(row_ms=5.0, kind="burst"), workers=2, processes=processes)
    assert found.ratio is None
    assert span(found) == pytest.approx((5 / 8.125, 2.0), rel=0.11)


@pytest.mark.parametrize(
    ("free", "lock", "most"),
    [(0.0, 0.0, 200.0), (0.49, None, 200.0), (0.5, None, 100.0), (1.0, 0.3, 200.0), (1.0, 0.2, 100.0)],
)
def test_what_the_loop_could_take_without_its_pipeline(free, lock, most):
    """It used 1 of the pipeline's and its own 2 cores for 100 batches/s: on both it could make 200 at most."""
    one = loop(op(1, cores=1.0), consumer=100.0, cores=2, free=free, process_cores=2.0, gil_share=lock)
    assert one.consumer_most == pytest.approx(most)


UNTIMED = Stage(op_id=2, op_type="ImageFolderOp")


def test_refusals_say_why_and_enough_workers_is_the_smallest_that_is_enough():
    assert of_map(op(1), change=Change(5, workers=2)).reason == {"code": "not_measured"}
    found = of_map(op(1), UNTIMED, change=Change(2, workers=2))
    assert found.reason == {"code": "not_timed", "op_type": "ImageFolderOp"}
    found = of_map(slow(), UNTIMED)
    assert (found.ratio, found.low) == (None, pytest.approx(1.0))
    assert {"code": "others_not_timed", "op_types": ["ImageFolderOp"]} in found.basis
    pipeline = loop(op(0, rate=300.0), slow(), consumer=90.0)
    assert enough_workers(pipeline, 1) == 5
    assert enough_workers(replace(pipeline, cpu_count=2), 1) == 2
    assert enough_workers(loop(source(row_ms=0.1)), 9) == 1
    assert enough_workers(loop(UNTIMED, op(1)), 2) is None


RATES = st.floats(0.5, 5000.0)
STAGES = st.tuples(
    st.sampled_from(["MapOp", "BatchOp"]), st.integers(1, 8), RATES, st.none() | st.floats(0.0, 8.0),
    st.sampled_from([None, "cpu", "wait", "gil"]),
)  # fmt: skip


@st.composite
def pipelines(draw, sources=False):
    stages = []
    for number, (op_type, workers, rate, cores, kind) in enumerate(draw(st.lists(STAGES, min_size=1, max_size=5))):
        facts = {"cores": cores, "utilisation": 1.0, "is_python": draw(st.booleans()), "kind": kind}
        stages.append(op(number, op_type, workers, rate, **facts))
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
