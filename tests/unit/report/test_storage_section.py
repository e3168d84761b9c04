"""What the report says about reading and caches."""

from __future__ import annotations

import pytest

from pipeprof.report.sections.storage import storage_section

POINT = {
    "op_type": "MapOp", "op_id": 2, "name": "decode", "site": "train.py:9", "rows": 240.0, "bytes": 2**20, "ratio": 1.66,
    "disk_ratio": None, "changes": None, "python": False,
}  # fmt: skip


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
    found = section(readers=[])
    assert len(found.blocks) == 1
    assert any("not known" in note for note in found.notes)


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


def test_another_rank_has_a_section_of_its_own():
    assert storage_section({"storage": []}, (0, 0)).strong == []
