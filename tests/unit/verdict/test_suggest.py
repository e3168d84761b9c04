"""What is suggested at the stage that limits, and that reports, `whatif` and `tune` choose from the same changes."""

import json
from dataclasses import replace

import pytest
from cache_points import cache_point
from hypothesis import given
from hypothesis import strategies as st
from typed_rows import of_dicts

from pipeprof.report.words.suggestions import worded
from pipeprof.verdict import loop as measured
from pipeprof.verdict import suggest
from pipeprof.verdict.candidate import Recorded
from pipeprof.verdict.capacity import BESIDE_PYTHON, Change, Trial
from pipeprof.verdict.options import options
from pipeprof.verdict.predict import predict
from pipeprof.verdict.suggest import BESIDE, BESIDE_WAITING
from pipeprof.verdict.tuning import candidates, worth_trying

for_consumer, most = of_dicts(suggest.for_consumer), of_dicts(suggest.most)
suggestions, beside_settings = of_dicts(suggest.suggestions), of_dicts(suggest.beside_settings)
loop_of = of_dicts(measured.loop_of)


def stage(op_id=1, op_type="MapOp", rate=10.0, workers=1, kind="wait", **more):
    work = workers * 1e9 / rate
    row = {
        "op_id": op_id, "op_type": op_type, "workers": workers, "capacity": 4, "is_python": True,
        "uses_processes": False, "site": "a.py:1", "code": "a.py:9", "rows_per_batch": 8.0, "work_ns": work,
        "row_ns": work / 8, "rate": rate, "utilisation": 10.0 / rate, "kind": kind, "cores": 0.1, "python_cores": 0.1,
        "loop_rate": 10.0, "consumer_rate": 40.0, "idle_share": 0.5, "process_cores": 1.0,
    }  # fmt: skip
    return row | more


def batch(rate=30.0, **more):
    return stage(0, "BatchOp", rate=rate, **more)


def advise(row, *others, cores=8.0, kind=None, **more):
    return suggestions(row, kind or row["kind"], loop_of([row, *others], cores), **more)


def named(found, parameter):
    return [item for item in found if item.parameter == parameter]


def codes(found):
    return [item.code for item in found]


def said(item, what="text"):
    return worded(item.as_dict())[what]


def gains(item):
    return item.gain, item.gain_low, item.gain_high


@pytest.mark.parametrize(("op_type", "threads"), [("GeneratorOp", True), ("MapOp", False)])
def test_sources_that_get_workers_together_stay_threads_and_are_told_apart(op_type, threads):
    first, *_ = advise(*(stage(number, op_type, name="Store") for number in (1, 2)), batch())
    assert first.code == "workers_together"
    assert said(first, "action").endswith(", with python_multiprocessing=False") is threads
    assert "`Store (1)` to 3 (now 1) and of `Store (2)` to 3" in said(first, "action")


@pytest.mark.parametrize("other", [{"rate": 20.0}, {"kind": "burst"}, {"op_type": "ShuffleOp"}])
def test_none_is_changed_with_one_that_is_faster_stalls_or_does_not_scale(other):
    assert "workers_together" not in codes(advise(stage(), stage(**({"op_id": 2, "rate": 10.5} | other)), batch()))


@pytest.mark.parametrize(
    ("name", "other", "op"),
    [("decode", "batch", "decode"), ("decode", "decode", "1"), ("decode; rm", "batch", "1"), (None, "batch", "1")],
)
def test_the_check_names_the_operator_where_one_word_tells_which(name, other, op):
    first, *_ = advise(stage(name=name), batch(name=other))
    assert first.verify == f"pipeprof whatif RUN --op {op} --workers 3"


@pytest.mark.parametrize(("rate", "row_ns", "unless"), [(25.0, 5e6, True), (25.0, None, True), (2.0, 62.5e6, False)])
def test_more_workers_of_a_source_come_with_the_pace_that_its_rows_must_not_have_where_it_is_near(rate, row_ns, unless):
    found = advise(stage(op_type="GeneratorOp", name="Source", rate=rate, row_ns=row_ns), batch(2 * rate))
    item = next(item for item in found if item.parameter == "num_parallel_workers" and item.new > item.old)
    assert "num_parallel_workers of `Source` to 2 (now 1)" in said(item, "action")
    assert (", unless a row takes less than 3.1 ms (now 5.0 ms)" in said(item, "action")) == unless
    assert unless or "unless" not in said(item, "action")
    assert all("do not just add workers" not in said(one) for one in found)


