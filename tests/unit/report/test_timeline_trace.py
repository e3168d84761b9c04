"""The trace: form, clock, choice, and that nothing is lost, also where it is imported again."""

import errno
import random
import re
import resource
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trace_format import check, imported, load, thread_names

from pipeprof.errors import RunError, UsageError
from pipeprof.query.engine import Engine
from pipeprof.record.run import Rank, Rep
from pipeprof.report.timeline import trace as timeline
from pipeprof.report.timeline.trace import Choice, Sink, write
from tests.unit.report.conftest import MS

MEMORY = [{"t_ns": n * MS, "device": "CPU", "name": "pool", "allocated_bytes": n * 7} for n in range(4)]


def step(number, rank=0, bp=7 * MS):
    start = number * 10 * MS
    return {
        "rank": rank, "step": number, "kind": "train", "epoch": 0, "pipeline_id": 0, "start_ns": start,
        "fp_ns": start + 4 * MS, "bp_ns": None if bp is None else start + bp, "end_ns": start + 10 * MS,
    }  # fmt: skip


def op(op_id, start, dur, **more):
    return {"op_id": op_id, "start_ns": start, "dur_ns": dur, "self_ns": dur, "track": "CPU", **more}


ONE = {"op": [op(0, 1, 2)]}


@pytest.fixture
def draw(make_run, tmp_path):
    """`draw(tables or run)`: events by phase, after the format was checked."""

    def drawn(run, **choice):
        written = write(make_run(run) if isinstance(run, dict) else run, tmp_path / "t.json", Choice(**choice))
        by_phase = check(load(tmp_path / "t.json"))
        assert written.events == sum(len(events) for phase, events in by_phase.items() if phase != "M")
        return by_phase

    return drawn


def slices(by_phase, category):
    found = [event for event in by_phase["X"] if event["cat"] == category]
    return [(event["name"], event["ts"], event["dur"], event["args"]) for event in found]


def threads(by_phase):
    return sorted(thread_names(by_phase).values())


def test_steps_and_their_phases_add_up(draw):
    found = draw({"step": [step(0), step(1, bp=None)]})
    kept = {"kind": "train", "epoch": 0}
    assert slices(found, "step") == [("step 0", 0, 10_000, kept), ("step 1", 10_000, 10_000, kept)]
    assert slices(found, "phase") == [
        ("time before the forward pass", 0, 4_000, {"step": 0}),
        ("forward and backward pass", 4_000, 3_000, {"step": 0}),
        ("tail", 7_000, 3_000, {"step": 0}), ("time before the forward pass", 10_000, 4_000, {"step": 1}),
        ("everything after the fetch", 14_000, 6_000, {"step": 1}),
    ]  # fmt: skip


def test_times_keep_every_nanosecond_and_are_negative_before_the_zero(draw):
    late = 3_599_999_999_999_999_001
    found = draw({"op": [op(0, -1_500, 2), op(0, -500, 2), op(0, 0, 2), op(0, 1, 2), op(0, late, 1_000_000_007)]})
    assert [event["ts"] for event in found["X"]] == [
        Decimal("-1.5"), Decimal("-0.5"), 0, Decimal("0.001"), Decimal("3599999999999999.001"),
    ]  # fmt: skip
    assert [event["dur"] for event in found["X"][-2:]] == [Decimal("0.002"), Decimal("1000000.007")]


