"""MegEngine's chrome timelines and memory files, as rows."""

import pytest
from megengine_files import write

from pipeprof.errors import RunError, SourceError
from pipeprof.read.foreign import import_path
from pipeprof.read.megengine import timeline
from pipeprof.read.megengine.reader import read_memory_flow
from pipeprof.read.megengine.timeline import read_timeline, survey
from pipeprof.read.tables import rows as tables
from pipeprof.read.tables import writer
from pipeprof.read.tables.rows import Rows
from pipeprof.record import store
from pipeprof.record.schema import BY_NAME


def event(ph, name, ts, tid=0, **more):
    return {"name": name, "ph": ph, "tid": tid, "pid": 42, "ts": ts, **more}


def current(*events):
    names = [
        {"name": "thread_name", "ph": "M", "tid": tid, "pid": 42, "args": {"name": name}}
        for tid, name in ((0, "channel"), (1, "worker"), (2, "gpu0:0"))
    ]
    return {"traceEvents": [*names, *events], "metadata": {"localTime": "1625027241000000000"}}


@pytest.fixture
def rows_of(tmp_path):
    def read(content):
        path = write(tmp_path / "1.chrome_timeline.json", content)
        out = read_timeline(path, survey(path), Rows(0, 0))
        return out, {
            table: [dict(zip(BY_NAME[table].column_names, row, strict=True)) for row in rows]
            for table, rows in out.tables.rows.items()
        }

    return read


def test_the_current_generation(rows_of):
    args = {"__id__": "7", "__name__": "conv1", "__device__": "gpu0:0"}
    out, rows = rows_of(
        current(
            event("B", "Module.forward", 0.0, cat="Scope"),
            event("B", "OpDispatch", 1.0), event("E", "OpDispatch", 2.0),
            event("E", "Module.forward", 9.5),
            event("B", "Convolution", 3.0, tid=1), event("E", "Convolution", 5.0, tid=1, args=args),
            event("B", "Input 3", 3.2, tid=1), event("E", "Input 3", 3.4, tid=1, args={"id": 3}),
            event("B", "Convolution", 4.0, tid=2, cat="Kernel"), event("E", "Convolution", 8.25, tid=2, cat="Kernel", args=args),
            event("s", "42", 3.5, tid=1, id=5, cat="KernelLaunch"), event("f", "42", 4.0, tid=2, id=5, cat="KernelLaunch", bp="e"),
            event("C", "gpu0:0_alloc_mem", 5.0, args={"value": 1024}), event("C", "device_ahead_ms", 6.0, args={"value": 3}),
            event("i", "StopStep", 9.0),
        )
    )  # fmt: skip
    assert out.zero_ns == 1625027241000000000
    assert out.problems == {}
    assert [(row["side"], row["track"], row["start_ns"], row["dur_ns"], row["device_self_ns"]) for row in rows["op"]] == [
        ("host", "worker", 3000, 2000, None), ("device", "gpu0:0", 4000, 4250, 4250),
    ]  # fmt: skip
    assert [(row["name"], row["type"]) for row in rows["op_info"]] == [("conv1", "Convolution")]
    assert {row["name"] for row in rows["span"]} == {"Module.forward", "OpDispatch", "Input 3", "StopStep"}
    assert [(row["flow_id"], row["side"], row["track"]) for row in rows["flow"]] == [
        ("5", "start", "worker"),
        ("5", "end", "gpu0:0"),
    ]
    assert [(row["device"], row["allocated_bytes"], row["t_ns"]) for row in rows["memory"]] == [("gpu0:0", 1024, 5000)]
    assert [(row["name"], row["value"]) for row in rows["counter"]] == [("device_ahead_ms", 3.0)]


@pytest.mark.parametrize("value", [10**400, -(10**400), "7", None, True, [1]])
def test_a_counter_without_a_number_that_fits_is_left_out(rows_of, value):
    out, rows = rows_of(
        current(
            event("C", "nr_op_pending", 1.0, args={"value": value}),
            event("C", "nr_op_pending", 2.0, args={"value": 2**70}),
        )
    )
    assert [row["value"] for row in rows["counter"]] == [2.0**70]
    assert out.problems == {"counters without a number": 1}


