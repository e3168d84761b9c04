"""rollup/rank: one row per rank, with the numbers of the queries that a report asks."""

from pipeprof.query.engine import Engine

MS = 1_000_000
STEPS = [
    {"step": 0, "kind_step": 0, "kind": "warmup", "start_ns": 0, "end_ns": 50 * MS, "fetch_wait_ns": 40 * MS},
    {"step": 1, "kind_step": 1, "kind": "train", "start_ns": 50 * MS, "end_ns": 60 * MS, "fetch_wait_ns": 2 * MS},
    {"step": 2, "kind_step": 2, "kind": "train", "start_ns": 60 * MS, "end_ns": 90 * MS, "fetch_wait_ns": 10 * MS},
    {"step": 3, "kind_step": 3, "kind": "train", "start_ns": 90 * MS, "end_ns": 190 * MS, "in_window": True},
    {"step": 4, "kind_step": 0, "kind": "eval", "start_ns": 190 * MS, "end_ns": 200 * MS},
]


def test_times_count_outside_windows_and_hours_count_all_training_steps(ask):
    (row,) = ask("rollup/rank", {"step": STEPS})
    assert (row["kind"], row["steps"], row["timed_steps"]) == ("train", 4, 2)
    assert (row["median_ns"], row["p90_ns"]) == (20 * MS, 28 * MS)
    assert row["data_wait_share"] == 12 / 40
    assert (row["training_ns"], row["wait_ns"]) == (190 * MS, 52 * MS)


def test_what_was_not_measured_is_null(ask):
    (row,) = ask("rollup/rank", {"step": [{"step": 0, "kind_step": 0, "kind": "train", "start_ns": 0, "end_ns": MS}]})
    unknown = ("wait_ns", "data_wait_share", "comm_share", "rss_bytes", "pool_bytes", "run_ns", "compile_ns")
    assert [row[name] for name in unknown] == [None] * len(unknown)


def test_a_rank_without_steps_has_a_row_for_its_memory(ask):
    memory = [
        {"t_ns": 0, "device": "process", "rss_bytes": 5, "rss_peak_bytes": 9},
        {"t_ns": 1, "device": "host", "rss_bytes": 100},
        {"t_ns": 1, "device": "CPU", "allocated_bytes": 3, "reserved_bytes": 4},
    ]
    (row,) = ask("rollup/rank", {"memory": memory})
    assert (row["steps"], row["kind"], row["rss_bytes"], row["pool_bytes"]) == (None, None, 9, 4)


def test_parts_of_the_run(ask):
    parts = [
        {"part": part, "dur_ns": dur, "start_ns": 0, "count": 1}
        for part, dur in [
            ("import", 1), ("dataset_build", 2), ("training", 40), ("compile", 8), ("recompile", 16), ("evaluation", 32),
            ("callback", 64), ("checkpoint", 128), ("ending", 256),
        ]
    ]  # fmt: skip
    (row,) = ask("rollup/rank", {"run_part": parts})
    names = ("run_ns", "start_ns", "compile_ns", "evaluation_ns", "checkpoint_ns", "callback_ns")
    assert [row[name] for name in names] == [547, 3, 24, 32, 128, 64]


def test_communication_is_that_of_the_most_exact_source(make_run):
    """As comm/split has it: the profiler's own division wins over the times of events."""
    tables = {
        "step": [{"step": 0, "kind_step": 0, "kind": "train", "start_ns": 0, "fp_ns": 10, "bp_ns": 60, "end_ns": 100}],
        "collective": [{"step": 0, "name": "a", "kind": "all_reduce", "start_ns": 60, "dur_ns": 20, "track": "1"}],
    }
    split = {"step": 0, "source_step": 0, "source": "step_trace_time", "computing_ns": 60, "exposed_ns": 30,
             "communication_ns": 40, "overlapped_ns": 10, "free_ns": 10}  # fmt: skip
    for more, source in (({}, "trace"), ({"step_split": [split]}, "split")):
        with Engine.open(make_run(tables | more)) as engine:
            known = {row["source"]: row for row in engine.rows("comm/split")}
            (row,) = engine.rows("rollup/rank")
        assert row["comm_share"] == known[source]["comm_share"] > 0
        assert row["exposed_share"] == known[source]["exposed_share"]
