"""Samples to the account of CPU time: every part has its own, and they add up to what the machine was busy."""

from collections import Counter
from pathlib import Path

import pytest

from pipeprof.read.spool.account import ThreadKinds, add_account
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


def trainer(pid=TRAINER, events=(), marks=()):
    return Process(Path("proc"), {"pid": pid}, list(marks), [{"e": event.pop("e"), **event} for event in events])


def sample(t, cpu, *, busy=0.0, ended=None, parents=None, **more):
    """`cpu`: seconds of each process so far."""
    where = PARENTS | (parents or {})
    procs = [
        {"pid": pid, "ppid": where[pid], "born": 1.0, "user": seconds, "sys": 0.0, "ended": (ended or {}).get(pid, 0.0)}
        for pid, seconds in cpu.items()
    ]
    return {"t": t * S, "user": busy, "sys": 0.0, "idle": 0.0, "steal": 0.0, "procs": procs, **more}


def account(samples, process=None, mine=(TRAINER,), others=(), table="cpu_use"):
    out = RankRows(0, 0, 0)
    add_account(samples, out, Family(samples, mine, others, ORIGINS), [process or trainer()])
    return [dict(zip(BY_NAME[table].column_names, row, strict=True)) for row in out.rows[table]]


def used(rows):
    return {(row["part"], row["pid"]): row["cpu_ns"] / S for row in rows}


def test_every_process_is_a_part_and_the_rest_are_neighbours():
    before = dict.fromkeys(PARENTS, 0.0)
    after = {LAUNCHER: 0.125, TRAINER: 1.0, 11: 0.5, 12: 0.25, 13: 0.5, 20: 0.75, 21: 0.25, 30: 0.375}
    rows = account([sample(0, before), sample(1, after, busy=4.0)], others=(20,))
    assert used(rows) == {
        ("launcher", LAUNCHER): 0.125, ("trainer", TRAINER): 1.0, ("worker", 11): 0.5, ("child", 12): 0.75,
        ("other_rank", None): 1.0, ("child", 30): 0.375, ("neighbour", None): 0.25,
    }  # fmt: skip
    assert sum(used(rows).values()) == 4.0


def test_the_launcher_that_samples_is_the_profiler():
    rows = account([sample(0, {TRAINER: 0.0}, self=1.0), sample(1, {TRAINER: 0.5}, busy=1.0, self=1.25)])
    assert used(rows) == {("trainer", TRAINER): 0.5, ("profiler", None): 0.25, ("neighbour", None): 0.25}


def test_what_a_new_process_has_used_is_of_the_interval():
    assert used(account([sample(0, {TRAINER: 0.0}), sample(1, {TRAINER: 0.0, 12: 0.5}, busy=0.5)])) == {
        ("child", 12): 0.5
    }


def test_a_process_that_ended_is_counted_to_its_end_and_once():
    samples = [
        sample(0, {TRAINER: 0.0, 12: 0.0}), sample(1, {TRAINER: 0.0, 12: 0.5}, busy=0.5),
        sample(2, {TRAINER: 0.0}, ended={TRAINER: 0.75}, busy=0.75),
    ]  # fmt: skip
    assert [(row["part"], row["pid"], row["cpu_ns"] / S) for row in account(samples)] == [
        ("child", 12, 0.5), ("child", 12, 0.25)
    ]  # fmt: skip


def test_children_too_short_to_be_seen_are_a_child_without_a_number():
    samples = [sample(0, {TRAINER: 0.0}), sample(1, {TRAINER: 0.0}, ended={TRAINER: 0.5}, busy=0.5)]
    assert used(account(samples)) == {("child", None): 0.5}


def test_a_process_whose_parent_ended_stays_what_it_was():
    samples = [
        sample(0, {TRAINER: 0.0, 12: 0.0, 13: 0.0}), sample(1, {TRAINER: 0.0, 13: 0.5}, busy=0.5, parents={13: 1}),
    ]  # fmt: skip
    assert used(account(samples)) == {("child", 12): 0.5}


NAMES = [
    [TRAINER, "python", 0], [101, "ActorThread_0", 0], [102, "launch_queue", 0], [103, "python", 5 * S],
    [104, "python", 9 * S], [105, "python", 0], [106, "python", 0], [107, "python", 0],
]  # fmt: skip
EVENTS = (
    {"e": "iterator", "t": 0, "begin": 5 * S - 1000, "end": 5 * S + 1000},
    {"e": "thread", "t": 0, "tid": 105, "module": "mindspore.dataset.engine.queue", "ours": False},
    {"e": "thread", "t": 0, "tid": 106, "module": "__main__", "ours": False},
    {"e": "thread", "t": 0, "tid": 107, "module": "_pipeprof_probe.gil", "ours": True},
)