@pytest.mark.parametrize(("processes", "least_ms"), [(False, 100 / (16 * 8)), (True, 100 / (8 * 8))])
def test_rows_that_are_too_short_for_more_workers_are_those_that_their_polls_hand_out(processes, least_ms):
    source = stage(op_type="GeneratorOp", workers=2, capacity=16, uses_processes=processes)
    item = next(item for item in advise(source) if item.code == "workers")
    assert (item.new, item.not_when["row_ms"]) == (8, pytest.approx(least_ms))


@pytest.mark.parametrize("kind", ["cpu", "gil"])
@pytest.mark.parametrize(("row_ns", "advised"), [(12.5e6, True), (1e6, False)])
def test_a_source_that_computes_goes_to_processes_unless_their_polls_are_slower(kind, row_ns, advised):
    source = stage(op_type="GeneratorOp", kind=kind, rate=1e9 / (8 * row_ns), gil_share=0.9, capacity=16)
    found = named(advise(source), "python_multiprocessing")
    assert bool(found) == advised
    for item in found:
        assert item.facts["new_workers"] == 4  # as many as the training needs
        assert item.gain == pytest.approx(4.0, rel=0.05)
        assert "--workers 4 --processes" in item.verify


@pytest.mark.parametrize(("facts", "advised"), [
    ({}, True), ({"kind": "gil"}, True), ({"kind": "wait"}, False), ({"rows_per_batch": 4.0}, False),
    ({"row_ns": 2e6}, False), ({"is_python": False}, False), ({"op_type": "BatchOp"}, False),
])  # fmt: skip
def test_python_of_many_short_rows_is_better_called_for_batches(facts, advised):
    found = advise(stage(**{"kind": "cpu", "rows_per_batch": 32.0, "row_ns": 0.1e6} | facts))
    texts = [said(item) for item in found if item.code == "whole_batches"]
    assert bool(texts) is advised
    assert all("`.batch()` in front of this map" in text and "32 times" in text for text in texts)


@pytest.mark.parametrize(
    ("facts", "cores", "bound"),
    [
        ({}, 2.0, 1.1 * BESIDE),
        ({"idle_share": 0.0}, 2.0, 2.2),  # the loop had no core to itself
        ({"idle_share": 0.0, "is_python": True}, 2.0, 2.2 * BESIDE_PYTHON),
        # of the cores that the training may use, also of parts of one
        ({"idle_share": 0.0, "room_cores": None}, 3.0, 3.3),
        ({"idle_share": 0.0, "room_cores": 1.5}, 3.0, 1.65),
        ({"idle_share": 0.0, "room_cores": 1.9}, 3.0, 2.09),
    ],
)
def test_a_bound_holds_where_the_loop_had_no_core_to_itself(facts, cores, bound):
    known = {"kind": "cpu", "cores": 1.0, "process_cores": 2.0, "consumer_rate": 11.0, "is_python": False} | facts
    assert advise(stage(**known), cores=cores)[-1].facts["times"] == pytest.approx(bound)


def test_the_bound_is_the_next_lowest_capacity():
    row, seldom = stage(), stage(consumer_rate=12.0)
    delayed = seldom | {"delay_share": 0.5}  # its threads had a core for half of the time that they wanted one
    for rows, bound in (
        ([row, batch(15.0)], 1.5), ([row, batch()], 3.0 * BESIDE_WAITING),  # it sleeps
        ([row], 4.0 * BESIDE_WAITING), ([seldom], 1.2 * BESIDE), ([delayed], 1.2 / 0.5),
    ):  # fmt: skip
        assert most(rows[0], loop_of(rows, 8.0)) == pytest.approx(bound)
    assert most(row, loop_of([row | {"consumer_rate": None}], 8.0)) is None


