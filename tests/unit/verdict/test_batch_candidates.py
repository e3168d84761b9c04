"""When a batch is tried in front of its maps."""

from dataclasses import replace

import pytest

from pipeprof.verdict.capacity import Loop, Stage
from pipeprof.verdict.tuning import candidates

BATCH = Stage(0, "BatchOp", node=0, rate=200.0)
NEAR = Stage(1, "MapOp", node=1, rate=200.0, row_ns=2e5, rows=32.0, is_python=True)
FAR = replace(NEAR, op_id=2, node=2)
SOURCE = Stage(3, "GeneratorOp", node=3, rate=90.0, is_python=True)


def tried(*stages):
    found = candidates(Loop(stages, consumer=500.0, rate=80.0, cpu_count=2), {})
    return [change.maps_after for one in found for change in one.changes if change.maps_after]


def test_in_front_of_all_of_them():
    assert tried(BATCH, NEAR, FAR, SOURCE) == [2]


def test_of_those_that_are_python_alone_too():
    assert sorted(tried(BATCH, NEAR, replace(FAR, is_python=False), SOURCE)) == [1, 2]


def test_first_of_all_whose_effect_is_unknown():
    burst = replace(SOURCE, kind="burst")
    found = candidates(Loop((BATCH, NEAR, burst), consumer=500.0, rate=80.0, cpu_count=2), {})
    assert next(one for one in found if one.is_unknown).key == "0:maps_after=1"


def test_the_prefetch_size_is_tried_once():
    stages = [replace(stage, kind="burst") for stage in (NEAR, FAR)]
    found = candidates(Loop((BATCH, *stages, SOURCE), consumer=500.0, rate=80.0, cpu_count=2), {})
    sizes = [one for one in found if one.changes and one.changes[0].prefetch and not one.changes[0].workers]
    assert len(sizes) == 1


@pytest.mark.parametrize(
    "stages",
    [
        (BATCH, replace(NEAR, row_ns=5e6), SOURCE),
        (BATCH, replace(NEAR, rows=4.0), SOURCE),
        (BATCH, replace(NEAR, is_python=False), SOURCE),
        (BATCH, replace(NEAR, uses_processes=True), SOURCE),
        (replace(BATCH, node=None), NEAR, SOURCE),
        (replace(BATCH, is_python=True), NEAR, SOURCE),
        (replace(BATCH, op_id=2), replace(NEAR, op_id=0), SOURCE),
    ],
    ids=["long rows", "few rows", "C++", "processes", "unknown place", "per_batch_map", "done already"],
)
def test_where_it_is_not_tried(stages):
    assert tried(*stages) == []
