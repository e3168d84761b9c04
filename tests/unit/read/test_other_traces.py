"""Chrome traces of any program: pairs of events, asynchronous ones, no categories; and steps as the user names them."""

import gzip
import json
from collections import Counter

import pytest
from ascend_files import write_output
from stored_rows import rows

from pipeprof.errors import SourceError, UsageError
from pipeprof.read.chrome.events import Pairs, decode
from pipeprof.read.foreign import import_path, recognise
from pipeprof.record import store
from pipeprof.report.run_verdict import verdict_of


def event(ph, name, ts, tid=1, **more):
    return {"ph": ph, "name": name, "pid": 7, "tid": tid, "ts": ts, **more}


CALLS = [
    event("X", "train_step 3", 10, dur=50),
    event("B", "load", 11.5),
    event("B", "read", 12.25, args={"name": "disk"}),
    event("E", "", 14.25),
    event("E", "", 20.125),
    event("X", "train_step 4", 70, dur=50.001),
    event("C", "queue", 72, args={"depth": 3}),
]


def written(path, content, head=b""):
    data = head + json.dumps(content).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def operators(run):
    names = dict(rows(run, "op_info", "op_id", "name"))
    return sorted(
        (start, names[op_id], dur, own)
        for op_id, start, dur, own in rows(run, "op", "op_id", "start_ns", "dur_ns", "self_ns")
    )


@pytest.mark.parametrize("name", ["any.json", "packed.json.gz", "packed_without_suffix.json"])
@pytest.mark.parametrize("form", ["object", "list"])
def test_pairs_are_calls_with_own_time_like_complete_events(tmp_path, name, form):
    path = written(tmp_path / name, {"traceEvents": CALLS} if form == "object" else CALLS)
    if "without" in name:
        path.write_bytes(gzip.compress(path.read_bytes()))
    run = import_path(path, tmp_path / "run")
    assert run.manifest.source == "import:chrome"
    assert run.manifest.state == "complete"
    assert operators(run) == [
        (0, "train_step 3", 50_000, 41_375), (1_500, "load", 8_625, 6_625), (2_250, "read", 2_000, 2_000),
        (60_000, "train_step 4", 50_001, 50_001),
    ]  # fmt: skip
    assert rows(run, "counter", "t_ns", "name", "series", "value") == [(62_000, "queue", "depth", 3.0)]
    assert "step" in {item.what for item in run.manifest.not_measured}


def test_of_pairs_with_the_same_times_the_one_that_began_first_is_the_caller(tmp_path):
    content = [
        event("B", "outer", 10),
        event("B", "inner", 10),
        event("B", "most", 10),
        event("X", "x", 11, tid=2, dur=1),
    ]
    content += [event("E", "", 500), event("X", "y", 13, tid=2, dur=1), event("E", "", 500), event("E", "", 500)]
    run = import_path(written(tmp_path / "any.json", content), tmp_path / "run")
    named = dict(rows(run, "op_info", "op_id", "name"))
    called = {number: named[op_id] for number, op_id in rows(run, "op", "exec_id", "op_id")}
    assert {(named[op_id], called.get(parent)) for op_id, parent in rows(run, "op", "op_id", "parent_id")} == {
        ("outer", None), ("inner", "outer"), ("most", "inner"), ("x", None), ("y", None),
    }  # fmt: skip


def test_pairs_are_in_the_order_of_their_begins_in_whichever_batch_they_end():
    pairs = Pairs(Counter())
    batches = [[event("B", "outer", 1), event("B", "inner", 1)], [event("B", "most", 2), *[event("E", "", 3)] * 3]]
    found = [pairs.complete(decode(json.dumps(batch).encode()), {one["ph"] for one in batch}) for batch in batches]
    assert [[one.name for one in batch] for batch in found] == [[], ["outer", "inner", "most"]]


def test_events_whose_arguments_hold_a_list_and_come_first_are_known(tmp_path):
    first = {"args": {"shape": [2, 3]}, "dur": 5, "name": "a", "ph": "X", "pid": 1, "tid": 1, "ts": 0}
    for number, content in enumerate(([first], {"traceEvents": [first]})):
        assert recognise(written(tmp_path / f"{number}.json", content)) == "chrome"