@pytest.mark.parametrize(("kind", "bounded"), [("cpu", 1.1), ("gil", 4.0 * BESIDE_WAITING)])
def test_a_source_that_waited_for_the_lock_bounds_nothing(kind, bounded):
    """Of a profile that does not say what its operators run, the verdict alone knows that Python holds the lock."""
    row = stage(kind="cpu", is_python=False, cores=0.9)
    found = advise(row, stage(2, "GeneratorOp", rate=11.0, cores=0.02), kind=kind)
    assert [item.gain_high for item in found if item.code == "bound"] == [pytest.approx(bounded)]


def test_more_workers_up_to_what_the_next_stage_can_make_or_together_with_one_that_is_as_slow():
    first, *rest = advise(stage(), batch())
    assert (first.parameter, first.old, first.new, first.place) == ("num_parallel_workers", 1, 3, "a.py:1")
    assert first.gain == pytest.approx(3.0)
    assert first.gain_low <= first.gain <= first.gain_high
    assert "--op 1 --workers 3" in first.verify
    assert (rest[-1].code, rest[-1].facts["times"]) == ("bound", pytest.approx(3.0 * BESIDE_WAITING))
    assert rest[-1].facts["next"] == {"op_id": 0, "op_type": "BatchOp", "name": None}
    assert (advise(stage(), batch(15.0))[0].then, advise(stage(consumer_rate=12.0))[0].then) == (0, "consumer")
    rows = stage(), stage(2, rate=10.5), batch()
    first, *_ = advise(*rows)
    assert first.code == "workers_together"
    assert [(one["op"]["op_id"], one["old"], one["new"]) for one in first.facts["changes"]] == [(1, 1, 3), (2, 1, 3)]
    together = [one.prediction for one in candidates(loop_of(rows, 8.0), {}) if len(one.changes) > 1]
    assert (first.gain, first.gain_low) in [(one.ratio, one.low) for one in together]
    assert said(first, "action")
    assert advise(stage(), cores=2.0)[0].new == 2
    (full,) = named(advise(stage(workers=2), cores=2.0), "num_parallel_workers")
    assert (full.old, full.new, full.gain) == (2, 2, None)


POLLED = {"op_type": "GeneratorOp", "rate": 20.0, "workers": 2, "kind": "poll", "row_ns": 1e5, "rows_per_batch": 16.0,
          "law_row_ns": 3.125e6, "loop_rate": 20.0}  # fmt: skip


def test_sources_that_hold_the_lock_are_iterated_or_poll_are_told_what_workers_need():
    found = advise(stage(kind="gil", cores=1.0, python_cores=1.0))
    assert (found[0].parameter, found[0].old, found[0].new) == ("python_multiprocessing", False, True)
    assert named(found, "num_parallel_workers") == []
    assert found[0].not_when == {"code": "rows_are_large_or_threads"}
    source = stage(2, "GeneratorOp", iterated=True)
    first, second = advise(source)[:2]
    assert (first.code, first.parameter, first.facts["new_workers"]) == ("rows_by_number", None, 4)
    assert (first.gain, first.not_when["code"]) == (pytest.approx(4.0), "rows_are_short")
    assert said(first, "action").startswith("give the source (GeneratorOp 2) `__getitem__` and `__len__`, with num_par")
    assert said(first, "action").endswith("(MindSpore uses one worker for a generator or an iterator)")
    assert (second.code, second.not_when) == ("cheaper_reading", None)
    assert advise(source | {"kind": "gil"})[0].code == "cheaper_reading"
    assert "stalls_apart" not in codes(advise(source | {"kind": "burst", "max_row_ns": 1e12}))
    found = named(advise(stage(2, **POLLED)), "num_parallel_workers")[0]
    assert (found.old, found.new, found.gain) == (2, 1, pytest.approx(2.0))
    assert found.facts["why"] == {"code": "polls", "rows_per_second": pytest.approx(320.0)}


