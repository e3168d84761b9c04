"""How many steps took how long, and what the machine did meanwhile."""

import table_rows
from table_rows import MS


def step(number, begin, end, kind="train", wait=None, **more):
    return table_rows.step(number, begin * MS, end * MS, kind, fetch_wait_ns=wait, **more)


STEPS = [
    step(0, 0, 500, kind="warmup"), step(1, 500, 600, wait=7), step(2, 600, 700, wait=5), step(3, 700, 1700, wait=0),
    step(4, 1700, 1900, in_window=True),
]  # fmt: skip


def use(begin, end, part, cpu, wait=None):
    return {"start_ns": begin * MS, "end_ns": end * MS, "part": part, "cpu_ns": cpu * MS, "wait_ns": wait and wait * MS}


def test_steps_of_about_the_same_length_are_counted_together(ask):
    rows = ask("step/lengths", {"step": STEPS}, give="steps total_ns median_ns wait_ns place own_cores")
    assert rows == [(2, 200 * MS, 100 * MS, 12, 1 / 3, None), (1, 1000 * MS, 1000 * MS, 0, 5 / 6, None)]


def test_cpu_is_that_of_the_sample_in_which_a_step_ends(ask):
    uses = [
        use(500, 1000, "main", 400), use(500, 1000, "mindspore_thread", 100, 250), use(500, 1000, "neighbour", 250),
        use(1000, 2000, "trainer", 500), use(1000, 2000, "profiler", 500), use(1000, 2000, "launcher", 500),
    ]  # fmt: skip
    rows = ask("step/lengths", {"step": STEPS, "cpu_use": uses}, give="own_cores delay_cores neighbour_cores")
    assert rows == [(1.0, 0.5, 0.5), (0.5, None, 0.0)]


def test_the_data_of_a_step_is_that_of_all_its_batches_where_each_was_weighed(ask):
    batches = [
        {"pipeline_id": number, "fetch": at, "step": step, "bytes": size}
        for at, (number, step, size) in enumerate(
            [(0, 1, 100), (1, 1, 20), (0, 2, 140), (0, 3, 900), (1, 3, None), (0, None, 7)]
        )
    ]
    rows = ask("step/lengths", {"step": STEPS, "fetch": batches}, give="steps input_bytes")
    assert rows == [(2, 130.0), (1, None)]
