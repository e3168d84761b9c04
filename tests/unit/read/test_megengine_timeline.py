"""MegEngine's chrome timelines and memory files, as rows."""

import pytest
from megengine_files import write
from stored_rows import rows

from pipeprof.errors import RunError, SourceError
from pipeprof.read.foreign import import_path
from pipeprof.read.megengine import timeline
from pipeprof.read.megengine.reader import read_memory_flow
from pipeprof.read.megengine.timeline import read_timeline, survey
from pipeprof.read.tables import rows as tables
from pipeprof.read.tables import writer
from pipeprof.read.tables.rows import Rows
from pipeprof.record.schema import BY_NAME

ZERO = 1625027241000000000


def event(ph, name, ts, tid=0, **more):
    return {"name": name, "ph": ph, "tid": tid, "pid": 42, "ts": ts, **more}


def call(name, begin, end, tid=1, args=None, **more):
    """Begin and end."""
    return [
        event("B", name, begin, tid, **more),
        event("E", name, end, tid, **more, **({"args": args} if args else {})),
    ]


def kernel(name, begin, end, args=None, tid=2):
    return call(name, begin, end, tid, args, cat="Kernel")


def current(*events, later=0):
    names = [
        event("M", "thread_name", 0, tid, args={"name": n}) for tid, n in enumerate(("channel", "worker", "gpu0:0"))
    ]
    return {"traceEvents": [*names, *events], "metadata": {"localTime": str(ZERO + later)}}


@pytest.fixture
def rows_of(tmp_path):
    """`rows_of(content)`: what is read of it, and `columns(table, names)` of its rows."""

    def read(content):
        path = write(tmp_path / "1.chrome_timeline.json", content)
        out = read_timeline(path, survey(path), Rows(0, 0))

        def columns(table, names):
            at = [BY_NAME[table].column_names.index(name) for name in names.split()]
            return [tuple(row[index] for index in at) for row in out.tables.rows[table]]

        return out, columns

    return read


@pytest.fixture
def imported(tmp_path):
    """`imported(content)`: the run of one timeline."""
    return lambda content: import_path(write(tmp_path / "1.chrome_timeline.json", content), tmp_path / "run")


def test_the_current_generation(rows_of):
    args = {"__id__": "7", "__name__": "conv1", "__device__": "gpu0:0"}
    launch = {"id": 5, "cat": "KernelLaunch"}
    out, columns = rows_of(
        current(
            event("B", "Module.forward", 0.0, cat="Scope"), *call("OpDispatch", 1.0, 2.0, 0),
            event("E", "Module.forward", 9.5),
            *call("Convolution", 3.0, 5.0, 1, args), *call("Input 3", 3.2, 3.4, 1, {"id": 3}),
            *kernel("Convolution", 4.0, 8.25, args),
            event("s", "42", 3.5, tid=1, **launch), event("f", "42", 4.0, tid=2, bp="e", **launch),
            event("C", "gpu0:0_alloc_mem", 5.0, args={"value": 1024}), event("C", "device_ahead_ms", 6.0, args={"value": 3}),
            event("i", "StopStep", 9.0),
        )
    )  # fmt: skip
    assert (out.zero_ns, out.problems) == (ZERO, {})
    assert columns("op", "side track start_ns dur_ns device_self_ns") == [
        ("host", "worker", 3000, 2000, None), ("device", "gpu0:0", 4000, 4250, 4250),
    ]  # fmt: skip
    assert columns("op_info", "name type") == [("conv1", "Convolution")]
    assert set(columns("span", "name")) == {("Module.forward",), ("OpDispatch",), ("Input 3",), ("StopStep",)}
    assert columns("flow", "flow_id side track") == [("5", "start", "worker"), ("5", "end", "gpu0:0")]
    assert columns("memory", "device allocated_bytes t_ns") == [("gpu0:0", 1024, 5000)]
    assert columns("counter", "name value") == [("device_ahead_ms", 3.0)]


@pytest.mark.parametrize("value", [10**400, -(10**400), "7", None, True, [1]])
def test_a_counter_without_a_number_that_fits_is_left_out(rows_of, value):
    values = enumerate((value, 2**70), 1)
    out, columns = rows_of(current(*(event("C", "nr_op_pending", at, args={"value": one}) for at, one in values)))
    assert columns("counter", "value") == [(2.0**70,)]
    assert out.problems == {"counters without a number": 1}