def test_operators_say_what_they_are(draw):
    info = {"op_id": 3, "name": "net/Mul-op0", "type": "Mul", "phase": "forward", "device": "CPU", "in_shapes": "[2]"}
    kernel = {"op_id": 4, "name": "gemm", "type": "gemm", "device": "GPU", "category": "kernel"}
    foreign = {"op_id": 5, "name": "MatMul", "type": "MatMul", "device": "AI_CORE", "category": "Ascend Hardware"}
    tracks = [op(4, 2000, 5, track="stream 7"), op(5, 3000, 5, track="stream 8")]
    found = draw({"op": [op(3, 1000, 10, step=2), *tracks, op(9, 9000, 1)], "op_info": [info, kernel, foreign]})
    assert [(event["cat"], event["name"], event["args"]) for event in found["X"]] == [
        ("cpu_op", "net/Mul-op0", {"op_id": 3, "type": "Mul", "phase": "forward", "in_shapes": "[2]", "step": 2}),
        ("kernel", "gemm", {"op_id": 4}), ("kernel", "MatMul", {"op_id": 5}), ("cpu_op", "(unknown)", {"op_id": 9}),
    ]  # fmt: skip
    assert threads(found) == ["CPU", "stream 7", "stream 8"]


def test_names_may_hold_any_character(draw):
    name = 'a"b\\c\n\t\x00\u20ac\U0001f600</script>'
    shown = 'a"b\\c \\x00\u20ac\U0001f600</script>'  # as viewers show it: they take names as they are
    found = draw({
        "op": [op(0, 1, 2, track=name)], "op_info": [{"op_id": 0, "name": name, "type": name}],
        "flow": [{"flow_id": '7"\\', "category": name, "name": name, "side": "start", "t_ns": 5, "track": name}],
        "counter": [{"t_ns": 1, "track": name, "name": name, "series": name, "value": 1.5}],
    })  # fmt: skip
    assert found["X"][0]["name"] == found["s"][0]["name"] == shown
    assert re.fullmatch("f[0-9a-f]{14}", found["s"][0]["id"])
    assert found["C"][0]["args"] == {shown: Decimal("1.5")}
    assert set(threads(found)) == {shown}


def test_what_overlaps_in_part_gets_a_track_of_its_own(draw):
    found = draw({"span": [
        {"track": "main", "category": "x", "name": name, "start_ns": start, "dur_ns": dur}
        for name, start, dur in (("a", 0, 10), ("inside", 2, 3), ("sticks out", 8, 5), ("after", 20, 1))
    ]})  # fmt: skip
    names = thread_names(found)
    assert [(event["name"], names[event["pid"], event["tid"]]) for event in found["X"]] == [
        ("a", "main"), ("inside", "main"), ("sticks out", "main (2)"), ("after", "main"),
    ]  # fmt: skip


def test_of_equal_times_the_caller_is_outside(draw):
    ops = [op(n, 5, 10, exec_id=exec_id) for n, exec_id in ((2, 7), (1, 6), (0, 5))]  # as closed: callees first
    assert [event["args"]["op_id"] for event in draw({"op": ops})["X"]] == [0, 1, 2]


def test_collectives_stages_and_waits(draw):
    found = draw({
        "collective": [{"step": 1, "name": "AllReduce-op1", "kind": "all_reduce", "group_name": "world",
                        "track": "hccl", "start_ns": 7, "dur_ns": 2, "bytes": 64}],
        "stage": [{"stage": "import", "start_ns": 0, "dur_ns": 5}], "pipeline": [{"pipeline_id": 0, "role": "train"}],
        "fetch": [{"pipeline_id": 0, "fetch": 0, "step": 0, "start_ns": 1, "wait_ns": 3},
                  {"pipeline_id": 0, "fetch": 1, "step": None, "start_ns": 9, "wait_ns": 1}],
    })  # fmt: skip
    assert slices(found, "collective")[0][3] == {"kind": "all_reduce", "group": "world", "bytes": 64, "step": 1}
    assert [name for name, *_ in slices(found, "stage")] == ["import"]
    assert [arguments for *_, arguments in slices(found, "fetch")] == [{"pipeline": 0, "step": 0}, {"pipeline": 0}]
    assert threads(found) == ["collectives: hccl", "data: pipeline 0 (train)", "set-up"]
    sides = (None, "host_queue", "data_queue")
    found = draw({"fetch": [{"fetch": 0, "side": side, "start_ns": 1, "wait_ns": 3} for side in sides]})
    assert threads(found) == ["data", "data: data queue, on the device", "data: host queue, before the device"]