def test_step_marks_the_ends_of_steps(rows_of, tmp_path):
    content = current(
        event("B", "StartProfile", 2.0), event("E", "StartProfile", 3.0),
        *(part for at in (4.0, 11.0, 21.0) for part in (
            event("B", "Conv", at, tid=1), event("E", "Conv", at + 1, tid=1, args={"__id__": "1", "__name__": "c"}),
        )),
        event("i", "StopStep", 20.0), event("i", "StopStep", 10.0), event("i", "StopStep", 10.0),
    )  # fmt: skip
    _, rows = rows_of(content)
    assert [(row["step"], row["kind"], row["start_ns"], row["end_ns"]) for row in rows["step"]] == [
        (0, "train", 2000, 10_000), (1, "train", 10_000, 20_000),
    ]  # fmt: skip
    assert [row["step"] for row in rows["op"]] == [0, 1, None]
    assert "StopStep" in {row["name"] for row in rows["span"]}
    run = import_path(write(tmp_path / "42.chrome_timeline.json", content), tmp_path / "run")
    assert run.manifest.reps[0].ranks[0].step_evidence == "StopStep"
    assert "step" not in {item.what for item in run.manifest.not_measured}


def test_the_first_generation_is_a_list_with_named_threads(rows_of):
    _, rows = rows_of(
        [
            event("B", "conv", 0.0, tid="host"), event("B", "conv", 1.0, tid="gpu0:0"), event("B", "inner", 2.0, tid="gpu0:0"),
            event("E", "inner", 3.0, tid="gpu0:0"), event("E", "conv", 5.0, tid="host"), event("E", "conv", 6.0, tid="gpu0:0"),
        ]
    )  # fmt: skip
    assert [(row["side"], row["dur_ns"], row["self_ns"]) for row in rows["op"]] == [
        ("device", 1000, 1000), ("host", 5000, 5000), ("device", 5000, 4000),
    ]  # fmt: skip


def test_the_middle_generation_has_its_clock_in_the_first_event(rows_of):
    out, rows = rows_of(
        [
            {"name": "Metadata", "ph": "I", "args": {"localTime": 1625027241000000}},
            event("M", "thread_name", 0, tid=256, args={"name": 'CompNode("gpu0:0" from "xpux:0")'}),
            event("B", "conv", 1.0, tid=256), event("E", "conv", 2.5, tid=256),
        ]
    )  # fmt: skip
    assert out.zero_ns == 1625027241000000000
    assert [(row["side"], row["dur_ns"]) for row in rows["op"]] == [("device", 1500)]


def test_what_cannot_be_used_is_counted(rows_of):
    out, rows = rows_of(
        current(
            event("E", "a", 1.0), event("B", "b", 2.0), event("B", "c", 5.0, tid=1), event("E", "c", 4.0, tid=1),
            event("B", "d", "nan"), event("?", "e", 1.0), event("C", "f", 1.0, args={"value": "x"}), event("C", "g", 1.0),
            event("X", "h", 1.0, dur=-1.0), event("X", "i", 1.0, dur=2.0), {"name": "j"}, 5,
        )
    )  # fmt: skip
    assert [row["name"] for row in rows["span"]] == ["i"]
    assert sum(out.problems.values()) == 10


def test_processes_are_ranks_on_one_clock(tmp_path):
    folder = tmp_path / "profile"
    folder.mkdir()
    for pid, shift in ((7, 0), (12, 5000)):
        kernel = event("B", "op", 1.0, tid=2, cat="Kernel"), event("E", "op", 2.0, tid=2, cat="Kernel")
        content = current(*kernel, event("i", "StopStep", 3.0))
        content["metadata"]["localTime"] = str(1625027241000000000 + shift)
        write(folder / f"{pid}.chrome_timeline.json", content)
    run = import_path(folder, tmp_path / "run")
    assert [(rank.rank, rank.pid) for rank in run.manifest.reps[0].ranks] == [(0, 7), (1, 12)]
    assert [(row["rank"], row["start_ns"]) for row in store.read(run, "op").to_pylist()] == [(0, 1000), (1, 6000)]
    assert [(row["rank"], row["end_ns"]) for row in store.read(run, "step").to_pylist()] == [(0, 3000), (1, 8000)]
    assert run.manifest.reps[0].dur_ns == 8000


def merged(folder):
    """Timelines of two processes with equal threads, and both in one file."""
    folder.mkdir()
    both = []
    for pid, name in ((7, "conv"), (12, "relu")):
        events = current(
            event("B", name, 1.0, tid=2, cat="Kernel"), event("E", name, 1.0 + pid, tid=2, cat="Kernel"),
            event("i", "StopStep", 20.0 + pid),
        )["traceEvents"]  # fmt: skip
        both.append([{**one, "pid": pid} for one in events])
        write(folder / f"{pid}.chrome_timeline.json", {**current(), "traceEvents": both[-1]})
    mixed = [one for pair in zip(*both, strict=True) for one in pair]
    return write(folder / "merge.chrome_timeline.json", {**current(), "traceEvents": mixed})


