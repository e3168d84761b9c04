"""Queries of the host."""

import pytest
from query_cases import answers, looked, row, rows

S = 1_000_000_000
STAGES = [
    {"stage": "start", "start_ns": 0, "dur_ns": S}, {"stage": "warmup", "start_ns": 2 * S, "dur_ns": S},
    {"stage": "steady", "start_ns": 3 * S, "dur_ns": 4 * S},
]  # fmt: skip


def use(start, end, part, cpu, wait=None, pid=None):
    return {"start_ns": start * S, "end_ns": end * S, "part": part, "pid": pid, "cpu_ns": cpu * S,
            "wait_ns": None if wait is None else wait * S}  # fmt: skip


def used(start, part, cpu, **more):
    return {"start_ns": start, "end_ns": start + 10, "part": part, "members": 1, "cpu_ns": cpu, **more}


TABLES = {
    "cpu_use": [
        used(0, "main", 5), used(0, "mindspore_thread", 10), used(0, "dataset_thread", 5), used(0, "worker", 2, pid=3),
        used(10, "main", 10), used(10, "neighbour", 5), used(10, "profiler", 1), used(20, "trainer", 10),
    ]
}  # fmt: skip
process = row("t_ns pid name user_ratio sys_ratio", scope="process")
GIVE = "device name samples processes peak_rss_bytes peak_allocated_bytes peak_reserved_bytes"
STEADY = {"stage": "steady", "start_ns": 3 * S, "dur_ns": 4 * S}
ROOM = {"cores": 2.0, "idle_ns": S, "throttled_ns": S // 2, "steal_ns": 0, "pressure_ns": None}

test_rows_of_account = looked({
    "the phases of a rank": ("SELECT phase, from_ns / 1e9, to_ns / 1e9 FROM run_phase ORDER BY from_ns",
        {"stage": STAGES}, [("set_up", 0, 2), ("warm_up", 2, 3), ("steady", 3, 7), ("ending", 7, None)]),
    "the phases of a rank, too": ("SELECT phase, from_ns / 1e9, to_ns / 1e9 FROM run_phase ORDER BY from_ns",
        {"stage": STAGES[:1]}, [("set_up", 0, None)]),
    "the phases of a rank, as well": ("SELECT phase, from_ns / 1e9, to_ns / 1e9 FROM run_phase ORDER BY from_ns",
        {"stage": STAGES[:2]}, [("set_up", 0, 2), ("warm_up", 2, 3), ("ending", 3, None)]),
    "an interval counts in each phase with its time there": (
        "SELECT phase, start_ns / 1e9, dur_ns / 1e9, weight FROM phase_sample ORDER BY phase, start_ns",
        {"stage": STAGES, "cpu_use": [use(2, 6, "main", 4), use(2, 6, "child", 4), use(6, 8, "main", 1)]},
        [("ending", 6, 1, 0.5), ("steady", 2, 3, 0.75), ("steady", 6, 1, 0.5), ("warm_up", 2, 1, 0.25)]),
})  # fmt: skip

test_rows_of_host_account = answers("host/account", {
    "who used what in a phase": ("phase part what site pid processes cpu_ns cores wait_cores job_share",
        {"stage": STAGES, "cpu_use": [use(3, 5, "main", 2, wait=1), use(5, 7, "main", 1, wait=3),
                                      use(3, 5, "child", 1, pid=12), use(3, 5, "neighbour", 4),
                                      use(3, 5, "profiler", 1)],
         "process": [{"pid": 12, "what": "Writer", "site": "train.py:9", "library": "w.py:2", "command": "python"}]},
        [("steady", "child", "Writer", "train.py:9", 12, 1, S, 0.25, None, 0.25),
         ("steady", "main", "", "", None, 0, 3 * S, 0.75, 1.0, 0.75),
         ("steady", "neighbour", "", "", None, 0, 4 * S, 1.0, None, None),
         ("steady", "profiler", "", "", None, 0, S, 0.25, None, None)]),
    "processes of one line are one row": ("what pid processes cores job_share",
        {"stage": STAGES, "cpu_use": [use(3, 7, "child", cpu, pid=pid) for pid, cpu in ((12, 1), (13, 2), (14, 1))],
         "process": rows("pid what site", (12, "worker", "train.py:9"), (13, "worker", "train.py:9"),
                         (14, "other", None))}, [("other", 14, 1, 0.25, 0.25), ("worker", 12, 2, 0.75, 0.75)]),
})  # fmt: skip

test_rows_of_host_cpu_curve = answers("host/cpu_curve", {
    "cores of each part of the machine": ("slot consumer start_ns end_ns cores", TABLES,
        [(0, "pipeline", 0, 10, 0.5), (0, "trainer", 0, 10, 1.5), (0, "worker", 0, 10, 0.2), (1, "other", 10, 20, 0.6),
         (1, "trainer", 10, 20, 1.0), (2, "trainer", 20, 30, 1.0)]),
    "several intervals are a mean": ("consumer start_ns end_ns cores", TABLES,
        [("other", 0, 30, 0.2), ("pipeline", 0, 30, 5 / 30), ("trainer", 0, 30, 35 / 30), ("worker", 0, 30, 2 / 30)],
        {"points": 1}),
}, rep=0, rank=0, points=3)  # fmt: skip

test_rows_of_host_cpu_summary = answers("host/cpu_summary", {
    "the host is busy when it is not idle": (
        "scope samples processes mean_busy_share max_busy_share mean_cores total_cores",
        {"cpu": [{"t_ns": t, "scope": "host", "idle_ratio": idle} for t, idle in enumerate([0.75, 0.25])]},
        [("host", 2, 0, 0.5, 0.75, None, None)]),
    "workers count one by one and together": ("name samples processes mean_cores total_cores mean_busy_share",
        {"cpu": [process(t, pid, "worker", 0.5, 0.25) for t in (0, 1) for pid in (1, 2)]
         + [process(t, 9, "trainer", 1.0, 0.0) for t in (0, 1, 2, 3)]},
        [("trainer", 4, 1, 1.0, 1.0, None), ("worker", 4, 2, 0.75, 0.75, None)]),
    "pipeline operators are not processes": ("",
        {"cpu": [{"t_ns": 0, "scope": "pipeline_op", "op_id": 1, "user_ratio": 1.0}]}, []),
})  # fmt: skip

test_rows_of_host_memory_peak = answers("host/memory_peak", {
    "peaks of processes host and pool": (GIVE,
        {"memory": rows("t_ns device pid name rss_bytes rss_peak_bytes allocated_bytes reserved_bytes",
                        (0, "process", 1, "trainer", 10, 15, None, None),
                        (1, "process", 1, "trainer", 12, None, None, None),
                        (1, "process", 2, "worker", 7, None, None, None),
                        (1, "process", 3, "worker", 5, None, None, None), (0, "CPU", None, None, None, None, 3, 8),
                        (1, "CPU", None, None, None, None, 4, 8), (0, "host", None, None, None, None, 99, None))},
        [("CPU", "", 2, 0, None, 4, 8), ("host", "", 1, 0, None, 99, None),
         ("process", "trainer", 2, 1, 15, None, None), ("process", "worker", 2, 2, 7, None, None)]),
})  # fmt: skip

test_rows_of_host_room = answers("host/room", {
    "what was left in a phase": ("*", {"stage": [STEADY], "cpu_use": [use(3, 5, "main", 2), use(3, 5, "neighbour", 1),
            use(5, 7, "child", 3), use(5, 7, "profiler", 1)], "cpu_room": [ROOM | {"start_ns": 3 * S, "end_ns": 5 * S},
            ROOM | {"start_ns": 5 * S, "end_ns": 7 * S, "idle_ns": 0}]},
        [(0, 0, "steady", 2, 4 * S, 2.0, 0.125, 1.25, 0.25, 0.25, 0.0, None, None)]),
    "how long the interpreters lock was held is of the phase": ("gil_share",
        {"stage": [STEADY], "cpu_use": [use(3, 5, "main", 2), use(5, 7, "main", 2)],
         "cpu": [{"t_ns": at * S, "scope": "gil", "user_ratio": ratio}
                 for at, ratio in ((2, 1.0), (4, 0.25), (6, 0.75), (8, 1.0))]
         + [{"t_ns": 4 * S, "scope": "host", "user_ratio": 1.0}]}, [(0.5,)]),
    "what is not known is null": ("cores idle_share throttled_share steal_cores job_cores",
        {"stage": [STEADY], "cpu_use": [use(3, 5, "main", 2)]}, [(None, None, None, None, 1.0)]),
})  # fmt: skip


def test_shares_add_up_to_the_job_and_the_parts_to_the_busy_machine(ask):
    parts = ("main", "child", "worker", "launcher", "other_rank", "neighbour", "profiler")
    cpu_use = [use(at, at + 1, part, at + number) for at in range(8) for number, part in enumerate(parts)]
    rows = ask("host/account", {"stage": STAGES, "cpu_use": cpu_use})
    for phase in {one["phase"] for one in rows}:
        assert sum(one["job_share"] or 0.0 for one in rows if one["phase"] == phase) == pytest.approx(1.0)
    assert sum(one["cpu_ns"] for one in rows) == sum(row["cpu_ns"] for row in cpu_use)
