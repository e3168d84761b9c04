"""Which changes `tune` tries, which of them first, and which not."""

from dataclasses import replace

import pytest
from cache_points import cache_point
from mindspore_sources import source_classes

from pipeprof.verdict.candidate import LARGE_ROW, Recorded, beside, cached, kept_rows
from pipeprof.verdict.capacity import Change, Loop, Stage, Trial, is_polled, poll_row_ns
from pipeprof.verdict.options import learned
from pipeprof.verdict.predict import predict
from pipeprof.verdict.storage import CACHE_BYTES
from pipeprof.verdict.tuning import BY_FILE, candidates, worth_trying


def keys(found):
    return [one.key for one in found]


SLOW = Stage(1, "MapOp", work_ns=5e7, rate=20.0, kind="wait", rows=1.0, row_ns=5e7, node=1, is_python=True)
BOTH = frozenset({1, 2})
TOGETHER = Recorded(together={(1, "workers"): BOTH, (2, "workers"): BOTH})


def written(rate=900.0, consumer=100.0, **second):
    other = replace(SLOW, op_id=2, node=2, **{"work_ns": 1e9 / rate, "row_ns": 1e9 / rate, "rate": rate} | second)
    return Loop((SLOW, other), consumer=consumer, rate=20.0, free_cores=3.0, cpu_count=4)


def test_operators_of_one_argument_get_the_same_value_and_the_larger_one():
    alone, together = candidates(written(), {}), candidates(written(), {}, recorded=TOGETHER)
    assert (alone[0].key, together[0].key) == ("1:workers=4", "1:workers=4+2:workers=4")
    assert [(one.op_id, one.workers) for one in together[0].changes] == [(1, 4), (2, 4)]
    assert together[0].prediction == alone[0].prediction
    assert len(keys(together)) == len(set(keys(together)))
    assert "1:processes=True" in keys(together)
    assert not any(key.startswith("1:workers") and "+2:" not in key for key in keys(together))
    loop = written(22.0, consumer=60.0, workers=2)
    assert "1:workers=3+2:workers=4" in keys(candidates(loop, {})), "or this test says nothing"
    together = candidates(loop, {}, recorded=TOGETHER)
    numbers = [{change.workers for change in one.changes} for one in together if "workers" in one.key]
    assert {4} in numbers
    assert all(len(each) == 1 for each in numbers)
    reader = written(op_type="TFReaderOp", is_python=False)
    found = candidates(reader, {}, recorded=Recorded(together={(1, "workers"): BOTH}))
    assert {one.permutes for one in found if "2:workers" in one.key} == {True}
    assert not any(one.permutes for one in found if "2:workers" not in one.key)


BATCH = Stage(0, "BatchOp", node=0, rate=200.0)
NEAR = Stage(1, "MapOp", node=1, rate=200.0, row_ns=2e5, rows=32.0, is_python=True)
FAR = replace(NEAR, op_id=2, node=2)
SOURCE = Stage(3, "GeneratorOp", node=3, rate=90.0, is_python=True)


def tried(*stages):
    return candidates(Loop(stages, consumer=500.0, rate=80.0, cpu_count=2), {})


@pytest.mark.parametrize(("stages", "expected"), [
    ((BATCH, NEAR, FAR, SOURCE), [2]), ((BATCH, NEAR, replace(FAR, is_python=False), SOURCE), [1, 2]),
    ((BATCH, replace(NEAR, row_ns=5e6), SOURCE), []), ((BATCH, replace(NEAR, rows=4.0), SOURCE), []),
    ((BATCH, replace(NEAR, is_python=False), SOURCE), []), ((BATCH, replace(NEAR, uses_processes=True), SOURCE), []),
    ((replace(BATCH, node=None), NEAR, SOURCE), []), ((replace(BATCH, is_python=True), NEAR, SOURCE), []),
    ((replace(BATCH, op_id=2), replace(NEAR, op_id=0), SOURCE), []),  # done already
])  # fmt: skip
def test_a_batch_is_tried_in_front_of_its_maps_of_python(stages, expected):
    assert sorted(one.maps_after for each in tried(*stages) for one in each.changes if one.maps_after) == expected