def found_in(run):
    names = {(row["rank"], row["op_id"]): row["name"] for row in store.read(run, "op_info").to_pylist()}
    ops = [(row["rank"], names[row["rank"], row["op_id"]], row["dur_ns"]) for row in store.read(run, "op").to_pylist()]
    steps = [(row["rank"], row["end_ns"]) for row in store.read(run, "step").to_pylist()]
    return ops, steps, [(rank.rank, rank.pid) for rank in run.manifest.reps[0].ranks]


def test_a_merged_timeline_beside_those_of_its_processes_is_left_out_and_said(tmp_path):
    path = merged(tmp_path / "profile")
    run = import_path(path.parent, tmp_path / "run")
    expected = [(0, "conv", 7000), (1, "relu", 12_000)], [(0, 27_000), (1, 32_000)], [(0, 7), (1, 12)]
    assert found_in(run) == expected
    assert [w.message for w in run.manifest.warnings] == [
        "`merge.chrome_timeline.json` was left out: its processes have timelines of their own"
    ]
    assert found_in(import_path(path, tmp_path / "alone")) == expected
    (path.parent / "12.chrome_timeline.json").unlink()
    run = import_path(path.parent, tmp_path / "part")
    assert sorted(found_in(run)[0], key=lambda row: row[1]) == [(1, "conv", 7000), (0, "relu", 12_000)]
    assert "in part its processes have timelines" in run.manifest.warnings[0].message


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
        (0x7F00, 3 * 2**20 + 12 * 1024 + 5, 1_002_003_004, 1_002_003_009, 0),
        (1, 8, 7000, None, 1),
        (None, None, 7000, None, 2),
        (2, None, 8000, None, None),
    ]
    assert [row[1] for row in out.tables.rows["op_info"]] == ["a<b&c", "kept", "operator 12"]
    unknown = "sizes of no known unit, or too large: these tensors have none"
    assert out.problems == {"tensors without a time": 1, unknown: 2}
    run = import_path(path, tmp_path / "run")
    assert run.manifest.tables == {"allocation": 4, "op_info": 3}


def test_an_empty_memory_flow_is_an_error(tmp_path):
    path = tmp_path / "x.svg"
    path.write_text('<svg xmlns:tag="https://megengine.org.cn"></svg>', encoding="utf-8")
    with pytest.raises(SourceError, match="no tensor"):
        import_path(path, tmp_path / "run")


def test_a_static_memory_plan(tmp_path):
    chunk = {
        "id": "0",
        "type": "static_mem",
        "time_begin": "1",
        "time_end": "4",
        "logic_addr_begin": "64",
        "logic_addr_end": "96",
    }
    content = {"chunk": {"0": chunk, "1": {**chunk, "logic_addr_end": "x"}}, "opr": {"0": {"id": "0", "name": "conv"}}}
    run = import_path(write(tmp_path / "StaticMemoryInfo.json", content), tmp_path / "run")
    (row,) = store.read(run, "allocation").to_pylist()
    assert (row["address"], row["bytes"], row["produced_ns"], row["released_ns"]) == (64, 32, 1, 4)
    assert store.read(run, "op_info").to_pylist()[0]["name"] == "conv"


def test_names_marks_and_threads_of_kernels_count_wherever_they_stand(tmp_path):
    """A thread is known as a device's before its first kernel, and a name at the end is that of the events before."""
    content = current(
        event("B", "relu", 1.0, tid=3), event("E", "relu", 2.0, tid=3),
        event("B", "conv", 3.0, tid=3, cat="Kernel"), event("E", "conv", 4.0, tid=3, cat="Kernel"),
        event("i", "StopStep", 5.0), event("M", "thread_name", 0, tid=3, args={"name": "stream"}),
    )  # fmt: skip
    run = import_path(write(tmp_path / "1.chrome_timeline.json", content), tmp_path / "run")
    rows = store.read(run, "op").to_pylist()
    assert [(row["side"], row["track"], row["step"]) for row in rows] == [("device", "stream", 0)] * 2


def test_rows_are_written_piece_by_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "ROWS", 10)
    pairs = (("B", 0.0), ("E", 0.5))
    content = [event(ph, f"op{n % 7}", n + at, tid="host") for n in range(95) for ph, at in pairs]
    run = import_path(write(tmp_path / "1.chrome_timeline.json", content), tmp_path / "run")
    assert run.manifest.tables == {"op": 95, "op_info": 7}
    assert [row["start_ns"] for row in store.read(run, "op").to_pylist()] == [1000 * n for n in range(95)]