def test_step_marks_the_ends_of_steps(rows_of, imported):
    called = [
        part for at in (4.0, 11.0, 21.0) for part in call("Conv", at, at + 1, 1, {"__id__": "1", "__name__": "c"})
    ]
    stops = [event("i", "StopStep", at) for at in (20.0, 10.0, 10.0)]
    content = current(*call("StartProfile", 2.0, 3.0, 0), *called, *stops)
    _, columns = rows_of(content)
    assert columns("step", "step kind start_ns end_ns") == [(0, "train", 2000, 10_000), (1, "train", 10_000, 20_000)]
    assert columns("op", "step") == [(0,), (1,), (None,)]
    assert ("StopStep",) in columns("span", "name")
    run = imported(content)
    assert run.manifest.reps[0].ranks[0].step_evidence == "StopStep"
    assert "step" not in {item.what for item in run.manifest.not_measured}


def test_the_first_generation_is_a_list_with_named_threads(rows_of):
    gpu = "gpu0:0"
    begin, end = call("conv", 1.0, 6.0, gpu)
    _, columns = rows_of([*call("conv", 0.0, 5.0, "host"), begin, *call("inner", 2.0, 3.0, gpu), end])
    assert sorted(columns("op", "side dur_ns self_ns")) == [
        ("device", 1000, 1000), ("device", 5000, 4000), ("host", 5000, 5000),
    ]  # fmt: skip


