"""Chrome traces of any program: pairs of events, asynchronous ones, no categories; and steps as the user names them."""

import gzip
import json
from collections import Counter

import pytest
from ascend_files import write_output
from kineto_files import training, write_trace
from stored_rows import rows, warnings

from pipeprof.errors import SourceError, UsageError
from pipeprof.read.chrome.events import Pairs, decode
from pipeprof.read.foreign import import_path, recognise
from pipeprof.read.imported import imported
from pipeprof.report.run_verdict import verdict_of


def event(ph, name, ts, tid=1, **more):
    return {"ph": ph, "name": name, "pid": 7, "tid": tid, "ts": ts, **more}


CALLS = [
    event("X", "train_step 3", 10, dur=50), event("B", "load", 11.5), event("B", "read", 12.25, args={"name": "disk"}),
    event("E", "", 14.25), event("E", "", 20.125), event("X", "train_step 4", 70, dur=50.001),
    event("C", "queue", 72, args={"depth": 3}),
]  # fmt: skip
MAIN = event("X", "main", 0, dur=100)


def written(path, content):
    data = json.dumps(content).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def run_of(tmp_path):
    """`run_of(events)`: the run of a trace."""
    return lambda content, **how: import_path(written(tmp_path / "any.json", content), tmp_path / "run", **how)


def operators(run):
    names = dict(rows(run, "op_info", "op_id name"))
    found = rows(run, "op", "op_id start_ns dur_ns self_ns")
    return sorted((start, names[op_id], dur, own) for op_id, start, dur, own in found)


@pytest.mark.parametrize("name", ["any.json", "packed.json.gz", "packed_without_suffix.json"])
@pytest.mark.parametrize("form", ["object", "list"])
def test_pairs_are_calls_with_own_time_like_complete_events(tmp_path, name, form):
    path = written(tmp_path / name, {"traceEvents": CALLS} if form == "object" else CALLS)
    if "without" in name:
        path.write_bytes(gzip.compress(path.read_bytes()))
    run = import_path(path, tmp_path / "run")
    assert (run.manifest.source, run.manifest.state) == ("import:chrome", "complete")
    assert operators(run) == [
        (0, "train_step 3", 50_000, 41_375), (1_500, "load", 8_625, 6_625), (2_250, "read", 2_000, 2_000),
        (60_000, "train_step 4", 50_001, 50_001),
    ]  # fmt: skip
    assert rows(run, "counter", "t_ns name series value") == [(62_000, "queue", "depth", 3.0)]
    assert "step" in {item.what for item in run.manifest.not_measured}


def test_of_pairs_with_the_same_times_the_one_that_began_first_is_the_caller(run_of):
    ends = [event("E", "", 500)]
    begins = [event("B", name, 10) for name in ("outer", "inner", "most")]
    others = [event("X", name, at, tid=2, dur=1) for name, at in (("x", 11), ("y", 13))]
    run = run_of([*begins, others[0], *ends, others[1], *ends * 2])
    named = dict(rows(run, "op_info", "op_id name"))
    called = {number: named[op_id] for number, op_id in rows(run, "op", "exec_id op_id")}
    assert {named[op_id]: called.get(parent) for op_id, parent in rows(run, "op", "op_id parent_id")} == {
        "outer": None, "inner": "outer", "most": "inner", "x": None, "y": None,
    }  # fmt: skip


def test_pairs_are_in_the_order_of_their_begins_in_whichever_batch_they_end():
    pairs = Pairs(Counter())
    batches = [[event("B", "outer", 1), event("B", "inner", 1)], [event("B", "most", 2), *[event("E", "", 3)] * 3]]
    found = [pairs.complete(decode(json.dumps(batch).encode()), {one["ph"] for one in batch}) for batch in batches]
    assert [[one.name for one in batch] for batch in found] == [[], ["outer", "inner", "most"]]


def test_a_trace_is_known_by_its_events_whatever_comes_first_and_json_without_any_is_none(tmp_path):
    first = {"args": {"shape": [2, 3]}, "dur": 5, "name": "a", "ph": "X", "pid": 1, "tid": 1, "ts": 0}
    for content in ([first], {"traceEvents": [first]}):
        assert recognise(written(tmp_path / "any.json", content)) == "chrome"
    for content in ({"traceEvents": []}, [{"name": "x"}], {"ph": "X"}):
        path = written(tmp_path / "any.json", content)
        assert recognise(path) is None
        with pytest.raises(SourceError):
            import_path(path, tmp_path / "run")


