"""Several repetitions: one number for a step on every screen, details of the least disturbed one, operators added up."""

from __future__ import annotations

import pytest

from pipeprof.errors import UsageError
from pipeprof.report.answer.shape import measured
from pipeprof.report.ops.repetitions import of_repetition
from pipeprof.report.sections.block import focus_of
from pipeprof.report.summary import in_detail, median_step_ns


def step(rep, rank, median, kind="train"):
    return {"rep": rep, "rank": rank, "kind": kind, "steps": 10, "median_ns": median, "mean_ns": median}


DISTURBED = [step(rep, rank, median + rank) for rep, median in enumerate((70e6, 109e6, 69e6)) for rank in (0, 1)]


def test_every_screen_has_the_median_of_the_repetitions():
    assert median_step_ns(DISTURBED) == 70e6 + 1
    assert measured({"steps": {"summary": DISTURBED}}).endswith("slowest median 70.0 ms")


def test_details_are_those_of_the_least_disturbed_repetition_and_its_slowest_rank():
    assert in_detail(DISTURBED) == (2, 1)
    assert focus_of({"steps": {"summary": DISTURBED}}) == (2, 1)
    assert in_detail([step(0, 0, 5.0, "warmup"), step(1, 0, 9.0)]) == (1, 0)
    assert in_detail([]) is None


def op(rep, rank=0, **more):
    return {"rep": rep, "rank": rank, "position": 1, "type": "Add", "phase": "forward", "count": 2, "steps": 3,
            "total_ns": 10, "self_ns": 8, "mean_ns": 5.0, "max_ns": 6, "share": 1.0} | more  # fmt: skip


def test_operators_of_all_repetitions_are_added_up_for_each_rank():
    rows, (note,) = of_repetition([op(0), op(1, max_ns=9, phase="backward"), op(1, rank=1), op(1, type="Mul")], None)
    found = {(row["rank"], row["type"]): row for row in rows}
    assert set(found) == {(0, "Add"), (1, "Add"), (0, "Mul")}
    both = found[0, "Add"]
    assert (both["count"], both["total_ns"], both["self_ns"], both["max_ns"]) == (4, 20, 16, 9)
    assert (both["mean_ns"], both["share"], both["phase"]) == (None, None, "mixed")
    assert note == "of 2 repetitions together; --rep N shows one"


def test_one_repetition_alone_is_as_it_was_recorded():
    rows = [op(0), op(1, count=7)]
    assert of_repetition(rows, 1) == ([rows[1]], [])
    assert of_repetition(rows[:1], None) == (rows[:1], [])
    with pytest.raises(UsageError, match="repetition 4"):
        of_repetition(rows, 4)


def test_memory_that_nobody_recorded_stays_unknown():
    rows, _ = of_repetition([op(0, memory_bytes=None), op(1, memory_bytes=None)], None)
    assert rows[0]["memory_bytes"] is None