def test_what_has_no_process_thread_or_category_is_not_named_for_it(tmp_path):
    content = [{"ph": "X", "name": "a", "ts": 0, "dur": 5}, {"ph": "X", "name": "b", "ts": 0, "dur": 5, "pid": 3}]
    run = import_path(written(tmp_path / "any.json", content), tmp_path / "run")
    assert sorted(rows(run, "op", "track")) == [("(none)",), ("3",)]
    assert rows(run, "op_info", "category") == [(None,), (None,)]


def test_steps_are_what_the_user_says_they_are(tmp_path):
    path = written(tmp_path / "any.json", CALLS)
    run = import_path(path, tmp_path / "run", step="train_step ([0-9]+)")
    assert rows(run, "step", "step", "source_step", "start_ns", "end_ns") == [
        (0, 3, 0, 50_000),
        (1, 4, 60_000, 110_001),
    ]
    assert {name for _, name, _, _ in operators(run)} == {"train_step *", "load", "read"}
    assert {step for (step,) in rows(run, "op", "step")} == {0, 1}
    assert run.manifest.reps[0].ranks[0].step_evidence == "train_step ([0-9]+)"


def test_a_step_within_a_step_is_none(tmp_path):
    content = [event("X", "step", 0, dur=10), event("X", "step", 2, dur=3), event("X", "step", 20, dur=10)]
    run = import_path(written(tmp_path / "any.json", content), tmp_path / "run", step="step")
    assert rows(run, "step", "start_ns", "end_ns") == [(0, 10_000), (20_000, 30_000)]


def test_a_pattern_that_is_none_is_refused_and_leaves_no_run(tmp_path):
    path = written(tmp_path / "any.json", CALLS)
    with pytest.raises(UsageError, match="is not a regular expression"):
        import_path(path, tmp_path / "run", step="(")
    assert [found.name for found in tmp_path.iterdir()] == ["any.json"]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("(", "is not a regular expression"),
        ("a{9999999999}", "is not a regular expression"),
        ("step", "is read as ascend"),
    ],
)
def test_a_pattern_that_no_file_can_use_is_refused(tmp_path, step, said):
    source = write_output(tmp_path / "profile")
    with pytest.raises(UsageError, match=said):
        import_path(source, tmp_path / "run", step=step, kind="ascend")
    assert [found.name for found in tmp_path.iterdir()] == ["profile"]


def test_asynchronous_events_are_spans_whichever_thread_ends_them(tmp_path):
    content = [
        event("X", "main", 0, dur=100),
        event("b", "request", 1, cat="net", id="0x1"), event("b", "request", 2, cat="net", id="0x2"),
        event("e", "request", 5, tid=2, cat="net", id="0x1"), event("e", "request", 9, tid=2, cat="net", id="0x2"),
        event("b", "local", 3, cat="net", id2={"local": "7"}), event("e", "local", 4, cat="net", id2={"local": "7"}),
        event("S", "old", 20, id=0), event("T", "old", 21, id=0), event("F", "old", 30, id=0),
    ]  # fmt: skip
    run = import_path(written(tmp_path / "any.json", content), tmp_path / "run")
    found = sorted(rows(run, "span", "start_ns", "dur_ns", "name", "category"))
    assert found == [
        (1_000, 4_000, "request", "net"), (2_000, 7_000, "request", "net"), (3_000, 1_000, "local", "net"),
        (20_000, 10_000, "old", None), (21_000, 0, "old", None),
    ]  # fmt: skip
    assert [name for _, name, _, _ in operators(run)] == ["main"]


def test_an_id_is_told_apart_by_scope_and_where_it_is_local_by_process(tmp_path):
    both = [{"id2": {"local": "7"}, "pid": pid} for pid in (1, 2)] + [{"id": 7, "scope": scope} for scope in "ab"]
    content = [event("X", "main", 0, dur=100)]
    content += [{**event("b", f"span {at}", at, cat="net"), **one} for at, one in enumerate(both, 1)]
    content += [{**event("e", "", at + 10, cat="net"), **one} for at, one in enumerate(both, 1)]
    shared = {"cat": "net", "id2": {"global": "9"}}
    content += [{**event(ph, "shared", at), **shared, "pid": at} for at, ph in ((50, "b"), (60, "e"))]
    run = import_path(written(tmp_path / "any.json", content), tmp_path / "run")
    assert sorted(rows(run, "span", "start_ns", "dur_ns", "name")) == [
        *((1000 * at, 10_000, f"span {at}") for at in range(1, 5)), (50_000, 10_000, "shared"),
    ]  # fmt: skip


