"""`status` in words: one sentence per rank, for every code that there is."""

import json

from click.testing import CliRunner
from every import every

from pipeprof.cli import cli
from pipeprof.report.words.waiting import WORDS, details, sentence
from pipeprof.verdict import waiting

CODES = {value for name, value in vars(waiting).items() if name.isupper() and isinstance(value, str) and name[0] != "_"}
ROW = {
    "rep": 0, "rank": 3, "pid": 42, "code": "script", "for_s": 12.4, "site": "train.py:7", "function": "load",
    "line": "lock.acquire()", "in_callback": False, "queue": None, "stack": [], "stuck": [], "missing": [], "call": None,
}  # fmt: skip


def test_every_code_has_words():
    assert set(WORDS) == CODES


@every(sorted(CODES))
def test_a_sentence_names_the_rank_and_the_process(code):
    missing = [{"rank": 1, "code": "script", "site": "train.py:9", "line": "x"}]
    assert sentence({**ROW, "code": code, "missing": missing}).startswith("rank 3 (process 42) ")


def test_a_full_queue_is_said_to_wait_for_the_script():
    full = sentence({**ROW, "queue": {"depth": 16, "capacity": 16}})
    assert full == (
        "rank 3 (process 42) is for 12 s in the script's own Python code, at train.py:7 in load; "
        "the queue of batches is full (16 of 16) and waits for it"
    )
    assert "2 of 16 ready" in sentence({**ROW, "queue": {"depth": 2, "capacity": 16}})


def test_ranks_that_have_not_come_are_counted():
    rows = [{"rank": rank, "code": "script", "site": None, "line": None} for rank in (1, 2)]
    one = sentence({**ROW, "code": "collective", "call": "network", "missing": rows[:1]})
    both = sentence({**ROW, "code": "collective", "call": "network", "missing": rows})
    assert "to which rank 1 has not come" in one
    assert "to which ranks 1, 2 have not come" in both


def test_a_stuck_worker_is_named_with_operator_and_line():
    stuck = {
        "pid": 9,
        "for_s": 300.0,
        "op_type": "MapOp",
        "name": "decode",
        "site": "d.py:4",
        "function": "decode",
        "line": "q.get()",
    }
    assert details({**ROW, "stuck": [stuck]}) == [
        "lock.acquire()",
        "worker process 9 of MapOp decode has been for 5 minutes in one call, at d.py:4 in decode: q.get()",
    ]


def ask(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


def test_a_run_that_has_ended_is_one_line(make_run):
    run = make_run({})
    run.manifest.state = "complete"
    run.save()
    done = ask("status", run.path)
    assert (done.exit_code, done.stdout) == (
        0,
        f"`{run.path}` is complete: nothing runs, 0 repetitions recorded; verdict: not measured\n",
    )
    content = json.loads(ask("status", run.path, "--format", "json").stdout)
    assert (content["schema_version"], content["state"], content["ranks"]) == (1, "complete", [])


def test_a_run_whose_recording_is_gone_is_said_to_be_cut_off(make_run):
    run = make_run({})
    run.manifest.state = "running"
    run.save()
    assert "was cut off" in ask("status", run.path).stdout