def test_bursts_get_a_queue_that_outlasts_the_longest_of_them():
    rare = stage(kind="burst", rate=50.0, longest_ns=2e7, max_row_ns=2e8)  # most intervals have no stall
    (found,) = named(advise(rare), "prefetch_size")
    assert (found.old, found.new) == (4, 9)  # 0.2 s at 40 batches/s, and one
    assert "raise the prefetch size to 9 batches" in said(found)
    assert "stalls now and then, for 200 ms at most" in said(found)
    assert "--prefetch 9" in found.verify


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"rate": 10.0, "max_row_ns": 2e8}, ": it is too slow even on average"),
        ({"max_row_ns": 2e8, "capacity": 9}, ": its queue of 9 outlasts the longest of them already"),
        ({"max_row_ns": 2e8, "capacity": 16}, ": its queue of 16 outlasts the longest of them already"),
        ({"max_row_ns": None}, ""),
        ({"max_row_ns": 2e8, "consumer_rate": None}, ""),
    ],
)
def test_bursts_get_no_longer_queue_where_none_is_known_to_help(facts, reason):
    found = advise(stage(kind="burst", **{"rate": 50.0} | facts))
    assert named(found, "prefetch_size") == []
    (text,) = (said(item) for item in found if item.code == "rarer_stalls")
    assert text.startswith(f"make the stalls of the map (MapOp 1) rarer{reason}")
    assert bool(reason) == (":" in text)


@pytest.mark.parametrize(("facts", "advised"), [
    ({}, True), ({"op_type": "GeneratorOp", "rows_per_batch": 8.0}, True), ({"is_python": False}, False),
    ({"uses_processes": True}, False), ({"workers": 2}, True),
    ({"consumer_rate": 10.1}, False),  # nor where the training is the next to limit
    ({"rate": 50.0, "consumer_rate": 20.0}, False),  # a longer queue outlasts its stalls
])  # fmt: skip
def test_stalls_that_no_queue_outlasts_may_be_had_in_turn_by_processes(facts, advised):
    found = advise(stage(**{"kind": "burst", "rate": 10.0, "max_row_ns": 2e8} | facts), cores=2.0)
    apart = [item for item in found if item.code == "stalls_apart"]
    assert bool(apart) is advised
    assert found[: len(apart)] == apart  # what can be tried stands first
    for item in apart:
        assert said(item, "action").endswith("num_parallel_workers=2), so that one can go on while another stalls")
        assert (item.new, item.gain, item.gain_high) == (True, None, pytest.approx(2.0, rel=0.01))
        assert "at most 2 times as fast, perhaps not at all faster" in said(item)
        assert said(item, "verify").endswith("--workers 2 --processes")


@pytest.mark.parametrize("op_type", ["ShuffleOp", "TFReaderOp"])
def test_other_operators_have_advice_without_a_number(op_type):
    first = advise(stage(op_type=op_type, is_python=False))[0]
    assert first.parameter
    assert first.gain is None


@pytest.mark.parametrize(
    ("python", "kind", "code"),
    [(True, "cpu", "cheaper_rows"), (True, "wait", "cheaper_waits"), (False, "cpu", "faster_reading")],
)
def test_a_filter_in_python_is_no_reader_of_files(python, kind, code):
    assert advise(stage(op_type="FilterOp", kind=kind, is_python=python))[0].code == code


@pytest.mark.parametrize(
    ("kind", "idle", "workers", "storage"),
    [("cpu", 0.02, False, False), ("cpu", 0.5, True, False), ("wait", 0.02, True, True)],
)
def test_a_reader_that_computes_is_not_told_of_storage_and_needs_free_cores_for_workers(kind, idle, workers, storage):
    found = advise(stage(op_type="MindRecordOp", kind=kind, is_python=False, idle_share=idle))[0]
    action = said(found, "action")
    assert ("num_parallel_workers" in action, bool(found.parameter), "storage" in action) == (workers, workers, storage)


@pytest.mark.parametrize(("idle", "expected"), [(0.02, [(8, 2)]), (0.5, []), (None, [])])
def test_a_loop_that_does_not_wait_can_give_workers_back_where_cpu_is_short(idle, expected):
    row = stage(workers=8, rate=80.0, idle_share=idle)
    assert [(one.old, one.new) for one in for_consumer([row], loop_of([row], 8.0))] == expected


def test_what_brings_most_comes_first_and_the_bound_last():
    *found, last = advise(stage(kind="cpu", cores=1.0, python_cores=1.0, idle_share=0.9), batch())
    found = [item.gain or 0.0 for item in found]
    assert found == sorted(found, reverse=True)
    assert (last.parameter, last.then) == (None, 0)


