"""A leak is said before anything else, if it may ever matter."""

import pytest

from pipeprof.report.answer import LEAST_BYTES, leaking

MIB = 1 << 20
ROW = {
    "rep": 0, "rank": 0, "device": "process", "name": "trainer", "pid": 7, "verdict": "growing", "first_bytes": 400 * MIB,
    "grown_bytes": 180.0 * MIB, "grown_low_bytes": 170.0 * MIB, "slope_bytes": 1.0 * MIB, "span_steps": 180,
}  # fmt: skip
RUN = {"path": "my run", "command": ["python", "train.py"], "workdir": "/"}


def said(*rows):
    return leaking({"run": RUN, "memory_growth": rows})


def test_a_leak_has_its_pace_and_the_command_that_shows_it():
    assert said(ROW) == (
        "Memory grows by 1.00 MiB per step, 180 MiB in 180 steps: probably a leak (an estimated trend; "
        "`pipeprof memory 'my run'` shows its range)."
    )


@pytest.mark.parametrize(
    "more",
    [
        {"verdict": "unclear"},
        {"device": "host"},
        {"name": "launcher"},
        {"grown_low_bytes": LEAST_BYTES - 1.0},
        {"first_bytes": 4000 * MIB},
    ],
)
def test_what_is_no_leak_of_the_training_or_may_never_matter_is_not_said(more):
    assert said(ROW | more) == ""
    assert leaking({"run": RUN}) == ""


def test_of_several_the_fastest_is_said():
    assert "2.00 MiB per step" in said(ROW, ROW | {"grown_bytes": 360.0 * MIB, "slope_bytes": 2.0 * MIB, "rank": 1})