def test_the_middle_generation_has_its_clock_in_the_first_event(rows_of):
    clock = {"name": "Metadata", "ph": "I", "args": {"localTime": ZERO // 1000}}
    named = event("M", "thread_name", 0, tid=256, args={"name": 'CompNode("gpu0:0" from "xpux:0")'})
    out, columns = rows_of([clock, named, *call("conv", 1.0, 2.5, 256)])
    assert out.zero_ns == ZERO
    assert columns("op", "side dur_ns") == [("device", 1500)]


def test_what_cannot_be_used_is_counted(rows_of):
    out, columns = rows_of(
        current(
            event("E", "a", 1.0), event("B", "b", 2.0), *call("c", 5.0, 4.0), event("B", "d", "nan"),
            event("?", "e", 1.0), event("C", "f", 1.0, args={"value": "x"}), event("C", "g", 1.0), event("X", "h", 1.0, dur=-1.0),
            event("X", "i", 1.0, dur=2.0), {"name": "j"}, 5,
        )
    )  # fmt: skip
    assert columns("span", "name") == [("i",)]
    assert sum(out.problems.values()) == 10


LIVED = (
    '<svg xmlns:tag="https://megengine.org.cn"><rect tag:type="tensor" tag:name="x" tag:address="0x40" tag:size="8B " '
    'tag:produced="1us " tag:duration="2us "/></svg>'
)


def test_processes_are_ranks_on_one_clock_and_a_memory_file_beside_them_leaves_their_operators_alone(tmp_path):
    """The profiler writes both. The tensors' names come behind the operators', with numbers of their own."""
    for pid, later in ((7, 0), (12, 5000)):
        content = current(*kernel("op", 1.0, 2.0, {"__name__": f"conv{pid}"}), event("i", "StopStep", 3.0), later=later)
        write(tmp_path / f"{pid}.chrome_timeline.json", content)
    (tmp_path / "12.memory_flow.svg").write_text(LIVED, encoding="utf-8")
    run = import_path(tmp_path, tmp_path / "run")
    assert [(rank.rank, rank.pid) for rank in run.manifest.reps[0].ranks] == [(0, 7), (1, 12)]
    assert rows(run, "op", "rank op_id start_ns") == [(0, 0, 1000), (1, 0, 6000)]
    assert rows(run, "step", "rank end_ns") == [(0, 3000), (1, 8000)]
    assert run.manifest.reps[0].dur_ns == 8000
    assert rows(run, "op_info", "rank op_id name") == [(0, 0, "conv7"), (1, 0, "conv12"), (1, 1, "x")]
    assert rows(run, "allocation", "rank op_id produced_ns released_ns") == [(1, 1, 6000, 8000)]
    assert run.manifest.tables["op_info"] == 3


def merged(folder):
    """Timelines of two processes with equal threads, and both in one file."""
    folder.mkdir()
    both = []
    for pid, name in ((7, "conv"), (12, "relu")):
        events = current(*kernel(name, 1.0, 1.0 + pid), event("i", "StopStep", 20.0 + pid))["traceEvents"]
        both.append([{**one, "pid": pid} for one in events])
        write(folder / f"{pid}.chrome_timeline.json", {**current(), "traceEvents": both[-1]})
    mixed = [one for pair in zip(*both, strict=True) for one in pair]
    return write(folder / "merge.chrome_timeline.json", {**current(), "traceEvents": mixed})


def found_in(run):
    names = {(rank, op_id): name for rank, op_id, name in rows(run, "op_info", "rank op_id name")}
    ops = [(rank, names[rank, op_id], dur) for rank, op_id, dur in rows(run, "op", "rank op_id dur_ns")]
    return ops, rows(run, "step", "rank end_ns"), [(rank.rank, rank.pid) for rank in run.manifest.reps[0].ranks]


def test_a_merged_timeline_beside_those_of_its_processes_is_left_out_and_said(tmp_path):
    path = merged(tmp_path / "profile")
    run = import_path(path.parent, tmp_path / "run")
    expected = [(0, "conv", 7000), (1, "relu", 12_000)], [(0, 27_000), (1, 32_000)], [(0, 7), (1, 12)]
    assert found_in(run) == expected
    (said,) = [warning.message for warning in run.manifest.warnings]
    assert said.startswith("`merge.chrome_timeline.json` was left out: its processes")
    assert found_in(import_path(path, tmp_path / "alone")) == expected
    (path.parent / "12.chrome_timeline.json").unlink()
    run = import_path(path.parent, tmp_path / "part")
    assert sorted(found_in(run)[0], key=lambda row: row[1]) == [(1, "conv", 7000), (0, "relu", 12_000)]
    assert "in part its processes" in run.manifest.warnings[0].message


SVG = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:tag="https://megengine.org.cn">
<rect x="1" tag:type="tensor" tag:name="a<b&c" tag:address="0x7f00" tag:size="3MB 12KB 5B " tag:layout="{1}"
 tag:produced="1s 2ms 3us 4ns " tag:erased="1s 2ms 3us 9ns " tag:duration="5ns "/>
<rect tag:type="tensor" tag:name="kept" tag:address="1" tag:size="8B " tag:produced="7us " tag:erased="3us "/>
<rect tag:type="tensor" tag:address="x" tag:size="8" tag:produced="7us " tag:group="12"/>
<rect tag:type="tensor" tag:address="2" tag:size="3PB " tag:produced="8us "/>
<rect tag:type="tensor" tag:size="8B "/>
<rect width="3"/></svg>"""


def test_tensors_of_a_memory_flow(tmp_path):
    path = tmp_path / "memory_flow.svg"
    path.write_text(SVG, encoding="utf-8")
    out = read_memory_flow(path)
    assert [row[:5] for row in out.tables.rows["allocation"]] == [
        (0x7F00, 3 * 2**20 + 12 * 1024 + 5, 1_002_003_004, 1_002_003_009, 0), (1, 8, 7000, None, 1),
        (None, None, 7000, None, 2), (2, None, 8000, None, None),
    ]  # fmt: skip
    assert [row[1] for row in out.tables.rows["op_info"]] == ["a<b&c", "kept", "operator 12"]
    unknown = "sizes of no known unit, or too large: these tensors have none"
    assert out.problems == {"tensors without a time": 1, unknown: 2}
    assert import_path(path, tmp_path / "run").manifest.tables == {"allocation": 4, "op_info": 3}
    path.write_text('<svg xmlns:tag="https://megengine.org.cn"></svg>', encoding="utf-8")
    with pytest.raises(SourceError, match="no tensor"):
        import_path(path, tmp_path / "empty")


def test_a_static_memory_plan(tmp_path):
    at = {"time_begin": "1", "time_end": "4", "logic_addr_begin": "64", "logic_addr_end": "96"}
    chunk = {"id": "0", "type": "static_mem", **at}
    content = {"chunk": {"0": chunk, "1": {**chunk, "logic_addr_end": "x"}}, "opr": {"0": {"id": "0", "name": "conv"}}}
    run = import_path(write(tmp_path / "StaticMemoryInfo.json", content), tmp_path / "run")
    assert rows(run, "allocation", "address bytes produced_ns released_ns") == [(64, 32, 1, 4)]
    assert rows(run, "op_info", "name")[0] == ("conv",)


def test_names_marks_and_threads_of_kernels_count_wherever_they_stand(imported):
    """A thread is known as a device's before its first kernel, and a name at the end is that of the events before."""
    named = event("M", "thread_name", 0, tid=3, args={"name": "stream"})
    work = [*call("relu", 1.0, 2.0, 3), *kernel("conv", 3.0, 4.0, tid=3)]
    run = imported(current(*work, event("i", "StopStep", 5.0), named))
    assert rows(run, "op", "side track step") == [("device", "stream", 0)] * 2


def test_rows_are_written_piece_by_piece(imported, monkeypatch):
    monkeypatch.setattr(writer, "ROWS", 10)
    run = imported([part for n in range(95) for part in call(f"op{n % 7}", n, n + 0.5, "host")])
    assert run.manifest.tables == {"op": 95, "op_info": 7}
    assert rows(run, "op", "start_ns") == [(1000 * n,) for n in range(95)]


def test_of_too_many_operators_only_the_types_are_told_apart(imported, monkeypatch):
    monkeypatch.setattr(tables, "MOST", 3)
    calls = ((f"type{n % 2}", n, n + 0.5, "host", {"__name__": f"op{n}"}) for n in range(9))
    run = imported([part for one in calls for part in call(*one)])
    assert rows(run, "op_info", "name type") == [
        ("op0", "type0"), ("op1", "type1"), ("op2", "type0"), (None, "type1"), (None, "type0"),
    ]  # fmt: skip
    assert "operators" in {item.code for item in run.manifest.warnings}


def test_a_recording_that_only_begins_events_is_read_within_bounds(imported, monkeypatch):
    monkeypatch.setattr(timeline, "MOST_OPEN", 5)
    run = imported([*call("a", 0.0, 1.0, "host"), *(event("B", "b", 1.0 + n, tid="host") for n in range(9))])
    assert {(item.code, item.message) for item in run.manifest.warnings} == {
        ("left_out", "left out 4 times: events that begin within so many others"), ("left_out", "left out 5 times: events that never end"),
    }  # fmt: skip


def test_a_second_memory_file_of_a_process_is_left_out_and_said(tmp_path):
    write(tmp_path / "7.chrome_timeline.json", current(*call("op", 1.0, 2.0)))
    for name in ("7.memory_flow.svg", "7.later.memory_flow.svg", "8.memory_flow.svg"):
        (tmp_path / name).write_text(LIVED, encoding="utf-8")
    run = import_path(tmp_path, tmp_path / "run")
    assert run.manifest.tables["allocation"] == 1
    second, alone = [item.message for item in run.manifest.warnings if "left out" in item.message]
    assert second.startswith("`7.memory_flow.svg` was left out: the rank has")
    assert alone.startswith("`8.memory_flow.svg` was left out: process 8 has no timeline")


def test_a_disk_that_is_full_at_the_end_leaves_no_unfinished_file(imported, monkeypatch):
    run = imported(current(event("i", "StopStep", 1.0)))
    kept = writer.Streamed(run, 7, 0)

    def full(*_args):
        raise RunError("cannot write", "free some space")

    def fill():
        with kept:
            kept.add("span", name="a", start_ns=0)
            kept._gather("span")
            kept._writers["span"]._write()  # a file is begun
            kept.add("op", start_ns=0)
            monkeypatch.setattr(writer.store, "arrow", full)

    with pytest.raises(RunError):
        fill()
    assert [path.name for path in run.path.glob("span/rep=0/rank=7/*")] == []


def test_a_timeline_whose_end_with_the_clock_is_cut_off_is_partial(tmp_path):
    pairs = [part for n in range(500) for part in call("OpDispatch", n, n + 0.5, 0)]
    path = write(tmp_path / "7.chrome_timeline.json", {**current(), "traceEvents": pairs})
    path.write_bytes(path.read_bytes()[:-3000])
    run = import_path(path, tmp_path / "run")
    assert run.manifest.state == "partial"
    assert 400 < run.manifest.tables["span"] < 500
