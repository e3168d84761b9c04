"""`pipeprof timeline` on the command line."""

import pytest
from in_process import ask
from table_rows import MS, op, step
from trace_format import check, load

from pipeprof.errors import UsageError


@pytest.fixture
def run(make_run):
    steps = [step(n, n * MS, (n + 1) * MS, fp_ns=n * MS + 5) for n in range(4)]
    ops = [op(0, 10, n, n * MS + 9) for n in range(4)]
    return make_run({"step": steps, "op": [*ops, {"op_id": 0, "start_ns": None, "dur_ns": 1}]}, state="complete")


def test_it_says_what_it_wrote_and_what_it_left_out(run, tmp_path):
    answer = ask("timeline", run.path, "-o", tmp_path / "t.json.gz")
    assert answer.exit_code == 0
    assert answer.stderr == (
        f"24 events of 1 rank in `{tmp_path / 't.json.gz'}`\nnote: left out 1 row without a time or a duration\n"
    )
    assert len(check(load(tmp_path / "t.json.gz"))["X"]) == 16
    assert answer.stdout == ""


def test_quiet_and_chosen_and_a_wrong_choice_writes_nothing(run, tmp_path):
    path = tmp_path / "t.json"
    with pytest.raises(UsageError, match="--steps is `2`"):
        ask("timeline", run.path, "-o", path, "--steps", "2")
    assert not path.exists()
    with pytest.raises(UsageError, match="not written to standard output"):
        ask("timeline", run.path, "-o", "-")
    assert ask("timeline", run.path, "-o", path, "--steps", "1:3", "--ranks", "0", "--rep", 0, "-q").stderr == ""
    assert {event["args"]["step"] for event in check(load(path))["X"] if event["cat"] == "cpu_op"} == {1, 2}


def test_ranks_of_several_repetitions_count_once(make_run, tmp_path):
    stage = {"stage": "import", "start_ns": 0, "dur_ns": 5}
    ranks = [stage | {"rep": rep, "rank": rank} for rep in range(3) for rank in (0, 1)]
    made = make_run({"stage": ranks}, state="complete")
    said = ask("timeline", made.path, "-o", tmp_path / "t.json").stderr
    assert "events of 2 ranks (3 repetitions) in `" in said


def test_stacks_go_to_standard_output(make_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    info = [{"op_id": n, "name": f"net/op{n}", "scope": f"net/op{n}"} for n in range(2)]
    ops = [op(n, 5, start=n * 10, side="host") for n in range(2)]
    made = make_run({"op": ops, "op_info": info}, state="complete")
    answer = ask("stacks", made.path, "--by", "scope", "-o", "-")
    assert answer.exit_code == 0
    assert len(answer.stdout.splitlines()) == 2
    assert "2 stacks by scope" in answer.stderr
    assert not (tmp_path / "-").exists()
