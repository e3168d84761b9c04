import pytest

S = 1_000_000_000
STAGES = [
    {"stage": "start", "start_ns": 0, "dur_ns": S}, {"stage": "warmup", "start_ns": 2 * S, "dur_ns": S},
    {"stage": "steady", "start_ns": 3 * S, "dur_ns": 4 * S},
]  # fmt: skip


def use(start, end, part, cpu, wait=None, pid=None):
    return {"start_ns": start * S, "end_ns": end * S, "part": part, "pid": pid, "cpu_ns": cpu * S,
            "wait_ns": None if wait is None else wait * S}  # fmt: skip


def test_the_phases_of_a_rank(look):
    text = "SELECT phase, from_ns / 1e9, to_ns / 1e9 FROM run_phase ORDER BY from_ns"
    assert look(text, {"stage": STAGES}) == [
        ("set_up", 0, 2), ("warm_up", 2, 3), ("steady", 3, 7), ("ending", 7, None)
    ]  # fmt: skip
    assert look(text, {"stage": STAGES[:1]}) == [("set_up", 0, None)]
    assert look(text, {"stage": STAGES[:2]}) == [("set_up", 0, 2), ("warm_up", 2, 3), ("ending", 3, None)]


def test_an_interval_counts_in_each_phase_with_its_time_there(look):
    text = "SELECT phase, start_ns / 1e9, dur_ns / 1e9, weight FROM phase_sample ORDER BY phase, start_ns"
    tables = {"stage": STAGES, "cpu_use": [use(2, 6, "main", 4), use(2, 6, "child", 4), use(6, 8, "main", 1)]}
    assert look(text, tables) == [
        ("ending", 6, 1, 0.5), ("steady", 2, 3, 0.75), ("steady", 6, 1, 0.5), ("warm_up", 2, 1, 0.25)
    ]  # fmt: skip


def test_who_used_what_in_a_phase(ask):
    tables = {
        "stage": STAGES,
        "cpu_use": [
            use(3, 5, "main", 2, wait=1), use(5, 7, "main", 1, wait=3), use(3, 5, "child", 1, pid=12),
            use(3, 5, "neighbour", 4), use(3, 5, "profiler", 1),
        ],
        "process": [{"pid": 12, "what": "Writer", "site": "train.py:9", "library": "w.py:2", "command": "python"}],
    }  # fmt: skip
    give = "phase part what site pid processes cpu_ns cores wait_cores job_share"
    assert ask("host/account", tables, give=give) == [
        ("steady", "child", "Writer", "train.py:9", 12, 1, S, 0.25, None, 0.25),
        ("steady", "main", "", "", None, 0, 3 * S, 0.75, 1.0, 0.75),
        ("steady", "neighbour", "", "", None, 0, 4 * S, 1.0, None, None),
        ("steady", "profiler", "", "", None, 0, S, 0.25, None, None),
    ]


def test_processes_of_one_line_are_one_row(ask):
    made = {"what": "worker", "site": "train.py:9"}
    tables = {
        "stage": STAGES, "cpu_use": [use(3, 7, "child", cpu, pid=pid) for pid, cpu in ((12, 1), (13, 2), (14, 1))],
        "process": [{"pid": 12, **made}, {"pid": 13, **made}, {"pid": 14, "what": "other"}],
    }  # fmt: skip
    assert ask("host/account", tables, give="what pid processes cores job_share") == [
        ("other", 14, 1, 0.25, 0.25), ("worker", 12, 2, 0.75, 0.75),
    ]  # fmt: skip


def test_shares_add_up_to_the_job_and_the_parts_to_the_busy_machine(ask):
    parts = ("main", "child", "worker", "launcher", "other_rank", "neighbour", "profiler")
    cpu_use = [use(at, at + 1, part, at + number) for at in range(8) for number, part in enumerate(parts)]
    rows = ask("host/account", {"stage": STAGES, "cpu_use": cpu_use})
    for phase in {row["phase"] for row in rows}:
        assert sum(row["job_share"] or 0.0 for row in rows if row["phase"] == phase) == pytest.approx(1.0)
    assert sum(row["cpu_ns"] for row in rows) == sum(row["cpu_ns"] for row in cpu_use)
