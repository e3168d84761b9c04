"""What caches bring: a source of 4 ms a row that waits for files, maps of 2 and 1 ms, batches of 4, a loop of 10 ms."""

from dataclasses import replace

import pytest
from cache_points import cache_point
from typed_rows import of_dicts

from pipeprof.verdict import storage
from pipeprof.verdict.capacity import Trial
from pipeprof.verdict.storage import CACHE_BYTES, best_point

storage_of, small_files = of_dicts(storage.storage_of), of_dicts(storage.small_files)

MS = 1e6
PLACE = {"rep": 0, "rank": 0, "pipeline_key": "a"}


def row(op_id, op_type, row_ms, rows, **more):
    work = row_ms * rows * MS
    times = {"work_ns": work, "row_ns": row_ms * MS, "rate": 1e9 / work if work else None, "rows_per_batch": rows}
    return PLACE | {"op_id": op_id, "op_type": op_type, "workers": 1} | times | more


def changed(ops, changes):
    """`changes`: facts of some of these rows, by the number of the operator."""
    return [one | (changes or {}).get(one["op_id"], {}) for one in ops]


def load(wait=6.0, source_ms=4.0, ops=None, **more):
    pace = {"wait_share": wait / (10 + wait), "loop_rate": 1000 / (10 + wait), "consumer_rate": 100.0} | more
    rows = [
        row(-1, "consumer", 10, 1), row(0, "BatchOp", 0.01, 1), row(1, "MapOp", 1, 4, name="crop", is_python=True),
        row(2, "MapOp", 2, 4, name="decode", is_python=True),
        row(3, "GeneratorOp", source_ms, 4, name="F", is_python=True),
    ]  # fmt: skip
    return changed([one | pace for one in rows], ops)


def facts(ops=None, every=None, **source):
    """A row of 1000 bytes becomes one of 4000 and one of 500; the source waits for all of its time."""
    known = {"epoch_batches": 25, "batch_bytes": 2000} | (every or {})
    rows = [
        {"op_id": 0, "op_type": "BatchOp", "consumer_id": None, "producers": 1, "rows_per_batch": 1},
        {"op_id": 1, "op_type": "MapOp", "consumer_id": 0, "producers": 1, "in_bytes": 4000, "out_bytes": 500},
        {"op_id": 2, "op_type": "MapOp", "consumer_id": 1, "producers": 1, "in_bytes": 1000, "out_bytes": 4000},
        {"op_id": 3, "op_type": "GeneratorOp", "consumer_id": 2, "producers": 0, "rows_per_batch": 4, "in_bytes": 0,
         "out_bytes": 1000, "wait_share": 1.0, "read_bytes": 1000, "source_rows": 100} | source,
    ]  # fmt: skip
    return changed([PLACE | known | one for one in rows], ops)


def advice(rows=None, about=None, trials=()):
    (found,) = storage_of(rows or load(), about or facts(), 4.0, trials)
    return found


def points(column, rows=None, about=None):
    return [getattr(one, column) for one in advice(rows, about)["points"]]


KEPT = Trial("tune", "MapOp", "crop", {"cache": None}, {"cache": CACHE_BYTES}, 1.05, 1.01, 1.09)


def test_a_cache_that_was_measured_before_has_that_in_place_of_a_prediction():
    points = {one.op_id: one for one in advice(trials=[KEPT])["points"]}
    assert [getattr(points[1], name) for name in ("trial", "ratio", "low", "high")] == ["tune", 1.05, 1.01, 1.09]
    assert points[2] == {one.op_id: one for one in advice()["points"]}[2]
    assert points[2].trial is None
    others = {"name": "decode2"}, {"new": {"cache": 1}}, {"new": {"cache": CACHE_BYTES, "workers": 4}}
    for other in others:
        assert advice(trials=[replace(KEPT, **other)]) == advice()


SLOW_DECODE = {2: {"row_ns": 3.5 * MS, "work_ns": 14 * MS, "rate": 1000 / 14}}


@pytest.mark.parametrize(
    ("rows", "about", "reading", "preparing", "hand_over"),
    [
        (load(), facts(), 6 / 16, 0, 0),  # where the loop limits without it
        (load(wait=10.0, source_ms=5.0), facts(), 0.5, 0, 0),
        (load(wait=10.0, source_ms=5.0, ops=SLOW_DECODE), facts(), 6 / 20, 4 / 20, 0),  # what stays without reading
        (load(), facts(every={"hand_over_ns": 0.8 * MS}), 1 - 10.8 / 16, 0, 0.8 / 16),
        (load(), facts(wait_share=None), None, None, 0),  # no source was timed
        (load(), facts(wait_share=0.0), 0, 6 / 16, 0),
    ],
)
def test_the_wait_is_for_reading_preparing_or_the_hand_over(rows, about, reading, preparing, hand_over):
    split = advice(rows, about)["split"]
    expected = {"wait": rows[0]["wait_share"], "reading": reading, "preparing": preparing, "hand_over": hand_over}
    assert split == pytest.approx(expected, abs=1e-9)


def test_partly_cached_rows_take_the_rest_of_the_time_and_what_a_source_computes_is_not_read():
    curve = advice()["curve"]
    assert [one["ratio"] for one in curve] == pytest.approx([1, 16 / 12, 1.6, 1.6, 1.6])
    assert curve[1]["rate"] == pytest.approx(1000 / 12)
    assert advice(about=facts(wait_share=0.25))["curve"][-1]["ratio"] == pytest.approx(16 / 12)


