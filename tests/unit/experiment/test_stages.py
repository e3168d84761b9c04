"""Which operator is meant, and the facts a prediction starts from."""

from types import SimpleNamespace

import pytest

from pipeprof.errors import UsageError
from pipeprof.experiment import stages
from pipeprof.experiment.stages import Pipeline, find_op
from pipeprof.query.rows import JudgedStage

OPS = tuple(
    {"op_id": number, "op_type": kind, "name": name}
    for number, (kind, name) in enumerate(
        [("BatchOp", None), ("MapOp", "pkg.decode"), ("MapOp", "Crop.resize"), ("GeneratorOp", "Source")]
    )
)
PIPELINE = Pipeline("key", "train.py:1", OPS)


@pytest.mark.parametrize(
    ("text", "op_id"),
    [("2", 2), ("pkg.decode", 1), ("resize", 2), ("GeneratorOp", 3), ("generator", 3), ("batch", 0), ("Source", 3)],
)
def test_operators_are_found_by_number_name_or_type(text, op_id):
    assert find_op([PIPELINE], text)[1]["op_id"] == op_id


def test_an_ambiguous_type_lists_its_operators():
    with pytest.raises(UsageError, match=r"names 2 operators: 1 .pkg.decode., 2 .Crop.resize."):
        find_op([PIPELINE], "map")


def test_a_wrong_name_lists_near_ones():
    with pytest.raises(UsageError) as error:
        find_op([PIPELINE], "decod")
    assert "pkg.decode" in error.value.hint
    with pytest.raises(UsageError) as error:
        find_op([PIPELINE], "zzzz")
    assert "3 (Source)" in error.value.hint


def engine_of(*waits):
    """Of ranks that waited so long each."""
    pipelines = [
        {"rep": 0, "rank": rank, "role": "train", "pipeline_key": "a", "site": "t.py:1", "wait_ns": wait}
        for rank, wait in enumerate(waits)
    ]
    rows = {"queue/pipelines": pipelines, "queue/tree": []}
    load = [
        dict.fromkeys(JudgedStage.__struct_fields__)
        | {"rep": 0, "rank": rank, "pipeline_key": "a", "op_id": -1, "op_type": "consumer"}
        for rank in range(len(waits))
    ]
    return SimpleNamespace(rows=lambda name: rows.get(name, load))


@pytest.mark.parametrize(("waits", "rank"), [((10, 100), 1), ((100, 110), 0), ((100, 10, 130), 2), ((0, 0), 0)])
def test_of_ranks_the_one_is_looked_at_that_the_others_wait_for(monkeypatch, waits, rank):
    monkeypatch.setattr(stages, "with_kinds", lambda rows: rows)
    (found,) = stages.training_pipelines(engine_of(*waits))
    assert {stage.rank for stage in found.load} == {rank}