def test_of_stages_that_stall_the_batch_comes_first_and_the_prefetch_size_once():
    found = tried(BATCH, NEAR, replace(SOURCE, kind="burst"))
    assert next(one for one in found if one.is_unknown).key == "0:maps_after=1"
    found = tried(BATCH, *(replace(stage, kind="burst") for stage in (NEAR, FAR)), SOURCE)
    assert len([one for one in found if one.changes and one.changes[0].prefetch and not one.changes[0].workers]) == 1


MAP = Stage(1, "MapOp", rate=100.0, uses_processes=True, is_python=True)
IDLE = Loop((MAP,), consumer=500.0, rate=100.0, free_cores=6.0, process_cores=3.0, cpu_count=8)
NODES = (("0,1,2,3", 4), ("4,5,6,7", 4))
LARGE = {"row_bytes": {1: 3_000_000}}


@pytest.mark.parametrize(("changed", "known", "expected"), [
    ({}, LARGE, ["1:max_rowsize=5"]),  # 1.5 times 2.9 MiB
    ({}, {"row_bytes": {1: LARGE_ROW - 1}}, []), ({"stages": (replace(MAP, uses_processes=False),)}, LARGE, []),
    ({"stages": (replace(MAP, op_type="BatchOp"),)}, LARGE, []),  # a script's is multiplied by the size of the batch
    ({"free_cores": 0.1}, {}, ["runtime_threads=4"]), ({"free_cores": 6.0}, {}, []),
    ({"process_cores": 3.0}, {"nodes": NODES}, ["cpus=0,1,2,3"]), ({"process_cores": 5.0}, {"nodes": NODES}, []),
    ({"process_cores": None}, {"nodes": NODES}, []), ({"process_cores": 3.0}, {"nodes": NODES[:1]}, []),
    ({"process_cores": 1.0, "sharing": 4.0}, {"nodes": NODES}, ["cpus=0,1,2,3"]),  # for all ranks of the command
    ({"process_cores": 1.0, "sharing": 8.0}, {"nodes": NODES}, []),
])  # fmt: skip
def test_memory_for_large_rows_of_processes_fewer_threads_and_one_numa_node(changed, known, expected):
    assert keys(beside(replace(IDLE, **changed), Recorded(**known))) == expected


def test_of_unknown_effect_what_usually_brings_most_is_tried_first_and_behind_what_is_predicted():
    loop = replace(IDLE, stages=(replace(MAP, rate=None), Stage(2, "TFReaderOp")), free_cores=0.1)
    found = candidates(loop, {}, "time", Recorded(**LARGE, nodes=NODES, readers=frozenset({2})))
    assert all(one.is_unknown for one in found)
    first = [next(at for at, one in enumerate(found) if kind in one.key) for kind in ("2:workers", "max_row", "cpus")]
    assert first == sorted(first)
    assert found[first[0]].permutes
    known = Recorded(**LARGE, nodes=NODES)
    found = keys(candidates(IDLE, {}, "time", known))
    assert found.index("1:workers=2") < found.index("cpus=0,1,2,3")
    limited = replace(IDLE, stages=(replace(MAP, rate=900.0),), rate=490.0)
    assert not [one for one in candidates(limited, {}, "time", known) if one.cpus or one.changes[0].max_rowsize]


CACHED = Loop(
    (Stage(0, "BatchOp", rate=900.0), Stage(1, "MapOp", rate=100.0, kind="wait"), Stage(2, "GeneratorOp", rate=400.0)),
    consumer=500.0, rate=100.0, cpu_count=2,
)  # fmt: skip


def point(op_id, op_type, ratio, size=1000, changes=None):
    return cache_point(op_id=op_id, op_type=op_type, ratio=ratio, bytes=size, changes=changes)


def of_caches(*points, what="time"):
    return candidates(CACHED, {}, what, Recorded(list(points)))


FIRST, KEPT, BATCHES = point(3, "GeneratorOp", 1.0), point(2, "MapOp", 4.0), point(0, "BatchOp", 4.0)
BEST, CACHE = point(1, "MapOp", 4.0), f"1:cache={CACHE_BYTES}"


