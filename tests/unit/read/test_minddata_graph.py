"""Operators of a dataset graph from MindSpore's two files of it, damaged ones included."""

import json

import pytest
from minddata_files import graph, op, pipeline_json, raw_csv

from pipeprof.errors import SourceError
from pipeprof.read.minddata.graph import read_pipeline, read_raw_csv, structure_key
from pipeprof.read.tables.share import Notes

NAME = "pipeline_profiling_0.json"


@pytest.fixture
def read(tmp_path):
    """`read(text)` gives the graph of a pipeline file, and what was noted about it."""

    def run(text, name=NAME, reader=read_pipeline):
        notes = Notes()
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return reader(path, notes), [message for _, message in notes.all()]

    return run


def test_operators_come_by_id_with_their_queue(read):
    found, notes = read(pipeline_json())
    assert [(one.op_id, one.op_type, one.workers, one.children) for one in found.ops] == [
        (0, "BatchOp", 1, [1]), (1, "MapOp", 2, [2]), (2, "GeneratorOp", 1, []),
    ]  # fmt: skip
    assert (found.ops[2].capacity, found.ops[2].depths) == (8, [8, 7, 8, 8, 8, 7])
    assert (found.interval_ns, notes) == (10_000_000, [])


def test_the_sink_need_not_be_operator_0(read):
    found, _ = read(pipeline_json([*graph(), op(3, "EpochCtrlOp", None, [0])]))
    assert (found.ops[3].children, found.ops[3].has_queue, found.ops[3].capacity) == ([0], False, None)


@pytest.mark.parametrize(
    ("sizes", "kept", "text"),
    [
        ([1, -1, 2], [1, None, 2], "1 entry was left out: operator 0: depth is not a whole number of 0 or more"),
        ([1, 9, 99], [1, None, None], "2 entries were left out: operator 0: depth above the capacity of 8"),
        ([1, 2**63, 2], [1, None, 2], "1 entry was left out: operator 0: depth is not a whole number of 0 or more"),
        (
            [1, float("nan"), float("inf")],
            [1, None, None],
            "2 entries were left out: operator 0: depth is not a whole number of 0 or more",
        ),
        (
            [1, "2", True, 0.5],
            [1, None, None, None],
            "3 entries were left out: operator 0: depth is not a whole number of 0 or more",
        ),
    ],
)
def test_impossible_depths_are_left_out_and_counted(read, sizes, kept, text):
    found, notes = read(pipeline_json([op(0, "BatchOp", sizes)]))
    assert found.ops[0].depths == kept
    assert len(notes) == 1
    assert text in notes[0]
    assert NAME in notes[0]


def test_an_impossible_capacity_is_unknown_and_the_depths_stay(read):
    found, notes = read(pipeline_json([op(0, "BatchOp", [1, 2], capacity=-8)]))
    assert (found.ops[0].capacity, found.ops[0].depths, found.ops[0].has_queue) == (None, [1, 2], True)
    assert "1 entry was left out: operator 0: impossible capacity" in notes[0]


def test_a_queue_without_samples_is_noted(read):
    unsampled = op(0, "BatchOp", [])
    assert read(pipeline_json([unsampled]))[1] == []  # the run ended before the first sample
    assert "operator 0 has a queue and no samples" in read(pipeline_json([unsampled, op(1, "MapOp", [1])]))[1][0]


@pytest.mark.parametrize(
    ("ops", "said"),
    [
        ([op(0, "BatchOp", [1]), op(0, "MapOp", [1])], "op_id 0 more than once"),
        ([op(0, "BatchOp", [1], [7])], "operator 0 has the child 7, which is not in the file"),
        ([op(0, "BatchOp", [1], [1]), op(1, "MapOp", [1], [0])], "is its own producer"),
        ([op(0, "BatchOp", [1], [0])], "is its own producer"),
        (
            [
                op(0, "ZipOp", None, [1, 2]),
                op(1, "MapOp", [1], [3]),
                op(2, "MapOp", [1], [3]),
                op(3, "GeneratorOp", [1]),
            ],
            "operator 3 is the child of 1 and of 2, expected one consumer",
        ),
        ([{"op_id": -1, "op_type": "MapOp"}], "expected op_info with op_id and op_type"),
        ([{"op_id": 1}], "expected op_info with op_id and op_type"),
        ([7], "an operator is int"),
    ],
)
def test_what_is_no_tree_is_refused_by_name(read, ops, said):
    with pytest.raises(SourceError, match=NAME) as refused:
        read(pipeline_json(ops))
    assert said in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("text", ["", " ", "[]", '{"op_info": {}}', '{"op_info": [{"op_id": 0', "[" * 100_000, "\x00"])
def test_what_cannot_be_parsed_is_refused_by_name(read, text):
    with pytest.raises(SourceError, match=NAME):
        read(text)


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_the_derived_table_gives_the_same_graph(read, end):
    found, notes = read(raw_csv().replace("\r\n", end), "minddata_pipeline_raw_0.csv", read_raw_csv)
    assert [(one.op_id, one.children, one.capacity, one.depths) for one in found.ops] == [
        (0, [1], None, []), (1, [2, 3], 8, [1, 2, 3]), (2, [], 8, [8, 8, 8]), (3, [], 8, [4, 4, 4]),
    ]  # fmt: skip
    assert (found.interval_ns, notes, found.ops[0].has_queue) == (10_000_000, [], False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[: text.index("[4, 4")], "cells, expected 10"),
        (lambda text: text.replace("[4, 4, 4]", "[4, 4, 4"), "expected a list in brackets"),
        (lambda text: text.replace("op_type", "kind"), "no column op_type"),
        (lambda text: text.partition("\r\n")[0], "no operators"),
        (lambda text: text.replace("[2, 3]", "[2, 9]"), "child 9"),
    ],
)
def test_a_damaged_table_is_refused_by_name(read, change, said):
    with pytest.raises(SourceError, match=r"minddata_pipeline_raw_0.csv") as refused:
        read(change(raw_csv()), "minddata_pipeline_raw_0.csv", read_raw_csv)
    assert said in refused.value.message


def test_the_key_is_of_types_and_structure_alone(read):
    one, _ = read(pipeline_json())
    other, _ = read(json.dumps({"op_info": [{**entry, "num_workers": 9, "metrics": None} for entry in graph()]}))
    longer, _ = read(pipeline_json([*graph(), op(3, "EpochCtrlOp", None, [0])]))
    assert structure_key(one.ops) == structure_key(other.ops) != structure_key(longer.ops)


def test_a_long_chain_is_a_tree_and_read_in_no_time_that_grows_with_its_square(read):
    chain = [op(number, "MapOp", None, [number + 1] if number < 60_000 else []) for number in range(60_001)]
    assert len(read(pipeline_json(chain))[0].ops) == 60_001
    chain[-1]["children"] = [59_990]
    chain[59_989]["children"] = []
    with pytest.raises(SourceError, match=r"operator 5999[0-9] is its own producer"):
        read(pipeline_json(chain))
    chain[-1]["op_id"] = 59_999
    with pytest.raises(SourceError, match="op_id 59999 more than once"):
        read(pipeline_json(chain))
    with pytest.raises(SourceError, match="70,000 operators, expected at most 65,536"):
        read(pipeline_json([op(number, "MapOp") for number in range(70_000)]))
