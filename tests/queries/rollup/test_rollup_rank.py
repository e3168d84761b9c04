"""rollup/rank: one row per rank, with the numbers of the queries that a report asks."""

from query_cases import answers, rows
from table_rows import MS

from pipeprof.query.engine import Engine


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


UNKNOWN = "wait_ns data_wait_share comm_share rss_bytes pool_bytes run_ns compile_ns"

test_rows_of_rollup_rank = answers("rollup/rank", {
    "times count outside windows and hours count all training steps": (
        "kind steps timed_steps median_ns p90_ns data_wait_share training_ns wait_ns",
        {"step": rows("step kind_step kind start_ns end_ns fetch_wait_ns in_window",
                      (0, 0, "warmup", 0, 50 * MS, 40 * MS, None), (1, 1, "train", 50 * MS, 60 * MS, 2 * MS, None),
                      (2, 2, "train", 60 * MS, 90 * MS, 10 * MS, None), (3, 3, "train", 90 * MS, 190 * MS, None, True),
                      (4, 0, "eval", 190 * MS, 200 * MS, None, None))},
        [("train", 4, 2, 20 * MS, 28 * MS, 12 / 40, 190 * MS, 52 * MS)]),
    "what was not measured is null": (UNKNOWN,
        {"step": [{"step": 0, "kind_step": 0, "kind": "train", "start_ns": 0, "end_ns": MS}]}, [(None,) * 7]),
    "a rank without steps has a row for its memory": ("steps kind rss_bytes pool_bytes",
        {"memory": rows("t_ns device rss_bytes rss_peak_bytes allocated_bytes reserved_bytes",
                        (0, "process", 5, 9, None, None), (1, "host", 100, None, None, None),
                        (1, "CPU", None, None, 3, 4))}, [(None, None, 9, 4)]),
    "parts of the run": ("run_ns start_ns compile_ns evaluation_ns checkpoint_ns callback_ns",
        {"run_part": [{"part": part, "dur_ns": dur, "start_ns": 0, "count": 1}
                      for part, dur in (("import", 1), ("dataset_build", 2), ("training", 40), ("compile", 8),
                                        ("recompile", 16), ("evaluation", 32), ("callback", 64), ("checkpoint", 128),
                                        ("ending", 256))]}, [(547, 3, 24, 32, 128, 64)]),
})  # fmt: skip
