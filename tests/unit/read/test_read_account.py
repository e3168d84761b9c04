"""The launcher's samples: shares of the machine, cores of each process, who is who; and the account of CPU time, in
which every part has its own and they add up to what the machine was busy."""

import json
from collections import Counter
from pathlib import Path

import pytest

from pipeprof.read.spool.account import ThreadKinds, add_account, add_host, read_samples
from pipeprof.read.spool.family import Family, Origin, read_origins
from pipeprof.read.spool.lines import SpoolNotes
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.process import Process
from pipeprof.read.tables.rows import RankRows
from pipeprof.record.schema import BY_NAME

S = 1_000_000_000
TRAINER, LAUNCHER = 10, 2
PARENTS = {LAUNCHER: 1, TRAINER: LAUNCHER, 11: TRAINER, 12: TRAINER, 13: 12, 20: LAUNCHER, 21: 20, 30: LAUNCHER}
ORIGINS = {
    11: Origin(True, "worker", "train.py:3", "dataset.py:1"),
    12: Origin(False, "Writer", "train.py:9", "w.py:2"),
}


def trainer(events=(), marks=()):
    return Process(Path("proc"), {"pid": TRAINER}, list(marks), list(events))


def sample(t, cpu, *, busy=0.0, ended=None, parents=None, **more):
    """`cpu`: seconds of each process so far; more of it as (seconds, sys, resident)."""
    where = PARENTS | (parents or {})
    procs = [
        {"pid": pid, "ppid": where[pid], "born": 1.0, "ended": (ended or {}).get(pid, 0.0)}
        | dict(zip(("user", "sys", "rss"), used if isinstance(used, tuple) else (used, 0.0), strict=False))
        for pid, used in cpu.items()
    ]
    return {"t": t * S, "user": busy, "sys": 0.0, "idle": 0.0, "steal": 0.0, "procs": procs, **more}


def table(out, name):
    return [dict(zip(BY_NAME[name].column_names, row, strict=True)) for row in out.rows[name]]


def hosted(samples, name, columns, mine=(TRAINER,), others=(), workers=None):
    """Columns of that table, from samples that had all facts."""
    out = RankRows(0, 0, 0)
    out.workers |= workers or {}
    for one in samples:
        one.setdefault("used", 1000)
        for process in one["procs"]:
            process.setdefault("rss", 100)
    add_host(samples, out, set(mine), set(others))
    return [tuple(row[column] for column in columns.split()) for row in table(out, name)]


SHARES = "scope pid t_ns user_ratio sys_ratio idle_ratio"


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        # the machine is in shares of all cores between two samples
        ([sample(0, {}, busy=10, sys=5, idle=100), sample(1, {}, busy=13, sys=6, idle=106)],
         [("host", None, S, 0.3, 0.1, 0.6)]),
        # a process is in cores
        ([sample(0, {TRAINER: (1.0, 1.0)}), sample(2, {TRAINER: (4.0, 1.5)})],
         [("process", TRAINER, 2 * S, 1.5, 0.25, None)]),
        # a counter that ran backwards is no negative load
        ([sample(0, {TRAINER: 5.0}), sample(1, {TRAINER: 4.0})], [("process", TRAINER, S, 0.0, 0.0, None)]),
        ([sample(0, {TRAINER: 0.0}, busy=1, sys=1, idle=1)], []),  # one alone
    ],
)  # fmt: skip
def test_cpu_is_in_shares_of_the_machine_and_in_cores_of_a_process(samples, expected):
    assert hosted(samples, "cpu", SHARES) == expected


def test_one_sample_alone_has_memory_and_the_peak_is_the_largest_so_far():
    assert len(hosted([sample(0, {TRAINER: 0.0})], "memory", "device")) == 2
    samples = [sample(n, {TRAINER: (0.0, 0.0, rss)}) for n, rss in enumerate((100, 300, 200))]
    found = hosted(samples, "memory", "device rss_peak_bytes")
    assert [peak for device, peak in found if device == "process"] == [100, 300, 300]


def test_processes_are_named_by_their_descent():
    tree = sample(0, dict.fromkeys((LAUNCHER, TRAINER, 11, 12, 20, 21), 0.0), parents={12: 11})
    found = dict(hosted([tree], "memory", "pid name", others={20}))
    assert {pid: name for pid, name in found.items() if pid} == {
        2: "launcher",
        10: "trainer",
        11: "worker",
        12: "worker",
    }


def test_a_worker_process_of_the_dataset_is_its_operators():
    two = [sample(t, {TRAINER: float(t), 11: float(t)}) for t in (0, 1)]
    found = hosted(two, "cpu", "name pipeline_id op_id", workers={11: (2, 5)})
    assert found == [("trainer", None, None), ("worker", 2, 5)]


