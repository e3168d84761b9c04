"""Files of MindSpore's dataset profiling: what they really look like, traps included."""

import json

import pytest

from pipeprof.errors import SourceError
from pipeprof.read.minddata import read_folder

MS = 1_000_000


def op(number, kind, sizes=None, children=(), capacity=8):
    metrics = None if sizes is None else {"output_queue": {"length": capacity, "size": sizes}}
    return {"op_id": number, "op_type": kind, "num_workers": 2, "children": list(children) or None, "metrics": metrics}


def cpu(stamps, *ops):
    entries = [
        {"op_id": number, "metrics": {"user_utilization": user, "sys_utilization": system}}
        for number, user, system in ops
    ]
    return {"time_stamp": stamps, "op_info": entries}


@pytest.fixture
def folder(tmp_path):
    def write(ops=None, times=None, fetches=None):
        if ops is not None:
            tmp_path.joinpath("pipeline_profiling_0.json").write_text(json.dumps({"op_info": ops}), encoding="utf-8")
        if times is not None:
            tmp_path.joinpath("minddata_cpu_utilization_0.json").write_text(json.dumps(times), encoding="utf-8")
        if fetches is not None:
            tmp_path.joinpath("dataset_iterator_profiling_0.txt").write_bytes(fetches)
        return tmp_path

    return write


def test_operators_come_by_id_whatever_the_order_in_the_file(folder):
    found = read_folder(
        folder([op(2, "GeneratorOp", [1]), op(0, "BatchOp", [3], [1]), op(1, "MapOp", [2], [2])], cpu([5]))
    )
    assert [(one.op_id, one.op_type, one.children, one.depths) for one in found.ops] == [
        (0, "BatchOp", [1], [3]), (1, "MapOp", [2], [2]), (2, "GeneratorOp", [], [1]),
    ]  # fmt: skip


def test_an_operator_without_metrics_runs_inside_its_consumer(folder):
    found = read_folder(folder([op(0, "EpochCtrlOp", None, [1]), op(1, "BatchOp", [3])], cpu([5])))
    assert (found.ops[0].capacity, found.ops[0].depths) == (None, [])


def test_stamps_are_ms_and_become_ns(folder):
    assert read_folder(folder([op(0, "BatchOp", [3, 4])], cpu([5, 15]))).times == [5 * MS, 15 * MS]


def test_cpu_is_in_cores_per_operator(folder):
    found = read_folder(folder([op(0, "BatchOp", [3, 4])], cpu([5, 15], (0, [50, 150], [10, 0]), (9, [1], [1]))))
    assert found.ops[0].cpu == [(0.5, 0.1), (1.5, 0.0)]


@pytest.mark.parametrize("sizes", [[1, 2], [1, 2, 3, 4]])
def test_lengths_that_differ_by_one_are_how_it_writes_them(folder, sizes):
    assert read_folder(folder([op(0, "BatchOp", sizes)], cpu([5, 15, 25]))).said() == []


@pytest.mark.parametrize("sizes", [[1], [1, 2, 3, 4, 5]])
def test_lengths_that_differ_by_more_are_noted_with_both_numbers(folder, sizes):
    notes = read_folder(folder([op(0, "BatchOp", sizes)], cpu([5, 15, 25]))).said()
    assert len(notes) == 1
    assert f"operator 0: {len(sizes)} sizes, 3 times" in notes[0]


def test_stamps_that_go_backwards_are_noted(folder):
    assert "go backwards" in read_folder(folder([op(0, "BatchOp", [1, 2, 3])], cpu([5, 25, 15]))).said()[0]


@pytest.mark.parametrize(
    "content",
    [b"", b'{"op_info": [{"op_id": 0, "op_', b"[]", b'{"op_info": [{"op_type": "MapOp"}]}', b"{}", b"\xff\xfe"],
)
def test_a_damaged_pipeline_file_is_refused_by_name(tmp_path, content):
    tmp_path.joinpath("pipeline_profiling_0.json").write_bytes(content)
    with pytest.raises(SourceError, match=r"pipeline_profiling_0.json"):
        read_folder(tmp_path)


def test_a_damaged_cpu_file_is_refused_by_name(folder):
    path = folder([op(0, "BatchOp", [3])])
    path.joinpath("minddata_cpu_utilization_0.json").write_text('{"time_stamp": [1, 2', encoding="utf-8")
    with pytest.raises(SourceError, match=r"minddata_cpu_utilization_0.json"):
        read_folder(path)


def test_an_empty_folder_has_nothing(tmp_path):
    found = read_folder(tmp_path)
    assert (found.ops, found.times, found.records, found.said()) == ([], [], [], [])


FIVE = b"0 0 1 12 1000\n0 1 1 2 1000\n0 2 1 14 1000\n1 8 1 3 1000\n"
FOUR = b"0 0 1 12\n0 1 1 2\n0 2 1 14\n1 8 1 3\n"


def fetched(folder, content):
    return read_folder(folder(fetches=content)).records


def test_a_fetch_is_gathered_from_its_four_lines(folder):
    (found,) = fetched(folder, FIVE)
    assert (found.batch, found.wait_ns, found.push_ns, found.batch_ns) == (1, 12 * MS, 2 * MS, 14 * MS)
    assert (found.t_ns, found.depth, found.capacity) == (1000 * MS, 3, 8)


def test_without_the_fifth_column_the_time_is_unknown(folder):
    (found,) = fetched(folder, FOUR)
    assert (found.t_ns, found.depth, found.wait_ns) == (None, 3, 12 * MS)


def test_windows_line_ends_change_nothing(folder):
    unix = fetched(folder, FIVE)
    assert fetched(folder, FIVE.replace(b"\n", b"\r\n")) == unix


def test_batches_come_by_number(folder):
    found = fetched(folder, b"0 0 2 5 20\n0 0 1 4 10\n0 0 10 6 30\n")
    assert [one.batch for one in found] == [1, 2, 10]


@pytest.mark.parametrize("tail", [b"0 0 2", b"0 0 ", b"1", b"0 0 2 \n", b"0 0 2 1x 5\n"])
def test_a_ragged_last_line_is_left_out(folder, tail):
    assert [one.batch for one in fetched(folder, FIVE + tail)] == [1]
