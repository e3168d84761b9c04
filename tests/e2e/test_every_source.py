"""Every dataset class that MindSpore has, read in one process: none loses its operators or its queue samples."""

import json
import linecache

import pytest

pytestmark = pytest.mark.mindspore
ELSEWHERE = {"OBSMindDataset"}  # reads from a cloud's object storage
# What MindSpore calls its readers, where that is not what their class is called.
READERS = {
    "Cifar10Dataset": "CifarOp", "Cifar100Dataset": "CifarOp", "TFRecordDataset": "TFReaderOp",
    "RandomDataset": "RandomDataOp", "MindDataset": "MindRecordOp", "Caltech101Dataset": "GeneratorOp",
    "NumpySlicesDataset": "GeneratorOp", "IWSLT2016Dataset": "IWSLTOp",
}  # fmt: skip


@pytest.fixture
def run(recorded):
    return recorded("every_source.py")


def place(line):
    path, _, number = line.rpartition(":")
    return path, int(number)


@pytest.fixture
def told(run):
    return json.loads(run.done.stdout.splitlines()[-1])


@pytest.fixture
def pipelines(run, told):
    """{class: its operators}; pipelines in the order in which they were read."""
    rows = run.sql(
        "SELECT pipeline_id, queues, op_type, name, pipeline_op.site, callers, children FROM pipeline JOIN pipeline_op USING (pipeline_id)"
        " LEFT JOIN (SELECT pipeline_id, consumer_id AS op_id, count(*) AS children FROM pipeline_edge GROUP BY ALL)"
        " USING (pipeline_id, op_id) WHERE role <> 'hidden' ORDER BY pipeline_id, op_id"
    )
    ids = sorted({row["pipeline_id"] for row in rows})
    return {
        name: [row for row in rows if row["pipeline_id"] == number]
        for name, number in zip(told["read"], ids, strict=True)
    }


def test_every_class_of_this_mindspore_is_read(told):
    assert {name: rows for name, rows in told["read"].items() if not isinstance(rows, int)} == {}
    assert set(told["known"]) == set(told["read"]) | ELSEWHERE


def test_none_loses_its_queue_samples(pipelines):
    assert {name: rows[0]["queues"] for name, rows in pipelines.items() if rows[0]["queues"] != "recorded"} == {}


def test_sources_have_mindspores_names_and_our_places(pipelines):
    for name, rows in pipelines.items():
        (source,) = (row for row in rows if not row["children"])
        assert source["site"], name
        first, *_, last = [linecache.getline(*place(line)).strip() for line in source["callers"].split("\n")]
        assert (first, last) == ("return read(name, folder)", "main()"), name
        assert source["op_type"] == READERS.get(name, source["op_type"])
        assert "passed_on" in {row["name"] for row in rows if row["op_type"] == "MapOp"}, name
