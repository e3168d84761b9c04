"""Dataset graphs that MindSpore itself has trouble with, or describes in its own way."""

import json

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


def test_a_generator_has_one_worker_whatever_was_asked_for_and_is_told_what_more_would_need(recorded, pipeprof):
    """As MindSpore treats it: 120 rows of 10 ms take 1.2 s."""
    found = recorded("iterated")
    (source,) = [row for row in found.rows("pipeline_op") if row["op_type"] == "GeneratorOp"]
    assert (source["workers"], source["iterated"], source["uses_processes"]) == (1, True, False)
    (first, *_, last) = [row["end_ns"] for row in found.training()]
    assert last - first > 0.9 * 14 * 8 * 10_000_000
    content = json.loads(pipeprof.run("report", found.path, "--format", "json").stdout)
    advice = content["diagnosis"]["suggestions"]
    assert [one["code"] for one in advice] == ["rows_by_number", "cheaper_reading", "keep_rows", "bound"]
    screen = content["first_screen"]
    assert "ive `slow_rows` `__getitem__` and `__len__`, with num_parallel_workers=2" in screen["action"]
    assert screen["gain"].startswith("The loop would run ")
