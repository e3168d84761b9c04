"""The launcher's samples: shares of the machine, cores of each process, and who is who."""

import json

import pytest

from pipeprof.read.spool.account import add_host, read_samples
from pipeprof.read.spool.lines import SpoolNotes
from pipeprof.read.tables.rows import RankRows
from pipeprof.record.schema import BY_NAME

S = 1_000_000_000


def process(pid, ppid, user=0.0, sys=0.0, rss=100):
    return {"pid": pid, "ppid": ppid, "name": "python", "user": user, "sys": sys, "rss": rss, "threads": 1}


def sample(t, user=0.0, sys=0.0, idle=0.0, *processes):
    return {
        "t": t,
        "user": user,
        "sys": sys,
        "idle": idle,
        "steal": 0.0,
        "used": 1000,
        "load": 0.0,
        "procs": list(processes),
    }


def rows(samples, table, mine=(10,), others=(), zero=0):
    out = RankRows(0, 0, zero)
    add_host(samples, out, set(mine), set(others))
    return [dict(zip(BY_NAME[table].column_names, row, strict=True)) for row in out.rows[table]]


def test_the_machine_is_in_shares_of_all_cores_between_two_samples():
    found = rows([sample(0, 10, 5, 100), sample(S, 13, 6, 106)], "cpu")
    assert [(row["scope"], row["t_ns"], row["user_ratio"], row["sys_ratio"], row["idle_ratio"]) for row in found] == [
        ("host", S, 0.3, 0.1, 0.6)
    ]


def test_a_process_is_in_cores():
    found = rows(
        [sample(0, 0, 0, 0, process(10, 1, 1.0, 1.0)), sample(2 * S, 0, 0, 0, process(10, 1, 4.0, 1.5))], "cpu"
    )
    assert [(row["scope"], row["pid"], row["user_ratio"], row["sys_ratio"], row["idle_ratio"]) for row in found] == [
        ("process", 10, 1.5, 0.25, None)
    ]


def test_one_sample_alone_has_memory_and_no_cpu():
    one = [sample(0, 1, 1, 1, process(10, 1))]
    assert rows(one, "cpu") == []
    assert len(rows(one, "memory")) == 2


def test_a_counter_that_ran_backwards_is_no_negative_load():
    found = rows([sample(0, 0, 0, 0, process(10, 1, 5.0)), sample(S, 0, 0, 0, process(10, 1, 4.0))], "cpu")
    assert [row["user_ratio"] for row in found] == [0.0]


def test_processes_are_named_by_their_descent():
    tree = [process(2, 1), process(10, 2), process(11, 10), process(12, 11), process(20, 2), process(21, 20)]
    found = {
        row["pid"]: row["name"]
        for row in rows([sample(0, 0, 0, 0, *tree)], "memory", mine={10}, others={20})
        if row["pid"]
    }
    assert found == {2: "launcher", 10: "trainer", 11: "worker", 12: "worker"}


def test_the_peak_is_the_largest_so_far():
    samples = [sample(n * S, 0, 0, 0, process(10, 1, rss=rss)) for n, rss in enumerate((100, 300, 200))]
    found = [row["rss_peak_bytes"] for row in rows(samples, "memory") if row["device"] == "process"]
    assert found == [100, 300, 300]


@pytest.mark.parametrize("tail", ['{"t": 5, "us', "", "\n"])
def test_a_line_that_was_cut_off_is_left_out(tmp_path, tail):
    path = tmp_path / "host.jsonl"
    path.write_text(json.dumps(sample(1)) + "\n" + tail, encoding="utf-8")
    assert [one["t"] for one in read_samples(path, SpoolNotes())] == [1]


def test_without_a_file_there_are_no_samples(tmp_path):
    assert read_samples(tmp_path / "host.jsonl", SpoolNotes()) == []


def test_a_worker_process_of_the_dataset_is_its_operators():
    out = RankRows(0, 0, 0)
    out.workers[11] = (2, 5)
    two = [sample(t, 0, 0, 0, process(10, 1, t / S), process(11, 10, t / S)) for t in (0, S)]
    add_host(two, out, {10}, set())
    found = [dict(zip(BY_NAME["cpu"].column_names, row, strict=True)) for row in out.rows["cpu"]]
    assert [(row["name"], row["pipeline_id"], row["op_id"]) for row in found] == [
        ("trainer", None, None),
        ("worker", 2, 5),
    ]
