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
    assert {row["source"] for row in found.rows("op_service")} == {"hook"}  # no timing lines


def test_a_mindrecord_source_is_part_of_the_pipeline(recorded):
    found = sorted(recorded("mindrecord").rows("pipeline_op"), key=lambda row: row["op_id"])
    assert [row["op_type"] for row in found] == ["BatchOp", "MindRecordOp"]