def test_flows_with_an_id_of_the_newer_form_keep_it(tmp_path):
    content = [event("X", "main", 0, dur=100)]
    ids = [{"id2": {"local": "7"}, "pid": 1}, {"id2": {"local": 7}, "pid": 2}, {"id2": {"global": "0x9"}, "pid": 3}]
    content += [{**event(ph, "f", at, cat="net"), **one} for one in ids for at, ph in ((1, "s"), (2, "f"))]
    run = import_path(written(tmp_path / "any.json", content), tmp_path / "run")
    assert sorted(rows(run, "flow", "flow_id", "side")) == [
        (flow, side) for flow in ("0x9", "1/7", "2/7") for side in ("end", "start")
    ]


@pytest.mark.parametrize(("damage", "lost"), [(b"NaN", 1), (b'"\xff"', 2)])
def test_a_damaged_event_leaves_the_counters_beside_it(tmp_path, damage, lost):
    content = [event("C", "queue", at, args={"depth": at, "other": at}) for at in range(1, 5)]
    path = written(tmp_path / "any.json", [*content, event("X", "main", 0, dur=9), event("C", "bare", 1)])
    path.write_bytes(path.read_bytes().replace(b'"depth": 2', b'"depth": ' + damage))
    run = import_path(path, tmp_path / "run")
    found = {(series, value) for series, value in rows(run, "counter", "series", "value")}
    assert found == {("depth", 1), ("depth", 3), ("depth", 4), *(("other", at) for at in range(1, 5))}
    assert [item.message for item in run.manifest.warnings if item.code == "left_out"] == [
        f"`any.json`: events left out: {lost} with counters that cannot be read"
    ]


def test_values_of_counters_may_be_text_and_what_is_none_is_counted(tmp_path):
    values = {"text": "12.5", "whole": 1, "no": None, "truth": True, "word": "much", "inner": {"x": 1}, "huge": "1e999"}
    content = [
        event("C", "queue", 1, args={name: value, "beside": at}) for at, (name, value) in enumerate(values.items())
    ]
    content += [event("C", "queue", "late", args={"beside": 9}), event("X", "main", 0, dur=9)]
    run = import_path(written(tmp_path / "any.json", content), tmp_path / "run")
    assert sorted(rows(run, "counter", "series", "value")) == [
        *(("beside", float(at)) for at in range(7)), ("text", 12.5), ("whole", 1.0),
    ]  # fmt: skip
    assert [item.message for item in run.manifest.warnings if item.code == "left_out"] == [
        "`any.json`: events left out: 4 with counters that cannot be read, 1 with no time"
    ]


def test_threads_of_one_name_in_a_process_are_told_apart(tmp_path):
    threads = [(7, 1, "worker"), (7, 2, "worker"), (7, 3, "main"), (8, 1, "worker")]
    content = [{**event("M", "thread_name", 0, tid, args={"name": name}), "pid": pid} for pid, tid, name in threads]
    content += [{**event("X", "work", 0, tid, dur=5), "pid": pid} for pid, tid, _ in threads]
    run = import_path(written(tmp_path / "any.json", content), tmp_path / "run")
    assert sorted(rows(run, "op", "track")) == [
        ("7 / main",), ("7 / worker 1",), ("7 / worker 2",), ("8 / worker",),
    ]  # fmt: skip


def test_what_never_ends_or_never_began_is_counted(tmp_path):
    content = [event("X", "a", 0, dur=1), event("E", "", 2), event("B", "b", 3), event("B", "c", 9), event("E", "", 8)]
    run = import_path(written(tmp_path / "any.json", content), tmp_path / "run")
    (said,) = [item.message for item in run.manifest.warnings if item.code == "left_out"]
    for what in (
        "1 with a begin and no end",
        "1 with an end and no begin",
        "1 with no time, or an end before the begin",
    ):
        assert what in said


