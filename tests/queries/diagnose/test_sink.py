"""Data sink mode: 8 batches on each side, one every 10 ns; the first two (a quarter of the time) do not count."""

import pytest
from table_rows import KEY

from pipeprof.verdict.decision import with_stages

GIVE = "batches host_empty_share host_wait_share device_empty_share device_wait_ns stage"


def side(name, depths, wait=2, push=None):
    same = KEY | {"wait_ns": wait, "push_ns": push, "side": name}
    return [same | {"fetch": n, "start_ns": 10 * n, "depth": depth} for n, depth in enumerate(depths)]


def tables(*sides, role="train"):
    return {
        "pipeline": [KEY | {"pipeline_key": "a", "role": role}],
        "fetch": [row for rows in sides for row in rows],
    }


def late(ask, rows, give):
    """The columns named in `give`, with the side that is late."""
    return [tuple(row[name] for name in give.split()) for row in with_stages(ask("diagnose/sink", rows))]


def test_a_host_queue_left_empty_is_a_late_pipeline(ask):
    rows = tables(side("host_queue", [3, 3, 0, 0, 0, 1, 1, 1], push=6), side("data_queue", [0] * 8, wait=5))
    assert late(ask, rows, GIVE) == [(6, 0.5, 0.25, 1.0, 5.0, "data_processing")]


def test_batches_that_met_an_empty_queue_are_counted_on_each_side(ask):
    rows = tables(side("host_queue", [3, 3, 0, 0, 0, 1, 1, 1]), side("data_queue", [2, 2, 2, 2, 2, 2, 2, 0]))
    assert late(ask, rows, "host_empty device_batches device_empty") == [(3, 6, 1)]
    unknown = tables(side("host_queue", [None] * 8))
    assert late(ask, unknown, "host_empty device_batches device_empty") == [(None, 0, None)]


@pytest.mark.parametrize("rows", [tables(side("iterator", [0] * 8)), tables(side("host_queue", [0] * 8), role="eval")])
def test_other_loops_have_no_rows(ask, rows):
    assert ask("diagnose/sink", rows) == []


DEVICE_LATE = "host_empty_share device_empty_share stage"
LATE = {
    "a full host queue and an empty device queue are a late transfer": (GIVE,
        [side("host_queue", [0, 0, 2, 2, 2, 2, 2, 2]), side("data_queue", [2, 2, 0, 0, 0, 1, 1, 1])],
        (6, 0.0, 1.0, 0.5, 2.0, "data_transmission")),
    "nobody is late while both queues hold batches": (DEVICE_LATE,
        [side("host_queue", [2] * 8), side("data_queue", [2] * 8)], (0.0, 0.0, None)),
    "without the devices side only the pipeline can be late": (GIVE, [side("host_queue", [0] * 8)],
        (6, 1.0, 1.0, None, None, "data_processing")),
    "an empty device queue alone does not say who is late": (DEVICE_LATE,
        [side("data_queue", [0] * 8), side("iterator", [None] * 8)], (None, 1.0, None)),
    "nor does it beside a host queue of unknown depth": (DEVICE_LATE,
        [side("host_queue", [None] * 8), side("data_queue", [0] * 8), side("iterator", [None] * 8)], (None, 1.0, None)),
    "exactly a third is late": ("host_empty_share stage", [side("host_queue", [9, 9, 0, 0, 1, 1, 1, 1])],
        (pytest.approx(1 / 3), "data_processing")),
    "less than a third is not": ("host_empty_share stage", [side("host_queue", [9, 9, 0, 1, 1, 1, 1, 1])],
        (pytest.approx(1 / 6), None)),
    "depths that are not known are no share": ("batches host_empty_share stage", [side("host_queue", [None] * 8)],
        (6, None, None)),
}  # fmt: skip


@pytest.mark.parametrize(("give", "sides", "expected"), LATE.values(), ids=LATE)
def test_the_side_that_is_late(ask, give, sides, expected):
    assert late(ask, tables(*sides), give) == [expected]