@pytest.mark.parametrize(("read", "readers"), [(0.0, [3]), (2000.0, [2, 3])])
def test_a_map_that_reads_no_file_is_no_reader(read, readers):
    assert advice(about=facts({2: {"wait_share": 1.0, "read_bytes": read}}))["readers"] == readers


UNKNOWN = {"in_bytes": None, "out_bytes": None}


@pytest.mark.parametrize(
    ("about", "column", "expected"),
    [
        (facts(), "op_id", [3, 2, 1, 0]),
        (facts(), "bytes", [100_000, 400_000, 50_000, 50_000]),
        (facts(out_bytes=None, source_rows=None), "bytes", [100_000, 400_000, 50_000, 50_000]),  # from the batch on
        (facts({2: UNKNOWN}, out_bytes=None), "bytes", [None, 400_000, 50_000, 50_000]),
        (facts(), "rows", [100, 100, 100, 25]),
        (facts(source_rows=800), "rows", [100, 100, 100, 25]),  # an epoch of this rank is a shard of it, or a part
        (facts(every={"epoch_batches": 50}), "rows", [100, 100, 100, 25]),  # two passes over the source
        # sizes are means of rows that differ: no row is smaller than what was made of it
        (facts({1: UNKNOWN, 2: {"in_bytes": 1010, "out_bytes": 5}}), "row_bytes", [1000, 5, 500, 2000]),
        (facts(), "untimed", [False] * 4),
        (facts(), "disk_ratio", pytest.approx([1, 1 / 4, 1.6, 1.6])),  # rows that grow are slower to read than to make
    ],
)
def test_each_point_has_its_size(about, column, expected):
    assert points(column, about=about) == expected


@pytest.mark.parametrize(("op_type", "name", "why"), [
    ("MapOp", "RandomCrop", "random"), ("MapOp", "Decode, RandAugment", "random"), ("MapOp", "CutMixBatch", "random"),
    ("ShuffleOp", None, "order"),
])  # fmt: skip
def test_a_cache_that_changes_the_data_is_never_the_best(op_type, name, why):
    found = advice(load(ops={2: {"op_type": op_type, "name": name}}), facts({2: {"op_type": op_type}}))
    assert [one.changes for one in found["points"]] == [None, why, why, why]
    assert found["best"] == 3


@pytest.mark.parametrize("name", ["Decode, Normalize", "debug_gauges", "Laughter", None])
def test_a_name_that_tells_of_no_random_numbers_changes_nothing(name):
    assert points("changes", load(ops={2: {"name": name}})) == [None, None, None, "batches"]


def test_the_smallest_of_the_best_is_recommended_unless_the_loop_the_lock_or_several_sources_limit():
    """Crop: 50 kB, as fast as all others, nearer the source than its batch; within 2 % of the fastest."""
    assert advice()["best"] == 1
    assert advice(load(wait=0.0, source_ms=1.0))["best"] is None  # the loop limits
    assert best_point([cache_point(bytes=10), cache_point(op_id=0, bytes=90, ratio=1.02)]).op_id == 0
    assert best_point([cache_point(bytes=10, ratio=1.02), cache_point(op_id=0, bytes=90, ratio=1.03)]).op_id == 1
    assert best_point([]) is None
    slow = {name: row(0, "BatchOp", 40, 1)[name] for name in ("row_ns", "work_ns", "rate")}
    found = advice(load(ops={0: slow}))
    assert max(found["points"], key=lambda one: one.ratio).op_type == "BatchOp"
    assert found["best"] != 0
    found = advice(about=facts({0: {"producers": 2}}))
    assert (found["branches"], found["points"], found["best"]) == (True, [], None)
    assert storage_of(load(loop_rate=None), facts(), 4.0) == []
    assert (advice(load(gil_share=0.95))["doubts"], advice()["doubts"]) == (["lock"], [])
    untimed = {1: {"rate": None, "work_ns": None, "row_ns": None, "cores": 0.9}}
    assert points("untimed", load(wait=70.0, source_ms=12.0, ops=untimed)) == [True, True, False, False]


@pytest.mark.parametrize(
    ("op_type", "source", "worth"),
    [
        ("GeneratorOp", {"read_bytes": 2000.0}, True),
        ("GeneratorOp", {"read_bytes": 5e6}, False),  # large files
        ("GeneratorOp", {"read_bytes": None}, False),
        ("GeneratorOp", {"read_bytes": 0.0}, False),
        ("GeneratorOp", {"read_bytes": 2000.0, "wait_share": 0.0}, False),
        ("MindRecordOp", {"read_bytes": 2000.0}, False),  # it reads one file
    ],
)
def test_small_files_are_worth_one_large_one_where_the_loop_waits_for_them(op_type, source, worth):
    rows, about = load(ops={3: {"op_type": op_type}}), facts(**{"op_type": op_type} | source)
    whole = storage_of(rows, about, 8.0)[0]
    found = small_files(whole, rows, about)
    assert (found is not None) is worth
    if worth:
        assert (found["op_type"], found["read_bytes"]) == ("GeneratorOp", 2000.0)
        assert found["most"] == pytest.approx(whole["curve"][-1]["ratio"])
        assert found["most"] > 1.05