RATES = st.floats(1.0, 1e4)
KINDS = st.sampled_from(["cpu", "wait", "gil", "burst", "poll", None])


@given(
    st.sampled_from(["MapOp", "BatchOp", "GeneratorOp", "ShuffleOp", "TFReaderOp"]),
    KINDS, RATES, RATES, RATES, st.integers(1, 16), st.integers(1, 64), st.booleans(), st.booleans(), st.floats(0, 1),
    st.floats(0, 8),
)  # fmt: skip
def test_nothing_is_suggested_that_is_predicted_to_be_a_loss(
    op_type, kind, rate, other, consumer, workers, cores, python, processes, idle, used
):
    facts = {"consumer_rate": consumer, "loop_rate": min(rate, other, consumer), "idle_share": idle, "cores": used}
    row = stage(1, op_type, rate, workers, kind, is_python=python, uses_processes=processes, max_row_ns=1e8, **facts)
    for item in advise(row, batch(other, **facts), cores=float(cores)):
        assert item.gain is None or item.gain >= 1.0
        assert item.gain_high is None or item.gain_high >= 1.0
        assert json.loads(json.dumps(item.as_dict()))["code"]
        assert said(item)


@pytest.mark.parametrize("more", [{}, POLLED])
def test_on_a_machine_that_is_busy_with_other_programs_the_first_advice_is_to_stop_them_whatever_is_predicted(more):
    row = stage(**{"kind": "cpu", "idle_share": 0.02} | more)
    first, *others = advise(row, batch(60.0), kind="host_saturated")
    assert first.code == "stop_other_programs"
    assert not more or max(item.gain or 0.0 for item in others) > 1.5


WAITS = {"kind": "lock_wait", "lock_share": 0.5, "rows_per_batch": 32.0, "work_ns": 1e8, "row_ns": 9e3,
         "gil_share": 0.1}  # fmt: skip


@pytest.mark.parametrize("rest", [[], [stage(1, rate=10.0, **WAITS)]], ids=["alone", "beside another"])
def test_what_waits_for_the_lock_gets_whole_batches_or_no_python_and_no_more_threads(rest):
    found = advise(stage(2, **WAITS), *rest, batch(300.0, is_python=False, consumer_rate=40.0))
    assert [code for code in codes(found) if code != "bound"] == ["whole_batches", "to_cpp"]
    for item in found[:2]:  # the loop takes 40 batches/s, of which it gets 10
        assert (item.gain, item.then) == (pytest.approx(4.0), "consumer")
        assert item.gain_low < 4.0 < item.gain_high


@pytest.mark.parametrize("kind", ["wait", "cpu", "gil", "burst"])
def test_a_dataset_that_is_the_source_of_a_generator_takes_its_place(kind):
    source = stage(2, "GeneratorOp", iterated=True, wrapped=True, kind=kind, max_row_ns=1e9)
    first, *rest = advise(source, batch(300.0))
    assert (first.code, first.place, codes(rest)) == ("unwrap_source", "a.py:1", ["bound"])
    assert (first.gain_low, first.gain) == (pytest.approx(1.0), None)
    assert first.gain_high >= 4.0


def test_whole_batches_bring_what_a_call_takes_besides_its_rows_unless_cores_are_short():
    row = stage(2, kind="cpu", rows_per_batch=100.0, work_ns=1e8, row_ns=9.9e5, cores=1.0)
    (found,) = [item for item in advise(row, batch(300.0)) if item.code == "whole_batches"]
    assert found.gain is None
    assert found.gain_low < 1.02
    assert found.gain_high > 4.0
    source = stage(2, "GeneratorOp", iterated=True, wrapped=True, kind="cpu", cores=1.0)
    found = advise(source, batch(300.0), shared=True)
    assert (found[0].code, found[0].gain_high) == ("unwrap_source", None)
    assert "cheaper_rows" not in codes(found)


def loader(op_id, op_type, rate, workers=0, **more):
    alone = op_type == "Sampler"
    facts = {"chained": True, "uses_processes": bool(workers) and not alone, "cores": None, "site": "train.py:5",
             "loop_rate": 1e3 / 105, "consumer_rate": 40.0, "idle_share": 0.9}  # fmt: skip
    return stage(op_id, op_type, rate, workers=1 if alone else max(workers, 1), **facts | more)


