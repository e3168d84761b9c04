"""How busy a device is, as users read it."""

import pytest
from click.testing import CliRunner

from pipeprof.cli.ops import ops
from pipeprof.report.words.busy import sentence, telling

ROW = {"device": "GPU", "steps": 12, "busy_share": 0.448, "least_share": 0.301, "least_step": 7, "most_share": 0.51}
WHOLE = {
    "device": "AI_CPU",
    "steps": None,
    "busy_share": 1.0,
    "least_share": None,
    "least_step": None,
    "most_share": None,
}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (ROW, "GPU is busy 44.8 % of the time in 12 steps with recorded operators (least 30.1 %, in step 7; most 51.0 %)"),
        (ROW | {"device": "CPU", "steps": 1, "least_share": 0.448, "most_share": 0.448},
         "Operators run 44.8 % of the time in 1 step with recorded operators"),
        (WHOLE, "AI_CPU is busy 100.0 % of the time from the first operator to the last"),
    ],
)  # fmt: skip
def test_sentences(row, expected):
    assert sentence(row) == expected


def test_a_device_that_ran_in_no_step_is_not_compared_with_one_that_did():
    assert telling([ROW, WHOLE]) == [ROW]
    assert telling([WHOLE]) == [WHOLE]


def test_the_summary_of_a_run_says_it(make_run):
    run = make_run({
        "step": [{"step": 0, "kind": "train", "kind_step": 0, "start_ns": 0, "end_ns": 100}],
        "op": [{"op_id": 1, "step": 0, "start_ns": 10, "dur_ns": 25, "self_ns": 25, "track": "stream 1"}],
        "op_info": [{"op_id": 1, "name": "a", "type": "A", "device": "AI_CORE"}],
    })  # fmt: skip
    result = CliRunner().invoke(ops, [str(run.path), "--print-only", "summary"])
    assert "AI_CORE is busy 25.0 % of the time in 1 step with recorded operators" in result.output