def test_queues_service_cpu_and_memory_are_counters(draw):
    key = {"pipeline_id": 0, "op_id": 2}
    cpu = {"t_ns": 1000, "scope": "process", "name": "trainer", "pid": 9, "user_ratio": 0.5, "sys_ratio": float("nan")}
    found = draw({
        "pipeline_op": [{**key, "op_type": "MapOp", "name": "flip"}],
        "fetch": [{"pipeline_id": 0, "start_ns": 1000, "wait_ns": 5, "depth": 6, "side": "host_queue"}],
        "queue": [{**key, "t_ns": 1000, "depth": 3}, {**key, "t_ns": 2000, "depth": None}],
        "op_service": [{**key, "t_ns": 1000, "avg_ns": 1234}], "cpu": [cpu], "memory": MEMORY[1:2],
    })  # fmt: skip
    assert {(event["name"], *event["args"].items()) for event in found["C"]} == {
        ("queue: pipeline 0 · 2 MapOp flip", ("depth", 3)),
        ("batches: host queue, before the device", ("depth", 6)),
        ("service: pipeline 0 · 2 MapOp flip", ("us per row", Decimal("1.234"))),
        ("cpu: process trainer 9", ("user", Decimal("0.5"))),
        ("memory: CPU pool", ("allocated_bytes", 7)),
    }


def test_how_busy_a_device_is_is_a_counter_that_ends_with_what_was_recorded(draw):
    info = [{"op_id": n, "device": "GPU"} for n in (0, 1)]
    ops = [op(0, 0, 5 * MS), op(1, 20 * MS, 10 * MS)]  # none in step 1
    found = draw({"step": [step(n) for n in range(3)], "op": ops, "op_info": info})
    readings = [(event["ts"], event["args"]["share"]) for event in found["C"] if event["name"] == "busy: GPU"]
    assert readings == [(0, 1), (5_000, 0), (20_000, 1), (30_000, 0)]


def test_arrows_join_host_and_device(draw):
    flow = {"flow_id": "12", "category": "ac2g", "name": "ac2g"}
    ends = [("start", 5, "host"), ("end", 20, "stream 7")]
    found = draw({
        "op": [op(0, 0, 10, track="host"), op(1, 20, 10, track="stream 7")],
        "flow": [{**flow, "side": side, "t_ns": at, "track": track} for side, at, track in ends],
    })  # fmt: skip
    tids = {event["args"]["op_id"]: event["tid"] for event in found["X"]}
    (start,), (end,) = found["s"], found["f"]
    assert (start["tid"], end["tid"]) == (tids[0], tids[1])
    assert (start["id"], start["cat"]) == (end["id"], end["cat"])


def test_ids_of_arrows_are_hexadecimal_and_differ_from_rank_to_rank(draw):
    texts = ["12", "99999999999", "100000000000", "18446744073709551615", "a", "12 ", ""]
    found = draw({"flow": [
        {"rank": rank, "flow_id": text, "category": "c", "name": "n", "side": side, "t_ns": n, "track": "t"}
        for rank in range(11) for n, text in enumerate(texts) for side in ("start", "end")
    ]})  # fmt: skip
    ids = [event["id"] for event in found["s"]]
    assert ids == [event["id"] for event in found["f"]]
    assert len({int(text, 16) for text in ids}) == 11 * len(texts)
    assert max(map(len, ids)) <= 16
    assert ids[0] == "1a12"


