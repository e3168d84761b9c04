"""What the report says about reading and caches."""

from dataclasses import asdict

import pytest
from cache_points import cache_point

from pipeprof.report.sections.storage import storage_section

POINT = asdict(cache_point(op_id=2, site="train.py:9", rows=240.0, bytes=2**20, ratio=1.66, python=False))


def section(**more):
    found = {
        "rep": 0, "rank": 0, "split": {"wait": 0.42, "reading": 0.4, "preparing": 0.02, "hand_over": 0.0},
        "curve": [{"cached": share, "rate": 50 + 50 * share, "ratio": 1 + share} for share in (0.0, 1.0)], "best": 2,
        "points": [POINT, POINT | {"op_id": 1, "bytes": None, "rows": None, "disk_ratio": 0.5, "changes": "random"}],
        "readers": [3], "branches": False, "doubts": [],
    } | more  # fmt: skip
    return storage_section({"storage": [found]}, (0, 0))


def test_the_wait_is_split_and_the_best_cache_named():
    assert section().strong == [
        "In the steady state the loop waits for data 42.0 % of its time: 40.0 % for reading, 2.0 % for preparing",
        "Best cache: of 1.00 MiB, in memory, after MapOp 2 decode (train.py:9): predicted x1.66",
    ]
    assert "No cache that leaves the data as it is would bring 2 % or more" in section(best=None).strong


def test_the_tables_say_what_is_not_known():
    curve, points = section().blocks
    assert curve.rows == [["0.0 %", "50.0", "x1.00"], ["100.0 %", "100.0", "x2.00"]]
    assert points.rows[1][1:] == ["-", "-", "x1.66", "x0.50", "random: every epoch would get the same"]
    assert points.rows[0][4:] == ["-", "no sign of it"]


def test_without_a_timed_reader_there_is_no_curve():
    unknown = {"wait": 0.42, "reading": None, "preparing": None, "hand_over": 0.01}
    found = section(readers=[], split=unknown)
    assert len(found.blocks) == 1
    assert any("not known" in note for note in found.notes)
    assert found.strong[0].endswith("waits for data 42.0 % of its time: 1.0 % for handing over")
    found = section(readers=[], split=unknown | {"reading": 0.0, "preparing": 0.41})
    assert "No source waits for what it reads" in found.notes
    assert not any("not known" in note for note in found.notes)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"branches": True, "points": []}, "several sources"),
        ({"doubts": ["lock"]}, "(GIL)"),
        ({"doubts": ["no_core"]}, "No core was idle"),
        ({"points": [POINT | {"python": True}]}, "Python of yours"),
    ],
)
def test_what_makes_it_doubtful_is_said(more, told):
    assert any(told in note for note in section(**more).notes)


def test_several_pipelines_are_told_apart_by_their_places():
    one = {"rep": 0, "rank": 0, "pipeline_key": "a"}
    split = {"wait": 0.4, "reading": None, "preparing": None, "hand_over": 0.0}
    unknown = {"curve": [], "best": None, "readers": [], "branches": False, "doubts": []}
    advice = unknown | {"split": split, "points": [POINT]}
    made = [one | {"site": "train.py:7"}, one | {"pipeline_key": "b", "site": None}]
    content = {"storage": [one | advice, one | advice | {"pipeline_key": "b"}], "pipeline": {"pipelines": made}}
    found = storage_section(content, (0, 0))
    assert [line.partition(" the ")[0] for line in found.strong[::2]] == [
        "Pipeline at train.py:7: In",
        "Pipeline at an unknown place: In",
    ]
    assert [block.caption for block in found.blocks] == [("Pipeline at train.py:7",), ("Pipeline at an unknown place",)]
    assert len(found.notes) == len({*found.notes}) == 3


def test_another_rank_has_a_section_of_its_own():
    assert storage_section({"storage": []}, (0, 0)).strong == []


def test_a_cache_that_was_measured_before_is_not_said_to_be_predicted():
    found = section(points=[POINT | {"trial": "tune"}])
    assert "predicted" not in found.strong[-1]
    assert found.strong[-1].endswith("measured before, by `tune`: x1.66")
    assert found.blocks[-1].rows[0][3] == "x1.66 (measured)"