def test_a_loader_gets_workers_at_the_line_that_makes_it_and_a_sampler_is_to_become_cheaper():
    """80 of 105 ms go to its rows, which wait, and 25 to the training."""
    first, *rest = advise(loader(1, "Dataset", 12.5), loader(2, "Sampler", 1e4))
    assert (first.code, first.parameter, first.old, first.new) == ("loader_workers", "num_workers", 0, 4)
    assert 3.4 < first.gain < 105 / 25
    assert (first.place, first.verify) == ("train.py:5", "pipeprof whatif RUN --op 1 --workers 4")
    assert codes(rest) == ["cheaper_waits", "bound"]
    assert "num_workers=4" in said(first, "action")
    rows = loader(1, "Sampler", 22.0), loader(2, "Dataset", 28.0)
    assert codes(advise(*rows)) == ["cheaper_waits", "bound"]
    assert "loader_workers" in codes(advise(*reversed(rows)))


ANEW = {"loop_rate": 40.0, "restart_ns": 50e6, "epoch_batches": 10.0}


@pytest.mark.parametrize(
    ("rate", "facts", "lives_on"),
    [(50.0, {}, True), (50.0, {"epoch_batches": 1e3}, False), (400.0, {}, True), (400.0, {"restart_ns": None}, False)],
)
def test_workers_that_are_started_anew_for_a_short_epoch_live_on_also_where_none_is_waited_for(rate, facts, lives_on):
    rows = [loader(1, "Dataset", rate, 2, **ANEW | facts), loader(2, "Sampler", 1e4, **ANEW | facts)]
    found = advise(*rows) if rate == 50.0 else for_consumer(rows, loop_of(rows, 8.0))
    lasting = named(found, "persistent_workers")
    assert len(lasting) == lives_on
    for one in lasting:
        assert (one.code, one.old, one.new, one.place) == ("loader_persistent", False, True, "train.py:5")
        assert one.gain == pytest.approx(300 / 250, rel=0.03)
        assert "persistent_workers=True" in said(one)
    assert rate == 50.0 or found == lasting


POINT = cache_point(ratio=3.0, bytes=4e6)
SOURCE_POINT = cache_point(op_id=2, op_type="GeneratorOp")


def beside(points, *others, environment=None, cores=2.0, **of_stage):
    rows = [stage(**of_stage), *others]
    return list(beside_settings(rows[0], rows[0]["kind"], loop_of(rows, cores), points, environment or {}))


def test_rows_kept_in_memory_have_the_gain_that_tune_expects_of_the_same_cache():
    (kept,) = beside([POINT, replace(POINT, op_id=0, bytes=1e6, changes="batches")])
    found = candidates(loop_of([stage()], 2.0), {}, recorded=Recorded([SOURCE_POINT, POINT]))
    (tried,) = (one.prediction for one in found if one.key == "1:cache=2147483648")
    assert (kept.code, kept.op_id, kept.place, kept.not_when) == ("keep_rows", 1, "a.py:1", {"code": "rows_change"})
    assert gains(kept) == (tried.ratio, tried.low, tried.high)
    assert kept.verify is None  # of no source in Python, as far as is known
    assert beside([SOURCE_POINT, POINT])[0].verify == "pipeprof whatif RUN --op 1 --cache"
    for size, told in ((4 << 20, "4.00 MiB"), (None, "of unknown size")):
        assert told in said(beside([replace(POINT, bytes=size)])[0], "action")
    assert beside([replace(POINT, changes="random"), replace(POINT, ratio=1.01)]) == []


CROWDED = {"kind": "cpu", "idle_share": 0.01, "process_cores": 1.9}


def test_one_thread_is_advised_where_python_computes_without_an_idle_core_and_nobody_chose_a_number():
    (one,) = beside([], **CROWDED)
    assert (one.code, one.gain) == ("one_thread", None)
    assert "OMP_NUM_THREADS=1" in said(one, "action")
    assert beside([], environment={"MKL_NUM_THREADS": "2"}, **CROWDED) == []
    for other in ({"idle_share": 0.5}, {"kind": "wait"}, {"is_python": False}):
        assert beside([], **(CROWDED | other)) == [], other