@pytest.mark.parametrize(("caches", "expected"), [
    ([FIRST, KEPT, BATCHES], [2]),
    ([FIRST, KEPT, point(1, "MapOp", 4.01)], [2]),  # as good, and more may still change behind it
    ([FIRST, KEPT, point(1, "MapOp", 5.0)], [2, 1]),  # the first one, too, should the best not do
    ([FIRST, point(2, "MapOp", 4.0, CACHE_BYTES + 1)], []),
    ([FIRST, point(2, "MapOp", 4.0, None)], [2]),  # the limit holds while it runs
    ([FIRST, point(2, "MapOp", 4.0, changes="random")], []), ([point(3, "ImageFolderOp", 1.0), KEPT], []),
    ([FIRST, point(2, "MapOp", 1.01)], []), ([], []),
])  # fmt: skip
def test_a_cache_is_tried_behind_a_python_source_and_its_maps_where_it_pays(caches, expected):
    assert [one.op_id for one in kept_rows(caches)] == expected


def test_a_cache_is_predicted_or_was_measured_and_comes_behind_workers_that_bring_nearly_as_much():
    first = keys(of_caches(FIRST, point(1, "MapOp", 2.1)))
    assert first.index("1:workers=2") < first.index(CACHE)
    assert keys(of_caches(FIRST, BEST))[0] == CACHE
    assert not [key for key in keys(of_caches(FIRST, KEPT, what="memory")) if "cache" in key]
    trial = Trial("tune", "MapOp", None, {"cache": None}, {"cache": CACHE_BYTES}, 1.31, 1.21, 1.41)
    found = cached(BEST, replace(CACHED, trials=(trial,))).prediction
    assert (found.ratio, found.low, found.high, found.trial) == (1.31, 1.21, 1.41, "tune")
    assert cached(BEST, CACHED).prediction.ratio == 4.0
    found = of_caches(FIRST, BEST)
    cache, workers = (next(one for one in found if key in one.key) for key in ("cache", "1:workers=2"))
    after = {one.key: one.prediction for one in learned(found, [(cache, 1.0)])}
    assert after["1:workers=2"] == workers.prediction
    assert cached(KEPT, CACHED).prediction.low == pytest.approx(3.6)
    doubtful = cached(replace(KEPT, untimed=True), CACHED).prediction
    assert (doubtful.ratio, doubtful.low, doubtful.high) == (None, 1.0, pytest.approx(4.4))
    assert doubtful.reason["code"] == "others_may_limit"


ROWS = 8
LAW = 1e9 / (poll_row_ns(2, processes=False) * ROWS)  # batches/s
POLLED = Stage(2, "GeneratorOp", node=2, workers=2, rate=LAW, rows=ROWS, kind="wait", is_python=True, capacity=16)
TIMED = replace(POLLED, row_ns=4e6)
SHALLOW = "2:prefetch=2"


def polled(source, *others):
    stages = (Stage(0, "BatchOp", node=0, rate=50 * LAW, rows=1.0), *others, source)
    return Loop(stages, consumer=10 * LAW, rate=0.9 * LAW, free_cores=1.5, process_cores=0.5, cpu_count=2)


def for_polled(source, *others):
    return {one.key: one for one in worth_trying(candidates(polled(source, *others), {}), ())}


@pytest.mark.parametrize(("capacity", "prefetch"), [(16, 16), (16, 64), (2, 4)])
def test_queues_that_become_no_shallower_change_nothing(capacity, prefetch):
    found = predict(polled(replace(TIMED, capacity=capacity)), Change(2, prefetch=prefetch))
    assert found.ratio == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changed", "others"),
    [
        ({"workers": 1}, ()),
        ({"rate": LAW / 1.5}, ()),  # slower than the polls
        ({"capacity": 2}, ()),
        ({"uses_processes": True}, ()),
        ({}, (replace(POLLED, op_id=3, node=3, rate=40 * LAW, kind=None, capacity=None, uses_processes=True),)),
    ],
)
def test_other_sources_are_not(changed, others):
    assert SHALLOW not in for_polled(replace(POLLED, **changed), *others)