def test_a_cut_off_trace_gives_what_was_read(tmp_path):
    path = written(tmp_path / "any.json", {"traceEvents": CALLS})
    path.write_bytes(path.read_bytes()[:-150])
    run = import_path(path, tmp_path / "run")
    assert run.manifest.state == "partial"
    assert len(operators(run)) == 3


@pytest.mark.parametrize(("end", "state"), [("", "complete"), (",\n", "complete"), (',\n{"ph":', "partial")])
def test_a_list_may_lack_its_end_behind_a_whole_event(tmp_path, end, state):
    path = tmp_path / "any.json"
    path.write_text(json.dumps(CALLS)[:-1] + end)
    run = import_path(path, tmp_path / "run")
    assert (run.manifest.state, len(operators(run))) == (state, 4)


def test_beside_files_of_a_known_profiler_other_traces_are_left_out(tmp_path):
    from kineto_files import training, write_trace

    folder = tmp_path / "raw"
    write_trace(folder / "x.pt.trace.json", training(3))
    written(folder / "other.json", CALLS)
    run = import_path(folder, tmp_path / "run")
    assert run.manifest.source == "import:kineto"
    assert any("other.json" in item.message for item in run.manifest.warnings if item.code == "left_out")


def test_json_without_events_is_no_trace(tmp_path):
    for number, content in enumerate(({"traceEvents": []}, [{"name": "x"}], {"ph": "X"})):
        path = written(tmp_path / f"{number}.json", content)
        assert recognise(path) is None
        with pytest.raises(SourceError):
            import_path(path, tmp_path / "run")


def test_a_trace_by_itself_gives_the_same_rows_by_import_and_by_ops(tmp_path, monkeypatch):
    from ascend_files import write_output

    from pipeprof.read.imported import imported

    monkeypatch.setenv("PIPEPROF_CACHE", str(tmp_path / "cache"))
    write_output(tmp_path / "raw")
    (path,) = (tmp_path / "raw").rglob("trace_view.json")
    one, other = import_path(path, tmp_path / "run"), imported(path)
    assert one.manifest.tables == other.manifest.tables
    assert one.manifest.source == other.manifest.source == "import:kineto"


def device_trace(streams=()):
    """As JAX and TensorFlow write it for a device: lines of steps, modules and operators, 16 ms of each 19 ms."""
    threads = {1: "Steps", 2: "XLA Modules", 3: "XLA Ops"} | {4 + n: name for n, name in enumerate(streams)}
    named = [{"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "/device:TPU:0"}}]
    named += [{"ph": "M", "name": "thread_name", "pid": 3, "tid": t, "args": {"name": n}} for t, n in threads.items()]
    named += [{"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "/host:CPU"}}]
    events = [{"ph": "X", "name": "train.py:7 main", "pid": 9, "tid": 1, "ts": 0, "dur": 60_000}]
    for number in range(3):
        names = {1: f"{number}", 2: "jit_step(7)", 3: "fusion.1"} | {4 + n: "fusion_1" for n in range(len(streams))}
        events += [
            {"ph": "X", "name": n, "pid": 3, "tid": t, "ts": 19_000 * number, "dur": 16_000} for t, n in names.items()
        ]
    return [*named, *events]


@pytest.mark.parametrize(("streams", "operator"), [((), "fusion.1"), (["Stream #13(Compute)"], "fusion_1")])
def test_the_lines_of_a_device_are_its_steps_and_its_work(tmp_path, streams, operator):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": device_trace(streams)}))
    run = import_path(path, tmp_path / "run")
    assert [(row["source_step"], row["end_ns"] - row["start_ns"]) for row in store.read(run, "step").to_pylist()] == [
        (number, 16_000_000) for number in range(3)
    ]
    infos = {row["op_id"]: row for row in store.read(run, "op_info").to_pylist()}
    work = [infos[row["op_id"]]["name"] for row in store.read(run, "op").to_pylist() if row["side"] == "device"]
    assert work == [operator] * 3
    assert verdict_of(run).verdict.lead.detail == "between_steps"