@pytest.mark.parametrize(("workers", "cores", "told"), [(4, 1.9, True), (4, 1.4, False), (1, 1.9, False)])
def test_threads_inside_of_worker_processes_are_told_where_the_record_shows_them(workers, cores, told):
    (one,) = beside([], uses_processes=True, workers=workers, call_cores=cores, **CROWDED)
    assert (f"a row keeps {cores} cores busy in each of {workers} worker processes" in said(one)) is told


TRIED = Trial("tune", "MapOp", "f", {"workers": 1}, {"workers": 4}, 1.0, 0.97, 1.02)


def with_trials(*trials, other=None, **facts):
    """The loop and the first stage, of which these trials may be."""
    rows = [stage(name="f", **facts), other or batch(35.0, is_python=False)]
    return replace(loop_of(rows, 8.0), trials=trials), rows[0]


def tried_advice(*trials, **facts):
    loop, row = with_trials(*trials, **facts)
    return suggestions(row, row["kind"], loop)


@pytest.mark.parametrize("facts", [
    {"kind": "wait"}, {"kind": "cpu", "cores": 1.0, "gil_share": 0.9}, {"kind": "gil", "cores": 1.0, "gil_share": 0.9},
    {"kind": "burst", "max_row_ns": 4e9},
])  # fmt: skip
@pytest.mark.parametrize("op_type", ["MapOp", "GeneratorOp"])
@pytest.mark.parametrize("tried", [(), (TRIED,)])
def test_a_report_advises_what_tune_tries_with_the_same_prediction(facts, op_type, tried):
    loop, _ = with_trials(*tried, op_type=op_type, **facts)
    offered = [(one.changes[0], one.prediction) for one in candidates(loop, {}) if len(one.changes) == 1]
    names = {"num_parallel_workers": "workers", "prefetch_size": "prefetch"}
    for item in tried_advice(*tried, op_type=op_type, **facts):
        if item.parameter in names and item.gain_high is not None and item.new != item.old:
            found = [known for change, known in offered if getattr(change, names[item.parameter]) == item.new]
        elif item.parameter == "python_multiprocessing":
            new = item.facts["new_workers"]
            found = [known for change, known in offered if change.processes and (change.workers or 1) == new]
        else:
            continue
        assert (*gains(item), item.trial) in [(one.ratio, one.low, one.high, one.trial) for one in found]


def test_what_was_measured_takes_the_place_of_the_prediction_and_what_brought_nothing_is_not_tried_again():
    first = tried_advice()[0]
    assert (first.code, first.new, first.trial) == ("workers", 4, None)
    better = replace(TRIED, verb="whatif", times=1.31, low=1.2, high=1.4)
    first, (loop, _) = tried_advice(better)[0], with_trials(better)
    assert (first.new, first.gain, first.trial, first.verify) == (4, 1.31, "whatif", None)
    assert said(first).endswith("1.31 times as fast (1.20 to 1.40), as `whatif` measured")
    assert predict(loop, Change(1, workers=4)).trial == "whatif"
    for listed in (options(loop, 1), candidates(loop, {})):
        assert {one.key: one.prediction.trial for one in listed}["1:workers=4"] == "whatif"
    assert codes(tried_advice(TRIED)) == ["cheaper_waits", "bound"]
    found = [one.key for one in worth_trying(candidates(with_trials(TRIED)[0], {}), ()) if not one.is_unknown]
    assert [key for key in found if "workers" in key and "processes" not in key and "+" not in key] == []


@pytest.mark.parametrize("other", [
    {"name": "g"}, {"op_type": "BatchOp"}, {"old": {"workers": 2}}, {"new": {"workers": 4, "prefetch": 64}},
    {"new": {"workers": 4, "cache": 1}},
])  # fmt: skip
def test_a_trial_of_something_else_or_of_one_of_two_that_look_alike_says_nothing(other):
    assert tried_advice(replace(TRIED, **other))[0].gain == pytest.approx(3.5, rel=0.02)
    assert tried_advice(TRIED, other=stage(2, name="f", rate=60.0))[0].trial is None