@pytest.mark.parametrize(
    ("tail", "times"),
    [('{"t": 5, "us', [S]), ("", [S]), ("\n", [S]), (None, [])],
    ids=["cut off", "whole", "blank", "no file"],
)
def test_a_line_that_was_cut_off_is_left_out(tmp_path, tail, times):
    path = tmp_path / "host.jsonl"
    if tail is not None:
        whole = sample(1, {TRAINER: (0.0, 0.0, 1)}, used=1)
        path.write_text(json.dumps(whole) + "\n" + tail, encoding="utf-8")
    assert [one["t"] for one in read_samples(path, SpoolNotes())] == times


def account(samples, process=None, mine=(TRAINER,), others=(), name="cpu_use"):
    out = RankRows(0, 0, 0)
    add_account(samples, out, Family(samples, mine, others, ORIGINS), [process or trainer()])
    return table(out, name)


def used(rows):
    return {(row["part"], row["pid"]): row["cpu_ns"] / S for row in rows}


NAMES = [
    [TRAINER, "python", 0], [101, "ActorThread_0", 0], [102, "launch_queue", 0], [103, "python", 5 * S],
    [104, "python", 9 * S], [105, "python", 0], [106, "python", 0], [107, "python", 0],
]  # fmt: skip


def inside(*cpu, names=()):
    """Threads of the trainer."""
    return {"inside": {str(TRAINER): {"cpu": [list(entry) for entry in cpu], "names": list(names)}}}


FIRST, LATER = inside((TRAINER, 0, 0), (101, 5 * S, 0)), inside((101, S // 2, 0))


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        # the launcher that samples is the profiler
        ([sample(0, {TRAINER: 0.0}, self=1.0), sample(1, {TRAINER: 0.5}, busy=1.0, self=1.25)],
         {("trainer", TRAINER): 0.5, ("profiler", None): 0.25, ("neighbour", None): 0.25}),
        # what a new process has used is of the interval
        ([sample(0, {TRAINER: 0.0}), sample(1, {TRAINER: 0.0, 12: 0.5}, busy=0.5)], {("child", 12): 0.5}),
        # children too short to be seen are a child without a number
        ([sample(0, {TRAINER: 0.0}), sample(1, {TRAINER: 0.0}, ended={TRAINER: 0.5}, busy=0.5)],
         {("child", None): 0.5}),
        # a process whose parent ended stays what it was
        ([sample(0, {TRAINER: 0.0, 12: 0.0, 13: 0.0}), sample(1, {TRAINER: 0.0, 13: 0.5}, busy=0.5, parents={13: 1})],
         {("child", 12): 0.5}),
        # before the threads were read twice the process is one part; a number that is used again begins anew
        ([sample(0, {TRAINER: 0.0}), sample(1, {TRAINER: 1.0}, busy=1.0, **inside((TRAINER, S, 0)))],
         {("trainer", TRAINER): 1.0}),
        ([sample(0, {TRAINER: 5.0}, **FIRST), sample(1, {TRAINER: 5.5}, busy=0.5, **LATER)],
         {("other_thread", None): 0.5}),
    ],
)  # fmt: skip
def test_every_part_has_its_own_time(samples, expected):
    assert used(account(samples)) == expected


def test_every_process_is_a_part_and_the_rest_are_neighbours():
    before = dict.fromkeys(PARENTS, 0.0)
    after = {LAUNCHER: 0.125, TRAINER: 1.0, 11: 0.5, 12: 0.25, 13: 0.5, 20: 0.75, 21: 0.25, 30: 0.375}
    rows = account([sample(0, before), sample(1, after, busy=4.0)], others=(20,))
    assert used(rows) == {
        ("launcher", LAUNCHER): 0.125, ("trainer", TRAINER): 1.0, ("worker", 11): 0.5, ("child", 12): 0.75,
        ("other_rank", None): 1.0, ("child", 30): 0.375, ("neighbour", None): 0.25,
    }  # fmt: skip
    assert sum(used(rows).values()) == 4.0


def test_a_process_that_ended_is_counted_to_its_end_and_once():
    rows = account([
        sample(0, {TRAINER: 0.0, 12: 0.0}), sample(1, {TRAINER: 0.0, 12: 0.5}, busy=0.5),
        sample(2, {TRAINER: 0.0}, ended={TRAINER: 0.75}, busy=0.75),
    ])  # fmt: skip
    assert [(row["part"], row["pid"], row["cpu_ns"] / S) for row in rows] == [("child", 12, 0.5), ("child", 12, 0.25)]