def test_of_too_many_operators_only_the_types_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MOST", 3)
    content = [
        event(ph, f"type{n % 2}", n + at, tid="host", args={"__name__": f"op{n}"})
        for n in range(9) for ph, at in (("B", 0.0), ("E", 0.5))
    ]  # fmt: skip
    run = import_path(write(tmp_path / "1.chrome_timeline.json", content), tmp_path / "run")
    names = [(row["name"], row["type"]) for row in store.read(run, "op_info").to_pylist()]
    assert names == [("op0", "type0"), ("op1", "type1"), ("op2", "type0"), (None, "type1"), (None, "type0")]
    assert "operators" in {item.code for item in run.manifest.warnings}


def test_a_recording_that_only_begins_events_is_read_within_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline, "MOST_OPEN", 5)
    begun = [event("B", "b", 1.0 + n, tid="host") for n in range(9)]
    content = [event("B", "a", 0.0, tid="host"), event("E", "a", 1.0, tid="host"), *begun]
    run = import_path(write(tmp_path / "1.chrome_timeline.json", content), tmp_path / "run")
    assert {(item.code, item.message) for item in run.manifest.warnings} == {
        ("left_out", "left out 4 times: events that begin within so many others"), ("left_out", "left out 5 times: events that never end"),
    }  # fmt: skip


LIVED = (
    '<svg xmlns:tag="https://megengine.org.cn"><rect tag:type="tensor" tag:name="x" tag:address="0x40" tag:size="8B " '
    'tag:produced="1us " tag:duration="2us "/></svg>'
)


def test_a_memory_file_beside_a_timeline_leaves_its_operators_alone(tmp_path):
    """The profiler writes both. The tensors' names come behind the operators', with numbers of their own."""
    folder = tmp_path / "profile"
    folder.mkdir()
    for pid, later in ((7, 0), (12, 5000)):
        args = {"__name__": f"conv{pid}"}
        content = current(
            event("B", "op", 1.0, tid=2, cat="Kernel"), event("E", "op", 2.0, tid=2, cat="Kernel", args=args)
        )
        content["metadata"]["localTime"] = str(1625027241000000000 + later)
        write(folder / f"{pid}.chrome_timeline.json", content)
    (folder / "12.memory_flow.svg").write_text(LIVED, encoding="utf-8")
    run = import_path(folder, tmp_path / "run")
    names = {(row["rank"], row["op_id"]): row["name"] for row in store.read(run, "op_info").to_pylist()}
    assert names == {(0, 0): "conv7", (1, 0): "conv12", (1, 1): "x"}
    (row,) = store.read(run, "allocation").to_pylist()
    assert (row["rank"], row["op_id"], row["produced_ns"], row["released_ns"]) == (1, 1, 6000, 8000)
    assert run.manifest.tables["op_info"] == 3
    assert [row["op_id"] for row in store.read(run, "op").to_pylist()] == [0, 0]


def test_a_second_memory_file_of_a_process_is_left_out_and_said(tmp_path):
    folder = tmp_path / "profile"
    folder.mkdir()
    write(folder / "7.chrome_timeline.json", current(event("B", "op", 1.0, tid=1), event("E", "op", 2.0, tid=1)))
    for name in ("7.memory_flow.svg", "7.later.memory_flow.svg", "8.memory_flow.svg"):
        (folder / name).write_text(LIVED, encoding="utf-8")
    run = import_path(folder, tmp_path / "run")
    assert run.manifest.tables["allocation"] == 1
    assert [item.message for item in run.manifest.warnings if "left out" in item.message] == [
        "`7.memory_flow.svg` was left out: the rank has the lifetimes of another file already",
        "`8.memory_flow.svg` was left out: process 8 has no timeline here; import it by itself",
    ]


def test_a_disk_that_is_full_at_the_end_leaves_no_unfinished_file(tmp_path, monkeypatch):
    run = import_path(
        write(tmp_path / "1.chrome_timeline.json", current(event("i", "StopStep", 1.0))), tmp_path / "run"
    )
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
    pairs = [event(ph, "OpDispatch", n + at) for n in range(500) for ph, at in (("B", 0.0), ("E", 0.5))]
    path = write(
        tmp_path / "7.chrome_timeline.json", {"traceEvents": pairs, "metadata": {"localTime": "1625027241000000000"}}
    )
    path.write_bytes(path.read_bytes()[:-3000])
    run = import_path(path, tmp_path / "run")
    assert run.manifest.state == "partial"
    assert 400 < run.manifest.tables["span"] < 500
