"""Dataset graphs that MindSpore itself has trouble with, or describes in its own way."""

import pytest

pytestmark = pytest.mark.mindspore


@pytest.fixture
def recorded(pipeprof):
    def record(kind):
        found = pipeprof.collect(pipeprof.script("sources.py", kind), "-q")
        assert found.done.returncode == 0, found.done.stderr
        assert "steps 15" in found.done.stdout
        return found

    return record


def test_a_batch_from_two_branches_of_a_concat_does_not_crash_mindspore(recorded):
    found = recorded("concat")
    assert "ConcatOp" in {row["op_type"] for row in found.rows("pipeline_op")}
    calls = found.rows("op_service")
    assert {row["source"] for row in calls} == {"hook"}  # no timing lines
    assert {(row["in_bytes"], row["out_bytes"]) for row in calls} == {(0, 12)}
    assert {row["source_rows"] for row in found.rows("pipeline_op")} == {None, 60}


def test_a_mindrecord_source_is_part_of_the_pipeline(recorded):
    found = recorded("mindrecord")
    ops = sorted(found.rows("pipeline_op"), key=lambda row: row["op_id"])
    assert [row["op_type"] for row in ops] == ["BatchOp", "MindRecordOp"]
    (pipeline,) = found.rows("pipeline")
    assert (pipeline["epoch_batches"], pipeline["batch_bytes"]) == (15, 8 * 12)
