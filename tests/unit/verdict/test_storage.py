"""What caches bring: a source of 4 ms a row that waits for files, maps of 2 and 1 ms, batches of 4, a loop of 10 ms."""

from dataclasses import replace

import pytest
from cache_points import cache_point
from typed_rows import of_dicts

from pipeprof.verdict import storage
from pipeprof.verdict.capacity import Trial
from pipeprof.verdict.storage import CACHE_BYTES, best_point

storage_of = of_dicts(storage.storage_of)

storage = of_dicts(storage.small_files)

MS = 1e6
PLACE = {"rep": 0, "rank": 0, "pipeline_key": "a"}


def row(op_id, op_type, row_ms, rows, **more):
    work = row_ms * rows * MS
    times = {"work_ns": work, "row_ns": row_ms * MS, "rate": 1e9 / work if work else None, "rows_per_batch": rows}
    return PLACE | {"op_id": op_id, "op_type": op_type, "workers": 1} | times | more


def load(wait=6.0, source_ms=4.0, **more):
    pace = {"wait_share": wait / (10 + wait), "loop_rate": 1000 / (10 + wait), "consumer_rate": 100.0} | more
    ops = [
        row(-1, "consumer", 10, 1), row(0, "BatchOp", 0.01, 1), row(1, "MapOp", 1, 4, name="crop", is_python=True),
        row(2, "MapOp", 2, 4, name="decode", is_python=True),
        row(3, "GeneratorOp", source_ms, 4, name="F", is_python=True),
    ]  # fmt: skip
    return [one | pace for one in ops]


def facts(**source):
    """A row of 1000 bytes becomes one of 4000 and one of 500; the source waits for all of its time."""
    known = {"epoch_batches": 25, "batch_bytes": 2000}
    ops = [
        {"op_id": 0, "op_type": "BatchOp", "consumer_id": None, "producers": 1, "rows_per_batch": 1},
        {"op_id": 1, "op_type": "MapOp", "consumer_id": 0, "producers": 1, "in_bytes": 4000, "out_bytes": 500},
        {"op_id": 2, "op_type": "MapOp", "consumer_id": 1, "producers": 1, "in_bytes": 1000, "out_bytes": 4000},
        {"op_id": 3, "op_type": "GeneratorOp", "consumer_id": 2, "producers": 0, "rows_per_batch": 4, "in_bytes": 0,
         "out_bytes": 1000, "wait_share": 1.0, "read_bytes": 1000, "source_rows": 100},
    ]  # fmt: skip
    ops[3] |= source
    return [PLACE | known | one for one in ops]


def advice(rows=None, about=None, trials=()):
    (found,) = storage_of(rows or load(), about or facts(), 4.0, trials)
    return found


KEPT = Trial("tune", "MapOp", "crop", {"cache": None}, {"cache": CACHE_BYTES}, 1.05, 1.01, 1.09)


def test_a_cache_that_was_measured_before_has_that_in_place_of_a_prediction():
    points = {one.op_id: one for one in advice(trials=[KEPT])["points"]}
    assert [getattr(points[1], name) for name in ("trial", "ratio", "low", "high")] == ["tune", 1.05, 1.01, 1.09]
    assert points[2] == {one.op_id: one for one in advice()["points"]}[2]
    assert points[2].trial is None


@pytest.mark.parametrize(
    "other",
    [
        replace(KEPT, name="decode2"),
        replace(KEPT, new={"cache": 1}),
        replace(KEPT, new={"cache": CACHE_BYTES, "workers": 4}),
    ],
)
def test_a_trial_of_something_else_is_no_trial_of_the_cache(other):
    assert advice(trials=[other]) == advice()


def test_the_wait_is_for_reading_where_the_loop_limits_without_it():
    assert advice()["split"] == {
        "wait": pytest.approx(6 / 16), "reading": pytest.approx(6 / 16), "preparing": pytest.approx(0), "hand_over": 0,
    }  # fmt: skip