def test_threads_are_told_apart():
    kinds = ThreadKinds(trainer(events=EVENTS, marks=[Mark(Kind.FETCH, 0, 0, 0, 9 * S, 9 * S + 5)]))
    kinds.learn([(*name,) for name in NAMES] + [(108, "python", 7 * S)])
    assert [kinds.kind(tid) for tid in (TRAINER, *range(101, 109))] == [
        "main", "mindspore_thread", "mindspore_thread", "dataset_thread", "dataset_thread", "dataset_thread",
        "python_thread", "profiler", "other_thread",
    ]  # fmt: skip


def inside(*cpu, names=()):
    return {"inside": {str(TRAINER): {"cpu": [list(entry) for entry in cpu], "names": list(names)}}}


def test_threads_take_the_place_of_their_process_and_ended_ones_are_other_threads():
    first = inside((TRAINER, S, 0), (101, S, 0), names=NAMES[:2])
    second = inside((TRAINER, S + S // 2, S // 4), (101, S + S // 4, S), names=[])
    samples = [sample(0, {TRAINER: 2.0}, **first), sample(1, {TRAINER: 3.0}, busy=1.0, **second)]
    rows = account(samples)
    assert used(rows) == {("main", None): 0.5, ("mindspore_thread", None): 0.25, ("other_thread", None): 0.25}
    assert {row["part"]: row["wait_ns"] for row in rows} == {
        "main": S // 4, "mindspore_thread": S, "other_thread": None,
    }  # fmt: skip


def test_a_python_thread_is_told_by_what_it_runs():
    known = {"e": "thread", "t": 0, "tid": 106, "module": "m", "ours": False, "what": "count", "site": "train.py:4"}
    samples = [
        sample(0, {TRAINER: 2.0}, **inside((TRAINER, S, 0), (106, 0, 0))),
        sample(1, {TRAINER: 3.0}, busy=1.0, **inside((TRAINER, S + S // 2, 0), (106, S // 2, 0))),
    ]
    assert used(account(samples, trainer(events=[{**known}]))) == {("main", None): 0.5, ("python_thread", 106): 0.5}
    rows = {row["pid"]: row for row in account(samples, trainer(events=[{**known}]), table="process")}
    found = rows[106]
    assert (found["part"], found["parent_pid"], found["what"], found["site"]) == (
        "python_thread", TRAINER, "count", "train.py:4",
    )  # fmt: skip
    assert (found["first_ns"], found["last_ns"]) == (0, S)


def test_before_the_threads_were_read_twice_the_process_is_one_part():
    samples = [sample(0, {TRAINER: 0.0}), sample(1, {TRAINER: 1.0}, busy=1.0, **inside((TRAINER, S, 0)))]
    assert used(account(samples)) == {("trainer", TRAINER): 1.0}


def test_a_thread_number_that_is_used_again_begins_anew():
    first, second = inside((TRAINER, 0, 0), (101, 5 * S, 0)), inside((101, S // 2, 0))
    samples = [sample(0, {TRAINER: 5.0}, **first), sample(1, {TRAINER: 5.5}, busy=0.5, **second)]
    assert used(account(samples)) == {("other_thread", None): 0.5}


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
    (row,) = account(samples, table="cpu_room")
    assert (row["cores"], row["idle_ns"], row["throttled_ns"]) == expected
    assert row["pressure_ns"] is None


def test_processes_have_their_command_and_origin():
    samples = [sample(0, {LAUNCHER: 0.0, TRAINER: 0.0}), sample(1, {TRAINER: 0.0, 12: 0.0, 13: 0.0})]
    samples[1]["procs"][1]["command"] = "python train.py"
    rows = {row["pid"]: row for row in account(samples, table="process")}
    assert {pid: row["part"] for pid, row in rows.items()} == {
        LAUNCHER: "launcher", TRAINER: "trainer", 12: "child", 13: "child",
    }  # fmt: skip
    found = rows[12]
    assert (found["parent_pid"], found["what"], found["site"], found["library"], found["command"]) == (
        TRAINER, "Writer", "train.py:9", "w.py:2", "python train.py",
    )  # fmt: skip
    assert Counter(row["site"] for row in rows.values()) == {None: 3, "train.py:9": 1}


def test_samples_of_older_versions_give_no_account():
    samples = [sample(0, {TRAINER: 0.0}), sample(1, {TRAINER: 1.0})]
    for one in samples:
        del one["procs"][0]["born"]
    assert account(samples) == account(samples, table="process") == []


def test_origins_that_were_cut_off_are_left_out(tmp_path):
    path = tmp_path / "forks.tsv"
    path.write_text("12\t10\t5\t0\tWriter\ttrain.py:9\tw.py:2\n12\t10\t6\t1\tagain\tx\ty\n13\t1", encoding="utf-8")
    assert read_origins(path, SpoolNotes()) == {12: ORIGINS[12]}
    assert read_origins(tmp_path / "none.tsv", SpoolNotes()) == {}