def test_a_polled_source_is_tried_with_shallow_queues_and_before_a_process_for_a_map():
    """Without a prediction where the polls hide what a row takes; else up to what its threads could make."""
    assert for_polled(POLLED)[SHALLOW].is_unknown
    known = for_polled(TIMED)[SHALLOW].prediction
    assert (known.low, known.high) == pytest.approx((1.0, 2e9 / (4e6 * ROWS) / LAW))
    assert [one["code"] for one in known.basis] == ["row_in_worker", "polled", "makes_meanwhile"]
    slow, rate = Stage(1, "MapOp", node=1, rate=LAW / 4, rows=ROWS), 1.05 * LAW / 4
    reader = Stage(2, "MindRecordOp", node=2, workers=4, rate=rate, rows=ROWS, is_python=False)
    source = replace(POLLED, workers=1, rate=rate, row_ns=1e9 / (rate * ROWS))
    assert any("+" in key for key in for_polled(source, slow))
    assert not any("+" in key or "2:workers=1" in key for key in for_polled(reader, slow))
    # The best of source_poll_map has both: deep queues take what the threads made between two polls at once.
    light = Stage(1, "MapOp", node=1, rate=8 * LAW, rows=ROWS, kind="wait", is_python=True)
    assert list(for_polled(TIMED, light)) == [SHALLOW]
    assert next(iter(for_polled(replace(TIMED, capacity=2), light))) == "1:processes=True"
    assert SHALLOW in for_polled(TIMED, replace(light, uses_processes=True))
    assert is_polled(replace(POLLED, kind="poll", rate=LAW / 2))
    assert not is_polled(replace(POLLED, rate=LAW / 2))
    assert not is_polled(replace(POLLED, rows=None))


def of_reader(op_type, rate, consumer=500.0, others=()):
    reader = Stage(1, op_type, node=1, rate=rate, kind="wait", capacity=16)
    stages = (replace(BATCH, rate=900.0), reader, *others)
    loop = Loop(stages, consumer=consumer, rate=90.0, free_cores=6.0, process_cores=0.5, cpu_count=8)
    found = worth_trying(candidates(loop, {}, "time", Recorded(readers=frozenset({1}))), ())
    return [one for one in found if one.changes and one.changes[0].op_id == 1]


@pytest.mark.parametrize(
    ("op_type", "permutes"), [("MindRecordOp", False), ("ImageFolderOp", False), ("TFReaderOp", True)]
)
def test_a_slow_reader_gets_more_workers(op_type, permutes):
    found = of_reader(op_type, 100.0)
    assert {one.permutes for one in found} == {permutes}
    assert found[0].changes[0].workers >= 5  # of 100 batches/s each, for a loop that takes 500
    assert found[0].prediction.ratio == pytest.approx(5.0, rel=0.05)


def test_readers_are_tried_without_a_prediction_too_and_never_in_another_order_below_a_zip():
    """Its rows would stand beside other rows of the other reader."""
    joined = Stage(3, "ZipOp", node=3, rate=5000.0)
    assert of_reader("TFReaderOp", 100.0, others=(joined,)) == []
    assert {one.permutes for one in of_reader("MindRecordOp", 100.0, others=(joined,))} == {False}
    assert {one.is_unknown for one in of_reader("ImageFolderOp", None)} == {True}
    assert of_reader("MindRecordOp", 5000.0, consumer=90.0) == []
    stages = (replace(BATCH, rate=900.0), Stage(1, "TFReaderOp", node=1))
    loop = Loop(stages, consumer=500.0, rate=90.0, free_cores=0.0, process_cores=1.9, cpu_count=2, cores=2.0)
    found = keys(one for one in candidates(loop, {}, "time", Recorded(readers=frozenset({1}))) if one.is_unknown)
    assert found == ["1:workers=2", "runtime_threads=1", "threads=1"]


def test_readers_by_file_are_those_of_mindspore_that_no_sampler_asks():
    """Every class of MindSpore's is of one sort; those that take a sampler are asked for row numbers."""
    import mindspore.dataset as ds

    from pipeprof.collect.probe.describe import READERS

    found = {}
    for name, made in source_classes().items():
        op = f"{name.removesuffix('Dataset')}Op"
        found[READERS.get(op, op)] = issubclass(made, ds.engine.datasets.MappableDataset)
    assert {op for op, mappable in found.items() if not mappable} <= BY_FILE
    assert not {op for op, mappable in found.items() if mappable} & BY_FILE