def test_what_stays_without_reading_is_preparing():
    assert advice(load(wait=10.0, source_ms=5.0))["split"]["reading"] == pytest.approx(0.5)
    decode = {"row_ns": 3.5 * MS, "work_ns": 14 * MS, "rate": 1000 / 14}
    rows = [one | (decode if one["op_id"] == 2 else {}) for one in load(wait=10.0, source_ms=5.0)]
    found = advice(rows)["split"]
    assert (found["reading"], found["preparing"]) == (pytest.approx(6 / 20), pytest.approx(4 / 20))


def test_the_hand_over_is_neither():
    found = advice(about=[one | {"hand_over_ns": 0.8 * MS} for one in facts()])["split"]
    assert found["hand_over"] == pytest.approx(0.8 / 16)
    assert found["wait"] == pytest.approx(found["reading"] + found["preparing"] + found["hand_over"])
    assert found["reading"] == pytest.approx(1 - 10.8 / 16)


def test_what_reading_takes_is_not_known_where_no_source_was_timed():
    found = advice(about=facts(wait_share=None))["split"]
    assert (found["wait"], found["reading"], found["preparing"]) == (pytest.approx(6 / 16), None, None)
    assert advice(about=facts(wait_share=0.0))["split"]["reading"] == 0


def test_partly_cached_rows_take_the_rest_of_the_time():
    assert [one["ratio"] for one in advice()["curve"]] == pytest.approx([1, 16 / 12, 1.6, 1.6, 1.6])
    assert [one["rate"] for one in advice()["curve"]][1] == pytest.approx(1000 / 12)


def test_what_a_source_computes_is_not_read():
    found = advice(about=facts(wait_share=0.25))
    assert found["curve"][-1]["ratio"] == pytest.approx(16 / 12)


def test_a_map_that_reads_no_file_is_no_reader():
    about = facts()
    about[2] |= {"wait_share": 1.0, "read_bytes": 0.0}
    assert advice(about=about)["readers"] == [3]
    about[2] |= {"read_bytes": 2000.0}
    assert advice(about=about)["readers"] == [2, 3]


def test_each_point_has_its_size():
    points = {one.op_type + (one.name or ""): one for one in advice()["points"]}
    sizes = [("GeneratorOpF", 100_000), ("MapOpdecode", 400_000), ("MapOpcrop", 50_000), ("BatchOp", 50_000)]
    assert [(name, one.bytes) for name, one in points.items()] == sizes
    assert points["BatchOp"].rows == 25


def test_sizes_are_known_from_the_batch_on_where_the_source_tells_none():
    found = advice(about=facts(out_bytes=None, source_rows=None))
    assert [one.bytes for one in found["points"]] == [100_000, 400_000, 50_000, 50_000]


def test_a_cache_holds_the_rows_of_its_own_process():
    """Of 800 rows an epoch of this rank has 25 batches of 4: a shard, or a part that was taken."""
    assert [one.rows for one in advice(about=facts(source_rows=800))["points"]] == [100, 100, 100, 25]
    about = [one | {"epoch_batches": 50} for one in facts()]  # two passes over the source
    assert [one.rows for one in advice(about=about)["points"]] == [100, 100, 100, 25]


def test_a_map_behind_a_cache_that_was_not_timed_may_limit_as_well():
    rows = load(wait=70.0, source_ms=12.0)
    rows[2] |= {"rate": None, "work_ns": None, "row_ns": None, "cores": 0.9}
    assert [one.untimed for one in advice(rows)["points"]] == [True, True, False, False]
    assert not any(one.untimed for one in advice()["points"])


def test_a_row_is_not_smaller_than_what_was_made_of_it():
    """Sizes are means of rows that differ: a map may have been given larger ones than the source was seen to make."""
    about = facts()
    about[1] |= {"in_bytes": None, "out_bytes": None}
    about[2] |= {"in_bytes": 1010, "out_bytes": 5}
    assert advice(about=about)["points"][1].row_bytes == 5


def test_an_unknown_size_is_null():
    about = facts(out_bytes=None)
    about[2] |= {"in_bytes": None, "out_bytes": None}
    assert advice(about=about)["points"][0].bytes is None
    assert advice(about=about)["points"][1].bytes == 400_000