@pytest.mark.parametrize(("clocks", "starts"), [
    ([("a", 10**18, 50), ("a", 10**18 - 999, 80), ("b", 10**18 + 1000, 7_000_000)], {1: 100, 2: 130, 3: 1100}),
    ([("a", 10**18 + 500, 0), ("a", 10**18, 0)], {1: 600, 2: 100}),  # without one, the wall clock counts
])  # fmt: skip
def test_ranks_of_one_host_are_laid_on_each_other_by_the_clock_that_never_jumps(make_run, draw, clocks, starts):
    ranks = [
        Rank(rank=n, pid=n + 1, host=host, zero_realtime_ns=real, zero_monotonic_ns=monotonic)
        for n, (host, real, monotonic) in enumerate(clocks)
    ]
    reps = [Rep(rep=0, zero_realtime_ns=clocks[0][1], zero_monotonic_ns=clocks[0][2], ranks=ranks)]
    found = draw(make_run({"op": [op(0, 100, 10, rank=rank.rank) for rank in ranks]}, reps=reps))
    assert {event["pid"]: event["ts"] * 1000 for event in found["X"]} == starts
    titles = [event["args"]["name"] for event in found["M"] if event["name"] == "process_name"]
    assert titles == [f"rank {n} · {host} · pid {n + 1}" for n, (host, *_) in enumerate(clocks)]


def test_only_chosen_steps_ranks_and_repetitions(make_run, draw):
    places = [{"rep": rep, "rank": rank} for rep in (0, 1) for rank in (0, 1)]
    run = make_run({
        "step": [step(n) | place for place in places for n in range(4)],
        "op": [op(n, n * 10 * MS + 1, 5, **place) for place in places for n in range(4)],
        "memory": [{**row, "t_ns": row["t_ns"] * 10} for row in MEMORY],
    })  # fmt: skip
    found = draw(run, steps=(1, 3), ranks=frozenset({0}), rep=0)
    assert {event["args"]["op_id"] for event in found["X"] if event["cat"] == "cpu_op"} == {1, 2}
    assert [name for name, *_ in slices(found, "step")] == ["step 1", "step 2"]
    levels = [event for event in found["C"] if event["name"].startswith("memory")]
    assert len(levels) == 3  # those at the very edges of the steps included
    assert len({event["pid"] for event in found["X"]}) == 1
    assert len({event["pid"] for event in draw(run)["X"]}) == 4


@pytest.mark.parametrize(("tables", "choice", "message"), [
    ({"step": [step(0), step(1)]}, {"ranks": frozenset({7})}, "the run has no rank 7: it has rank 0"),
    ({"step": [step(0), step(1)]}, {"rep": 2}, "the run has no repetition 2: it has repetition 0"),
    ({"step": [step(0), step(1)]}, {"steps": (8, None)}, "the run has steps 0 to 1"), ({}, {}, "nothing to draw"),
])  # fmt: skip
def test_choosing_nothing_is_an_error_that_says_what_there_is(make_run, tmp_path, tables, choice, message):
    with pytest.raises(UsageError, match=message):
        write(make_run(tables), tmp_path / "t.json", Choice(**choice))
    assert not list(tmp_path.glob("*.json"))


def test_rows_without_a_time_are_counted(make_run, tmp_path):
    run = make_run({"op": [op(0, 1, 2), op(0, 5, None), op(0, None, 2)]})
    assert write(run, tmp_path / "t.json", Choice()).left_out == 2
    assert len(check(load(tmp_path / "t.json"))["X"]) == 1


def test_a_broken_write_leaves_nothing(make_run, tmp_path, monkeypatch):
    target = tmp_path / "t.json.gz"
    target.write_text("old")

    def failing(*_args):
        raise RunError("damaged")

    monkeypatch.setattr(timeline, "slice_texts", failing)
    with pytest.raises(RunError):
        write(make_run(ONE), target, Choice())
    assert target.read_text() == "old"
    assert not list(tmp_path.glob(".t.json*"))


class Full:
    """A file on a disk that has room for so many writes."""

    def __init__(self, room):
        self.room = room

    def write(self, _text):
        self.room -= 1
        if self.room < 0:
            self.close()

    def close(self):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("room", [0, 1])
