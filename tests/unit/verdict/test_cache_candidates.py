"""Which caches are tried, and when."""

from dataclasses import replace

import pytest
from cache_points import cache_point

from pipeprof.verdict.candidate import Recorded, cached, kept_rows
from pipeprof.verdict.capacity import Loop, Stage, Trial
from pipeprof.verdict.options import learned
from pipeprof.verdict.storage import CACHE_BYTES
from pipeprof.verdict.tuning import candidates

LOOP = Loop(
    (Stage(0, "BatchOp", rate=900.0), Stage(1, "MapOp", rate=100.0, kind="wait"), Stage(2, "GeneratorOp", rate=400.0)),
    consumer=500.0, rate=100.0, cpu_count=2,
)  # fmt: skip


def point(op_id, op_type, ratio, size=1000, changes=None):
    return cache_point(op_id=op_id, op_type=op_type, ratio=ratio, bytes=size, changes=changes)


SOURCE, MAP, BATCH = point(3, "GeneratorOp", 1.0), point(2, "MapOp", 4.0), point(0, "BatchOp", 4.0)


@pytest.mark.parametrize(
    ("caches", "expected"),
    [
        ([SOURCE, MAP, BATCH], [2]),
        ([SOURCE, MAP, point(1, "MapOp", 4.01)], [2]),  # as good, and more may still change behind it
        ([SOURCE, MAP, point(1, "MapOp", 5.0)], [2, 1]),  # the first one, too, should the best not do
        ([SOURCE, point(2, "MapOp", 4.0, CACHE_BYTES + 1)], []),
        ([SOURCE, point(2, "MapOp", 4.0, None)], [2]),  # the limit holds while it runs
        ([SOURCE, point(2, "MapOp", 4.0, changes="random")], []),
        ([point(3, "ImageFolderOp", 1.0), MAP], []),
        ([SOURCE, point(2, "MapOp", 1.01)], []),
        ([], []),
    ],
)
def test_behind_a_python_source_and_its_maps_where_it_pays(caches, expected):
    assert [one.op_id for one in kept_rows(caches)] == expected


def test_workers_that_bring_nearly_as_much_come_first():
    first = [one.key for one in candidates(LOOP, {}, "time", Recorded([SOURCE, point(1, "MapOp", 2.1)]))]
    assert first.index("1:workers=2") < first.index(f"1:cache={CACHE_BYTES}")
    first = [one.key for one in candidates(LOOP, {}, "time", Recorded([SOURCE, point(1, "MapOp", 4.0)]))]
    assert first[0] == f"1:cache={CACHE_BYTES}"


def test_a_cache_that_was_measured_before_has_that_in_place_of_a_prediction():
    trial = Trial("tune", "MapOp", None, {"cache": None}, {"cache": CACHE_BYTES}, 1.31, 1.21, 1.41)
    found = cached(point(1, "MapOp", 4.0), replace(LOOP, trials=(trial,))).prediction
    assert (found.ratio, found.low, found.high, found.trial) == (1.31, 1.21, 1.41, "tune")
    assert cached(point(1, "MapOp", 4.0), LOOP).prediction.ratio == 4.0


def test_a_cache_that_failed_teaches_nothing_of_workers():
    found = candidates(LOOP, {}, "time", Recorded([SOURCE, point(1, "MapOp", 4.0)]))
    cache = next(one for one in found if "cache" in one.key)
    after = {one.key: one.prediction for one in learned(found, [(cache, 1.0)])}
    assert after["1:workers=2"] == next(one for one in found if one.key == "1:workers=2").prediction


def test_only_speed_asks_for_memory():
    assert not [one for one in candidates(LOOP, {}, "memory", Recorded([SOURCE, MAP])) if "cache" in one.key]


def test_of_a_cache_in_front_of_what_was_not_timed_only_the_most_is_known():
    assert cached(MAP, LOOP).prediction.low == pytest.approx(3.6)
    doubtful = cached(replace(MAP, untimed=True), LOOP).prediction
    assert (doubtful.ratio, doubtful.low, doubtful.high) == (None, 1.0, pytest.approx(4.4))
    assert doubtful.reason["code"] == "others_may_limit"