VALUES = {"text": "12.5", "whole": 1, "no": None, "truth": True, "word": "much", "inner": {"x": 1}, "huge": "1e999"}
THREADS = [(7, 1, "worker"), (7, 2, "worker"), (7, 3, "main"), (8, 1, "worker")]
LOCAL, SHARED = {"cat": "net", "id2": {"local": "7"}}, {"cat": "net", "id2": {"global": "9"}}
IDS = [{"id2": {"local": "7"}, "pid": pid} for pid in (1, 2)] + [{"id": 7, "scope": scope} for scope in "ab"]
FLOWS = [{"id2": {"local": "7"}, "pid": 1}, {"id2": {"local": 7}, "pid": 2}, {"id2": {"global": "0x9"}, "pid": 3}]


@pytest.mark.parametrize(
    ("content", "step", "expected", "left_out"),
    [
        # what has no process, thread or category is not named for it
        ([{"ph": "X", "name": "a", "ts": 0, "dur": 5}, {"ph": "X", "name": "b", "ts": 0, "dur": 5, "pid": 3}], None,
         {"op track": [("(none)",), ("3",)], "op_info category": [(None,), (None,)]}, None),
        # steps are what the user says they are; one within another is none
        (CALLS, "train_step ([0-9]+)",
         {"step step source_step start_ns end_ns": [(0, 3, 0, 50_000), (1, 4, 60_000, 110_001)],
          "op step": [(0,), (0,), (0,), (1,)], "op_info name": [("load",), ("read",), ("train_step *",)]}, None),
        ([event("X", "step", at, dur=dur) for at, dur in ((0, 10), (2, 3), (20, 10))], "step",
         {"step start_ns end_ns": [(0, 10_000), (20_000, 30_000)]}, None),
        # asynchronous events are spans, whichever thread ends them
        ([MAIN, event("b", "request", 1, cat="net", id="0x1"), event("b", "request", 2, cat="net", id="0x2"),
          event("e", "request", 5, tid=2, cat="net", id="0x1"), event("e", "request", 9, tid=2, cat="net", id="0x2"),
          event("b", "local", 3, **LOCAL), event("e", "local", 4, **LOCAL),
          event("S", "old", 20, id=0), event("T", "old", 21, id=0), event("F", "old", 30, id=0)], None,
         {"span start_ns dur_ns name category": [
             (1_000, 4_000, "request", "net"), (2_000, 7_000, "request", "net"), (3_000, 1_000, "local", "net"),
             (20_000, 10_000, "old", None), (21_000, 0, "old", None)], "op_info name": [("main",)]}, None),
        # an id is told apart by its scope and, where it is local, by its process
        ([MAIN, *({**event("b", f"span {at}", at, cat="net"), **one} for at, one in enumerate(IDS, 1)),
          *({**event("e", "", at + 10, cat="net"), **one} for at, one in enumerate(IDS, 1)),
          *({**event(ph, "shared", at), **SHARED, "pid": at} for at, ph in ((50, "b"), (60, "e")))], None,
         {"span start_ns dur_ns name":
             [*((1000 * at, 10_000, f"span {at}") for at in range(1, 5)), (50_000, 10_000, "shared")]}, None),
        # flows with an id of the newer form keep it
        ([MAIN, *({**event(ph, "f", at, cat="net"), **one} for one in FLOWS for at, ph in ((1, "s"), (2, "f")))], None,
         {"flow flow_id side": [(flow, side) for flow in ("0x9", "1/7", "2/7") for side in ("end", "start")]}, None),
        # values of counters may be text, and what is none is counted
        ([*(event("C", "queue", 1, args={name: one, "beside": at}) for at, (name, one) in enumerate(VALUES.items())),
          event("C", "queue", "late", args={"beside": 9}), MAIN], None,
         {"counter series value": [*(("beside", float(at)) for at in range(7)), ("text", 12.5), ("whole", 1.0)]},
         ["left out: 4 with counters that cannot be read, 1 with no time"]),
        # threads of one name in a process are told apart
        ([*({**event("M", "thread_name", 0, tid, args={"name": name}), "pid": pid} for pid, tid, name in THREADS),
          *({**event("X", "work", 0, tid, dur=5), "pid": pid} for pid, tid, _ in THREADS)], None,
         {"op track": [("7 / main",), ("7 / worker 1",), ("7 / worker 2",), ("8 / worker",)]}, None),
        # what never ends or never began is counted
        ([event("X", "a", 0, dur=1), event("E", "", 2), event("B", "b", 3), event("B", "c", 9), event("E", "", 8)],
         None, {},
         ["1 with a begin and no end", "1 with an end and no begin", "1 with no time, or an end before"]),
    ],
)  # fmt: skip
def test_a_trace_becomes_these_rows(run_of, content, step, expected, left_out):
    run = run_of(content, **({"step": step} if step else {}))
    assert {asked: sorted(rows(run, *asked.split(" ", 1))) for asked in expected} == expected
    for text in left_out or ():
        assert text in warnings(run, "left_out")[0]
    if step:
        assert run.manifest.reps[0].ranks[0].step_evidence == step