def test_threads_are_told_apart():
    modules = {105: "mindspore.dataset.engine.queue", 106: "__main__", 107: "_pipeprof_probe.gil"}
    events = [{"e": "iterator", "t": 0, "begin": 5 * S - 1000, "end": 5 * S + 1000}]
    events += [{"e": "thread", "t": 0, "tid": tid, "module": name, "ours": tid == 107} for tid, name in modules.items()]
    kinds = ThreadKinds(trainer(events, [Mark(Kind.FETCH, 0, 0, 0, 9 * S, 9 * S + 5)]))
    kinds.learn([(*name,) for name in NAMES] + [(108, "python", 7 * S)])
    assert [kinds.kind(tid) for tid in (TRAINER, *range(101, 109))] == [
        "main", "mindspore_thread", "mindspore_thread", "dataset_thread", "dataset_thread", "dataset_thread",
        "python_thread", "profiler", "other_thread",
    ]  # fmt: skip


def test_threads_take_the_place_of_their_process_and_ended_ones_are_other_threads():
    first = inside((TRAINER, S, 0), (101, S, 0), names=NAMES[:2])
    second = inside((TRAINER, S + S // 2, S // 4), (101, S + S // 4, S), names=[])
    rows = account([sample(0, {TRAINER: 2.0}, **first), sample(1, {TRAINER: 3.0}, busy=1.0, **second)])
    assert {(row["part"], row["pid"]): (row["cpu_ns"], row["wait_ns"]) for row in rows} == {
        ("main", None): (S // 2, S // 4), ("mindspore_thread", None): (S // 4, S),
        ("other_thread", None): (S // 4, None),
    }  # fmt: skip


def test_a_python_thread_is_told_by_what_it_runs():
    known = {"e": "thread", "t": 0, "tid": 106, "module": "m", "ours": False, "what": "count", "site": "train.py:4"}
    samples = [
        sample(0, {TRAINER: 2.0}, **inside((TRAINER, S, 0), (106, 0, 0))),
        sample(1, {TRAINER: 3.0}, busy=1.0, **inside((TRAINER, S + S // 2, 0), (106, S // 2, 0))),
    ]
    assert used(account(samples, trainer([known]))) == {("main", None): 0.5, ("python_thread", 106): 0.5}
    found = {row["pid"]: row for row in account(samples, trainer([known]), name="process")}[106]
    names = ("part", "parent_pid", "what", "site", "first_ns", "last_ns")
    assert [found[name] for name in names] == ["python_thread", TRAINER, "count", "train.py:4", 0, S]


def room(idle, used=None, quota=None, throttled=None, cpus=4):
    return {"room": {str(TRAINER): {"cpus": cpus, "idle": idle, "quota": quota, "used": used, "throttled": throttled}}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (room(1.0), room(3.0), (4, 2 * S, None)),
        (room(1.0, 0.0, 2.0, 0.5), room(4.0, 1.75, 2.0, 0.75), (2.0, S // 4, S // 4)),
        (room(1.0, 0.0, 8.0, 0.0), room(1.5, 3.0, 8.0, 0.0), (4, S // 2, 0)),
        (room(1.0, cpus=2), room(9.0), (4, None, None)),
    ],
)
def test_what_is_left_is_of_the_cores_or_of_the_quota(before, after, expected):
    samples = [sample(0, {TRAINER: 0.0}, **before), sample(1, {TRAINER: 0.0}, **after)]
    (row,) = account(samples, name="cpu_room")
    assert (row["cores"], row["idle_ns"], row["throttled_ns"], row["pressure_ns"]) == (*expected, None)


def test_processes_have_their_command_and_origin():
    samples = [sample(0, {LAUNCHER: 0.0, TRAINER: 0.0}), sample(1, {TRAINER: 0.0, 12: 0.0, 13: 0.0})]
    samples[1]["procs"][1]["command"] = "python train.py"
    rows = {row["pid"]: row for row in account(samples, name="process")}
    parts = {LAUNCHER: "launcher", TRAINER: "trainer", 12: "child", 13: "child"}
    assert {pid: row["part"] for pid, row in rows.items()} == parts
    names = ("parent_pid", "what", "site", "library", "command")
    assert [rows[12][name] for name in names] == [TRAINER, "Writer", "train.py:9", "w.py:2", "python train.py"]
    assert Counter(row["site"] for row in rows.values()) == {None: 3, "train.py:9": 1}


def test_samples_of_older_versions_give_no_account():
    samples = [sample(0, {TRAINER: 0.0}), sample(1, {TRAINER: 1.0})]
    for one in samples:
        del one["procs"][0]["born"]
    assert account(samples) == account(samples, name="process") == []


def test_origins_that_were_cut_off_are_left_out(tmp_path):
    path = tmp_path / "forks.tsv"
    path.write_text("12\t10\t5\t0\tWriter\ttrain.py:9\tw.py:2\n12\t10\t6\t1\tagain\tx\ty\n13\t1", encoding="utf-8")
    assert read_origins(path, SpoolNotes()) == {12: ORIGINS[12]}
    assert read_origins(tmp_path / "none.tsv", SpoolNotes()) == {}