def test_the_smallest_of_the_best_is_recommended():
    assert advice()["best"] == 1  # crop: 50 kB, as fast as all others, nearer the source than its batch


def test_rows_that_grow_are_slower_to_read_than_to_make():
    points = advice()["points"]
    assert points[0].disk_ratio == pytest.approx(1)
    assert points[1].disk_ratio == pytest.approx(1 / 4)
    assert points[2].disk_ratio == pytest.approx(1.6)


def test_no_cache_where_the_loop_limits():
    assert advice(load(wait=0.0, source_ms=1.0))["best"] is None


@pytest.mark.parametrize(
    ("op_type", "name", "why"),
    [
        ("MapOp", "RandomCrop", "random"),
        ("MapOp", "Decode, RandAugment", "random"),
        ("MapOp", "CutMixBatch", "random"),
        ("ShuffleOp", None, "order"),
    ],
)
def test_a_cache_that_changes_the_data_is_never_the_best(op_type, name, why):
    rows, about = load(), facts()
    rows[3] |= {"op_type": op_type, "name": name}
    about[2] |= {"op_type": op_type}
    found = advice(rows, about)
    assert [one.changes for one in found["points"]] == [None, why, why, why]
    assert found["best"] == 3


@pytest.mark.parametrize("name", ["Decode, Normalize", "debug_gauges", "Laughter", None])
def test_a_name_that_tells_of_no_random_numbers_changes_nothing(name):
    rows = load()
    rows[3] |= {"name": name}
    assert [one.changes for one in advice(rows)["points"]] == [None, None, None, "batches"]


def test_kept_batches_are_never_the_best_because_sources_shuffle():
    rows = load()
    rows[1] |= {name: row(0, "BatchOp", 40, 1)[name] for name in ("row_ns", "work_ns", "rate")}
    found = advice(rows)
    assert max(found["points"], key=lambda one: one.ratio).op_type == "BatchOp"
    assert found["best"] != 0


def test_several_sources_have_no_one_cache():
    about = facts()
    about[0] |= {"producers": 2}
    found = advice(about=about)
    assert (found["branches"], found["points"], found["best"]) == (True, [], None)


def test_waiting_for_the_lock_looks_like_reading():
    assert advice(load(gil_share=0.95))["doubts"] == ["lock"]
    assert advice()["doubts"] == []


def test_a_pipeline_without_times_has_no_advice():
    assert storage_of([one | {"loop_rate": None} for one in load()], facts(), 4.0) == []


def test_the_best_cache_pays():
    """It is the smallest within 2 % of the fastest, but one that brings nothing is none."""
    assert best_point([cache_point(bytes=10), cache_point(op_id=0, bytes=90, ratio=1.02)]).op_id == 0
    assert best_point([cache_point(bytes=10, ratio=1.02), cache_point(op_id=0, bytes=90, ratio=1.03)]).op_id == 1


def test_without_points_there_is_no_best():
    assert best_point([]) is None


def small(rows=None, about=None, **source):
    rows = rows or load()
    about = about or facts(**({"read_bytes": 2000.0} | source))
    found = storage_of(rows, about, 8.0)[0]
    return storage(found, rows, about)


def test_small_files_are_worth_one_large_one_where_the_loop_waits_for_them():
    found = small()
    assert (found["op_type"], found["read_bytes"]) == ("GeneratorOp", 2000.0)
    assert found["most"] == pytest.approx(storage_of(load(), facts(), 8.0)[0]["curve"][-1]["ratio"])
    assert found["most"] > 1.05


@pytest.mark.parametrize(
    "source", [{"read_bytes": 5e6}, {"read_bytes": None}, {"read_bytes": 0.0}, {"wait_share": 0.0}]
)
def test_large_files_none_or_no_wait_are_not(source):
    assert small(**source) is None


def test_a_reader_of_mindspore_that_reads_one_file_is_not():
    rows, about = load(), facts(read_bytes=2000.0)
    for one in (rows, about):
        one[3] |= {"op_type": "MindRecordOp"}
    assert small(rows, about) is None