@pytest.mark.parametrize(
    ("step", "kind", "said"),
    [
        ("(", None, "is not a regular expression"),
        ("(", "ascend", "is not a regular expression"),
        ("a{9999999999}", "ascend", "is not a regular expression"),
        ("step", "ascend", "is read as ascend"),
    ],
)
def test_a_pattern_that_no_file_can_use_is_refused_and_leaves_no_run(tmp_path, step, kind, said):
    source = write_output(tmp_path / "profile") if kind else written(tmp_path / "any.json", CALLS)
    with pytest.raises(UsageError, match=said):
        import_path(source, tmp_path / "run", step=step, **({"kind": kind} if kind else {}))
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(("damage", "lost"), [(b"NaN", 1), (b'"\xff"', 2)])
def test_a_damaged_event_leaves_the_counters_beside_it(tmp_path, damage, lost):
    content = [event("C", "queue", at, args={"depth": at, "other": at}) for at in range(1, 5)]
    path = written(tmp_path / "any.json", [*content, MAIN, event("C", "bare", 1)])
    path.write_bytes(path.read_bytes().replace(b'"depth": 2', b'"depth": ' + damage))
    run = import_path(path, tmp_path / "run")
    found = set(rows(run, "counter", "series value"))
    assert found == {("depth", 1), ("depth", 3), ("depth", 4), *(("other", at) for at in range(1, 5))}
    assert warnings(run, "left_out") == [f"`any.json`: events left out: {lost} with counters that cannot be read"]


def test_a_cut_off_trace_gives_what_was_read(tmp_path):
    path = written(tmp_path / "any.json", {"traceEvents": CALLS})
    path.write_bytes(path.read_bytes()[:-150])
    run = import_path(path, tmp_path / "run")
    assert (run.manifest.state, len(operators(run))) == ("partial", 3)


@pytest.mark.parametrize(("end", "state"), [("", "complete"), (",\n", "complete"), (',\n{"ph":', "partial")])
def test_a_list_may_lack_its_end_behind_a_whole_event(tmp_path, end, state):
    path = tmp_path / "any.json"
    path.write_text(json.dumps(CALLS)[:-1] + end)
    run = import_path(path, tmp_path / "run")
    assert (run.manifest.state, len(operators(run))) == (state, 4)


def test_beside_files_of_a_known_profiler_other_traces_are_left_out(tmp_path):
    folder = tmp_path / "raw"
    write_trace(folder / "x.pt.trace.json", training(3))
    written(folder / "other.json", CALLS)
    run = import_path(folder, tmp_path / "run")
    assert run.manifest.source == "import:kineto"
    assert any("other.json" in said for said in warnings(run, "left_out"))


def test_a_trace_by_itself_gives_the_same_rows_by_import_and_by_ops(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPEPROF_CACHE", str(tmp_path / "cache"))
    write_output(tmp_path / "raw")
    (path,) = (tmp_path / "raw").rglob("trace_view.json")
    one, other = import_path(path, tmp_path / "run"), imported(path)
    assert one.manifest.tables == other.manifest.tables
    assert one.manifest.source == other.manifest.source == "import:kineto"


def device_trace(streams=()):
    """As JAX and TensorFlow write it for a device: lines of steps, modules and operators, 16 ms of each 19 ms."""
    threads = {1: "Steps", 2: "XLA Modules", 3: "XLA Ops"} | {4 + n: name for n, name in enumerate(streams)}
    processes = {3: "/device:TPU:0", 9: "/host:CPU"}
    events = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}} for pid, name in processes.items()
    ]
    events += [{"ph": "M", "name": "thread_name", "pid": 3, "tid": t, "args": {"name": n}} for t, n in threads.items()]
    events += [{"ph": "X", "name": "train.py:7 main", "pid": 9, "tid": 1, "ts": 0, "dur": 60_000}]
    for number in range(3):
        names = {1: f"{number}", 2: "jit_step(7)", 3: "fusion.1"} | {4 + n: "fusion_1" for n in range(len(streams))}
        at = {"pid": 3, "ts": 19_000 * number, "dur": 16_000}
        events += [{"ph": "X", "name": name, "tid": tid, **at} for tid, name in names.items()]
    return events


@pytest.mark.parametrize(("streams", "operator"), [((), "fusion.1"), (["Stream #13(Compute)"], "fusion_1")])
def test_the_lines_of_a_device_are_its_steps_and_its_work(run_of, streams, operator):
    run = run_of({"traceEvents": device_trace(streams)})
    assert [(number, end - start) for number, start, end in rows(run, "step", "source_step start_ns end_ns")] == [
        (number, 16_000_000) for number in range(3)
    ]
    names = dict(rows(run, "op_info", "op_id name"))
    work = [names[op_id] for op_id, side in rows(run, "op", "op_id side") if side == "device"]
    assert work == [operator] * 3
    assert verdict_of(run).verdict.lead.detail == "between_steps"