def test_a_full_disk_is_an_error_and_nothing_is_left(tmp_path, monkeypatch, room):
    opened = Path.open

    def full(path, mode="r", **more):
        opened(path, mode, **more).close()
        return Full(room)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(UsageError, match="No space left"), Sink(tmp_path / "t.json", 0, {}, ()) as sink:
        sink.write(b",\n{}")
    assert list(tmp_path.glob(".t.json*")) == []


def test_a_folder_that_is_not_there_is_an_error(make_run, tmp_path):
    with pytest.raises(UsageError, match="cannot write"):
        write(make_run(ONE), tmp_path / "no" / "t.json", Choice())


def test_a_damaged_file_is_named_and_a_column_of_another_type_is_damage(make_run, tmp_path):
    run = make_run(ONE)
    (path,) = run.files("op")
    found = pq.read_table(path)
    at = found.schema.get_field_index("op_id")
    pq.write_table(found.set_column(at, "op_id", pa.array([[0]], pa.list_(pa.int64()))), path)
    with pytest.raises(RunError, match=r"part-00000.*the column `op_id` holds list"):
        write(run, tmp_path / "t.json", Choice())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RunError, match="part-00000"):
        write(run, tmp_path / "t.json", Choice())


def test_packed_and_plain_hold_the_same(make_run, tmp_path):
    run = make_run({"op": [op(0, n * 10, 5) for n in range(50)], "memory": MEMORY})
    for name in ("t.json", "t.json.gz"):
        write(run, tmp_path / name, Choice())
    assert load(tmp_path / "t.json") == load(tmp_path / "t.json.gz")
    assert (tmp_path / "t.json.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_a_whole_small_trace(make_run, tmp_path):
    info = {"op_id": 0, "name": "net/Add-op0", "type": "Add", "phase": "forward"}
    run = make_run({"op": [op(0, 1500, 250, step=0)], "op_info": [info], "memory": MEMORY[1:2]})
    write(run, tmp_path / "t.json", Choice())
    assert (tmp_path / "t.json").read_text() == (
        '{"displayTimeUnit":"ms","baseTimeNanoseconds":"0","otherData":{"producer":"pipeprof 0",'
        '"run_id":"20260101T000000-abcdef","state":"running","command":""},'
        '"pipeprof":{"ranks":[{"pid":1,"rep":0,"rank":0,"host":""}]},"traceEvents":[\n'
        '{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"rank 0"}},\n'
        '{"ph":"M","pid":1,"tid":0,"name":"process_sort_index","args":{"sort_index":1}},\n'
        '{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"CPU"}},\n'
        '{"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":400001}},\n'
        '{"ph":"X","pid":1,"tid":1,"ts":1.500,"dur":0.250,"cat":"cpu_op","name":"net/Add-op0",'
        '"args":{"op_id":0,"type":"Add","phase":"forward","step":0}},\n'
        '{"ph":"C","pid":1,"tid":0,"name":"memory: CPU pool","ts":1000.000,"cat":"counter","args":{"allocated_bytes":7}},\n'
        '{"ph":"C","pid":1,"tid":0,"name":"busy: Operators","ts":1.500,"cat":"counter","args":{"share":1}},\n'
        '{"ph":"C","pid":1,"tid":0,"name":"busy: Operators","ts":1.750,"cat":"counter","args":{"share":0}}\n'
        "]}\n"
    )


TOTALS = """
SELECT o.rep, o.rank, i.name, count(*) AS n, sum(o.dur_ns) AS total_ns,
  sum(CASE WHEN i.device = 'CPU' THEN o.self_ns ELSE 0 END) AS self_ns, min(o.track) AS track
FROM op AS o INNER JOIN op_info AS i ON o.rep = i.rep AND o.rank = i.rank AND o.op_id = i.op_id
GROUP BY o.rep, o.rank, i.name ORDER BY o.rep, o.rank, i.name
"""


def asked(run, sql=TOTALS):
    with Engine.open(run) as engine:
        return engine.sql(sql).to_pylist()


def host_ops(chance, rank):
    """Calls that call each other, on two threads, with their own times."""
    rows = []
    for thread in ("main", "loader"):
        at = chance.randrange(1000)
        for _ in range(200):
            inner = [chance.randrange(1, 900) for _ in range(chance.randrange(4))]
            own = chance.randrange(10, 5000)
            row = {"rank": rank, "op_id": chance.randrange(4), "start_ns": at, "track": thread, "side": "host"}
            rows.append(row | {"dur_ns": own + sum(inner), "self_ns": own})
            for dur in inner:
                rows.append(row | {"op_id": 4 + chance.randrange(3), "start_ns": at, "dur_ns": dur, "self_ns": dur})
                at += dur
            at += own + chance.randrange(500)
    return rows


def infos(count, rank=0, **more):
    return [
        {"rank": rank, "op_id": n, "name": f"op {n}", "type": "T", "device": "GPU" if n > 6 else "CPU"} | more
        for n in range(count)
    ]


def test_the_reader_of_other_programs_traces_finds_the_same_operator_totals_of_every_rank(make_run, tmp_path):
    chance = random.Random(11)  # noqa: S311 - not for secrets
    ranks = (0, 1)
    kernels = [
        op(7 + n % 2, 1_000_000 + n * 1003, 1 + n % 1000, rank=rank, track="stream 7", side="device")
        for rank in ranks for n in range(300)
    ]  # fmt: skip
    ops = host_ops(chance, 0) + host_ops(chance, 1) + kernels
    late = [{**row, "rep": 1, "start_ns": row["start_ns"] + 5_000} for row in host_ops(chance, 1)]
    levels = [{"rank": rank, "t_ns": rank, "device": "CPU", "name": "pool", "allocated_bytes": 7} for rank in ranks]
    once = {"step": 0, "kind": "train", "start_ns": 0, "fp_ns": 10, "end_ns": 3_000_000}
    steps = [once | {"rank": rank} for rank in ranks]
    info = [*infos(9), *infos(9, 1), *infos(9, 1, rep=1)]
    run = make_run({"op": ops + late, "op_info": info, "step": steps, "memory": levels})
    write(run, tmp_path / "ours.json.gz", Choice())
    again = imported(tmp_path / "ours.json.gz", tmp_path / "again")
    assert asked(again) == asked(run)
    assert again.manifest.state == "complete", again.manifest.reason
    assert [(rep.rep, [rank.rank for rank in rep.ranks]) for rep in again.manifest.reps] == [(0, [0, 1]), (1, [1])]
    assert again.manifest.warnings == []
    counters = asked(again, "SELECT rank, value FROM counter WHERE name LIKE '%memory%' ORDER BY rank")
    assert [(row["rank"], row["value"]) for row in counters] == [(0, 7.0), (1, 7.0)]


def test_events_of_a_process_that_is_no_rank_are_counted(make_run, tmp_path):
    path = tmp_path / "ours.json"
    write(make_run({"op": [{"op_id": 0, "start_ns": 5, "dur_ns": 5, "track": "CPU"}]}), path, Choice())
    strange = ',\n{"ph":"X","pid":9,"tid":1,"ts":1,"dur":1,"cat":"cpu_op","name":"x","args":{}}\n]}'
    path.write_text(path.read_text().removesuffix("\n]}\n") + strange)
    again = imported(path, tmp_path / "again")
    assert [warning.message for warning in again.manifest.warnings] == [
        "`ours.json`: events left out: 1 with a process that is none of its ranks"
    ]
    assert again.manifest.tables["op"] == 1


def test_many_ranks_need_few_open_files(make_run, tmp_path):
    info = [infos(1, rank, name=f"op {rank}")[0] for rank in range(100)]
    run = make_run({"op": [op(0, rank, 5, rank=rank) for rank in range(100)], "op_info": info})
    write(run, tmp_path / "ours.json", Choice())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 80, hard))
    try:
        again = imported(tmp_path / "ours.json", tmp_path / "again")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert asked(again) == asked(run)
