"""Files of MindSpore's op recorder, as it writes them."""

import pytest

from pipeprof.errors import SourceError
from pipeprof.read.mindspore_ops import op_type, read_executions, read_folder, read_pool

START = 1795186330489203848


@pytest.fixture
def folder(tmp_path):
    def write(executions=None, launches=None, pool=None, rank=0):
        names = ("cpu_op_execute_timestamp", "cpu_framework", "cpu_ms_memory_record")
        for name, text in zip(names, (executions, launches, pool), strict=True):
            if text is not None:
                tmp_path.joinpath(f"{name}_{rank}.txt").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def executions(folder, text):
    return read_executions(folder(executions=text) / "cpu_op_execute_timestamp_0.txt")


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0.123456", 123456), ("1.23457", 1234570), ("0.000958", 958), ("12345.6", 12345600000), ("3", 3000000),
        ("1e-05", 10), ("9.5e-05", 95), ("1.5e-06", 2), ("1.23457e+06", 1234570000000), ("0", 0),
    ],
)  # fmt: skip
def test_durations_are_exact_ns_of_the_text_and_starts_keep_every_digit(folder, text, ns):
    (one,) = executions(folder, f"A;HostCpuOps;{START},{text},0\n")
    assert (one.start_ns, one.dur_ns) == (START, ns)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_all_executions_of_all_lines_come_in_order_of_start(folder, end):
    text = "Default/A-op0;HostCpuOps;30,0.1,0 10,0.1,0\n\nDefault/B-op0;HostCpuOps;20,0.1,0\n"
    assert [(one.name, one.start_ns) for one in executions(folder, text.replace("\n", end))] == [
        ("Default/A-op0", 10), ("Default/B-op0", 20), ("Default/A-op0", 30),
    ]  # fmt: skip


DAMAGED = "A;HostCpuOps;17,abc,0|A;HostCpuOps;17|A;HostCpuOps;x,0.1,0|A;HostCpuOps|A|A;HostCpuOps;17,1.2.3,0"


@pytest.mark.parametrize("line", DAMAGED.split("|"))
def test_a_damaged_line_is_refused_with_its_file_and_number(folder, line):
    with pytest.raises(SourceError, match=r"damaged line 2 of `cpu_op_execute_timestamp_0.txt`: found `"):
        executions(folder, f"A;HostCpuOps;30,0.1,0\n{line}\n")


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path):
    with pytest.raises(SourceError, match=r"cannot read `.*nothing.txt`"):
        read_executions(tmp_path / "nothing.txt")


TWO = "Default/net/MatMul-op0;HostCpuOps;10,0.1,0\nDefault/net/Add-op1;HostCpuOps;20,0.1,0\n"


@pytest.mark.parametrize(
    ("launches", "expected"),
    [
        (
            "MatMul;MatMul-op0;x;0:(4, 8);1:(8, 16)\nAdd;Add-op1;x;0:(4, 16)\n",
            [("MatMul", "(4, 8); (8, 16)"), ("Add", "(4, 16)")],
        ),
        # fewer, more, and in another order: all are left out
        ("MatMul;MatMul-op0;x;0:(4, 8)\n", [(None, None)] * 2),
        ("MatMul;MatMul-op0;x\nAdd;Add-op1;x\nAdd;Add-op1;x\n", [(None, None)] * 2),
        ("Add;Add-op1;x;0:(4, 16)\nMatMul;MatMul-op0;x;0:(4, 8)\n", [(None, None)] * 2),
    ],
)
def test_launches_give_types_and_shapes_by_position_where_all_match(folder, launches, expected):
    found, _ = read_folder(folder(TWO, launches))
    assert [(one.type, one.shapes) for one in found] == expected


def test_files_of_several_ranks_are_all_read(folder, tmp_path):
    assert read_folder(tmp_path) == ([], [])
    folder("A;HostCpuOps;30,0.1,0\n", rank=0)
    found, _ = read_folder(folder("B;HostCpuOps;20,0.1,0\n", rank=1))
    assert sorted(one.name for one in found) == ["A", "B"]


HEADER = "Timestamp(ns),Total Allocated(Byte),Total Reserved(Byte),Total Active(Byte)\n"


def test_pool_samples_come_in_order_of_time_and_older_ones_are_not_read(folder):
    path = folder(pool=HEADER + "20,5,6,7\n10,1,2,3\n")
    _, pool = read_folder(path)
    assert [(one.t_ns, one.allocated, one.reserved, one.active) for one in pool] == [(10, 1, 2, 3), (20, 5, 6, 7)]
    path = folder(pool=HEADER + "10,1,2,3\n20,5,6,7\n30,8,9,9\n") / "cpu_ms_memory_record_0.txt"
    assert [one.t_ns for one in read_pool(path, since_ns=20)] == [20, 30]


@pytest.mark.parametrize("text", ["20,5,6,7\n", HEADER + "20,5,6\n", HEADER + "20,5,6,x\n"])
def test_a_damaged_pool_file_is_refused_with_its_line(folder, text):
    path = folder(pool=text) / "cpu_ms_memory_record_0.txt"
    with pytest.raises(SourceError, match=r"damaged line [12] of `cpu_ms_memory_record_0.txt`"):
        read_pool(path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Default/c1-Conv2d/Conv2D-op0", "Conv2D"),
        ("Default/MatMul-op12", "MatMul"),
        ("MatMul", "MatMul"),
        ("Default/my-op/Thing", "Thing"),
        ("Default/Cast-opx", "Cast-opx"),
    ],
)
def test_the_type_is_the_last_part_without_its_number(name, kind):
    assert op_type(name) == kind
