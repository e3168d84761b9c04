"""`pipeprof timeline` on the command line."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from trace_format import check, load

from pipeprof.cli.timeline import timeline
from pipeprof.errors import UsageError

MS = 1_000_000


@pytest.fixture
def run(make_run):
    steps = [
        {"step": n, "kind": "train", "start_ns": n * MS, "fp_ns": n * MS + 5, "end_ns": (n + 1) * MS} for n in range(4)
    ]
    ops = [{"op_id": 0, "step": n, "start_ns": n * MS + 9, "dur_ns": 10, "track": "CPU"} for n in range(4)]
    made = make_run({"step": steps, "op": [*ops, {"op_id": 0, "start_ns": None, "dur_ns": 1}]})
    made.manifest.state = "complete"
    made.save()
    return made


def ask(*words):
    return CliRunner().invoke(timeline, [str(word) for word in words], catch_exceptions=False)


def test_it_says_what_it_wrote_and_what_it_left_out(run, tmp_path):
    answer = ask(run.path, "-o", tmp_path / "t.json.gz")
    assert answer.exit_code == 0
    assert answer.stderr == (
        f"24 events of 1 rank in `{tmp_path / 't.json.gz'}`\nnote: left out 1 row without a time or a duration\n"
    )
    assert len(check(load(tmp_path / "t.json.gz"))["X"]) == 16
    assert answer.stdout == ""


def test_quiet_and_chosen(run, tmp_path):
    answer = ask(run.path, "-o", tmp_path / "t.json", "--steps", "1:3", "--ranks", "0", "--rep", 0, "-q")
    assert answer.stderr == ""
    found = check(load(tmp_path / "t.json"))
    assert {event["args"]["step"] for event in found["X"] if event["cat"] == "cpu_op"} == {1, 2}


def test_a_wrong_choice_writes_nothing(run, tmp_path):
    with pytest.raises(UsageError, match="--steps is `2`"):
        ask(run.path, "-o", tmp_path / "t.json", "--steps", "2")
    assert not (tmp_path / "t.json").exists()
