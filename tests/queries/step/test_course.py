"""The course of the steps over the run, block by block, with what changed beside them."""

from table_rows import step

GIVE = "block first_step steps dur_ns wait_ns compiled compile_ns neighbour_cores throttled_share floor_bytes"


def test_each_block_has_its_median_step_and_what_lay_in_it(ask):
    steps = [
        step(0, 0, 500, "warmup"),
        step(1, 500, 600, fetch_wait_ns=10), step(2, 600, 720, fetch_wait_ns=30),
        step(3, 720, 920), step(4, 920, 1320),
    ]  # fmt: skip
    tables = {
        "step": steps,
        "stage": [
            {"stage": "compile", "start_ns": 730, "dur_ns": 90},
            {"stage": "compile", "start_ns": 5, "dur_ns": 7},
        ],
        "cpu_use": [
            {"start_ns": 500, "end_ns": 700, "part": "neighbour", "cpu_ns": 100},
            {"start_ns": 500, "end_ns": 700, "part": "main", "cpu_ns": 200},
            {"start_ns": 800, "end_ns": 900, "part": "neighbour", "cpu_ns": 150},
        ],
        "cpu_room": [{"start_ns": 800, "end_ns": 900, "throttled_ns": 25}],
        "memory": [
            {"t_ns": at, "device": "process", "name": "trainer", "pid": 1, "rss_bytes": level}
            for at, level in ((550, 70), (650, 60), (1000, 80))
        ],
    }
    assert ask("step/course", tables, blocks=2, give=GIVE) == [
        (0, 1, 2, 110.0, 20.0, 0, 0, 0.5, None, 60),
        (1, 3, 2, 300.0, None, 1, 90, 1.5, 0.25, 80),
    ]


def test_more_blocks_than_steps_leave_blocks_out(ask):
    rows = ask("step/course", {"step": [step(0, 0, 10), step(1, 10, 30)]}, blocks=24, give="block steps dur_ns")
    assert rows == [(0, 1, 10.0), (12, 1, 20.0)]


def test_a_sampled_time_without_other_programs_counts_as_none_of_their_cpu(ask):
    """The record has a row of the neighbours only where they took some."""
    cpu_use = [
        {"start_ns": 10, "end_ns": 20, "part": "main", "cpu_ns": 10},
        {"start_ns": 40, "end_ns": 60, "part": "main", "cpu_ns": 9},
        {"start_ns": 40, "end_ns": 60, "part": "neighbour", "cpu_ns": 8},
        {"start_ns": 60, "end_ns": 80, "part": "main", "cpu_ns": 9},
    ]
    steps = [step(0, 0, 30), step(1, 30, 100), step(2, 100, 200)]
    rows = ask("step/course", {"step": steps, "cpu_use": cpu_use}, blocks=3, give="neighbour_cores")
    assert rows == [(0.0,), (0.2,), (None,)]
