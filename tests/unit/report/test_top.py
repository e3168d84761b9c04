"""`top` and `status`: what a look at a run shows, what each rank waits for, and when the next look is."""

import io
import json
import re

import pytest
from click.testing import CliRunner
from every import every
from rich.console import Console

from pipeprof.cli import cli
from pipeprof.record.run import Manifest, Run
from pipeprof.report import status, top
from pipeprof.report.words.waiting import WORDS, details, sentence
from pipeprof.verdict import waiting

RANK = {
    "text": "rank 0 (process 9) is training", "pid": 9,
    "queues": [{"op_type": "BatchOp", "depth": 8, "capacity": 16}, {"op_type": "MapOp", "depth": 0, "capacity": 16}],
    "pace": {"steps": 742, "over_ns": 10_000_000_000, "steps_per_second": 74.2, "median_ns": 10_600_000,
             "data_wait_share": 0.116, "done": 742, "planned": 10_000, "left_ns": 124_770_000_000},
}  # fmt: skip
SCREEN = {
    "sentence": "Input-bound.", "cause": "it computes", "place": "a.py:3", "action": "More workers.", "gain": None,
    "confidence": "low", "confidence_reason": "few batches",
}  # fmt: skip
LOOK = {
    "run": {"path": "r", "run_id": "x", "repetitions": 0}, "state": status.RECORDING, "ranks": [RANK],
    "machine": {"idle_share": 0.25, "job_cores": 1.5, "rss_bytes": 3 << 20, "processes": 2},
    "verdict": {"training_steps": 100, "training_ns": 2e9, "first_screen": SCREEN},
}  # fmt: skip


def test_a_look_shows_pace_queues_machine_and_verdict():
    assert top.lines(LOOK) == [
        "rank 0 (process 9) is training",
        "  74.2 steps/s, median step 10.6 ms, 11.6 % of it waiting for data (742 steps in 10.0 s)",
        "  step 742 of 10,000: 2 min 05 s left at this pace",
        "  ##########..........    8 of 16   BatchOp",
        "  ....................    0 of 16   MapOp",
        "",
        "machine: 25.0 % idle; 2 processes of this job: 1.50 cores, 3.00 MiB",
        "",
        "So far (100 training steps): Input-bound.",
        "  Cause: it computes",
        "  Where: a.py:3",
        "  Do: More workers.",
        "  Confidence: low, because few batches.",
    ]
    pace = RANK["pace"] | {"done": None, "planned": None, "left_ns": None}  # without a plan
    assert not any("left" in line for line in top.lines(LOOK | {"ranks": [RANK | {"pace": pace}]}))


def test_what_is_not_known_yet_is_said():
    shown = top.lines(LOOK | {"ranks": [RANK | {"pace": None, "queues": []}], "machine": None, "verdict": None})
    assert shown == [RANK["text"], "  no pace yet: fewer than two steps were recorded"]
    for drawn in (top.lines(LOOK | {"ranks": []})[0], dashboard(LOOK | {"ranks": []})):
        assert "no process of it has begun" in drawn


def test_a_text_of_many_lines_cannot_leave_its_line():
    buffer = io.StringIO()
    top.draw(Console(file=buffer, width=200), LOOK | {"ranks": [RANK | {"text": "a\nb\x1b[2Jc"}]})
    assert "a b\\x1b[2Jc" in buffer.getvalue()


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """A watch whose run is recorded for three looks; the seconds that it slept are in `watch.slept`.

    `watch.mean_ns` is the mean step of what it would judge; how often it did is in `watch.judged`.
    """
    states = [status.RECORDING] * 3 + ["complete"]
    run = Run(tmp_path, Manifest(run_id="x", started_at="", pipeprof_version="0"))
    run.save()
    made = top.Watch(run)
    made.slept, made.judged, made.trained_ns, made.mean_ns = [], [], 2e9, 3e8

    def built(_run):
        made.judged.append(made.mean_ns)
        summary = [{"kind": "train", "steps": 5, "mean_ns": made.mean_ns}, {"kind": "warmup", "steps": 1}]
        return {"first_screen": SCREEN, "verdict": {"causes": [], "alike": 1}, "steps": {"summary": summary}}

    monkeypatch.setattr(status, "build", lambda _run: {"state": states.pop(0), "ranks": [], "run": {}})
    monkeypatch.setattr(top, "_by_pace", lambda _ranks: {"training_steps": 5, "training_ns": made.trained_ns})
    monkeypatch.setattr(top, "build", built)
    monkeypatch.setattr(top.time, "sleep", made.slept.append)
    return made


def test_it_looks_until_the_run_has_ended_and_makes_the_verdict_once(watch):
    *looks, last = watch.looks()
    assert [look["state"] for look in (*looks, last)] == [status.RECORDING] * 3 + ["complete"]
    assert len(watch.slept) == 3
    assert len(watch.judged) == 1
    assert [look["verdict"]["training_steps"] for look in looks] == [5, 5, 5]
    assert looks[0]["verdict"]["training_ns"] == 1.5e9
    assert last.get("verdict") is None  # else that of `status`, of the whole run


def test_a_look_that_takes_long_is_followed_by_a_pause_that_keeps_its_share_small(watch, monkeypatch):
    clock = iter([number * 0.25 for number in range(100)])
    monkeypatch.setattr(top.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(watch, "_judged", lambda _ranks: [next(clock) for _ in range(9)])  # has a pause of its own
    list(watch.looks())
    assert watch.slept == [0.25 / top.SHARE] * 3


@pytest.mark.parametrize(("mean", "early"), [(2.98e8, True), (3e8, False)])
def test_on_little_time_no_verdict_is_shown(watch, mean, early):
    watch.trained_ns, watch.mean_ns = 1.6e9, mean
    verdict = next(watch.looks())["verdict"]
    assert verdict["first_screen"] == (None if early else SCREEN)
    shown = top.lines(LOOK | {"verdict": verdict})
    said = "Too early to tell what limits the training: 5 training steps in 1.60 s; a verdict needs 1.5 s of them"
    assert (shown[-1] == said) == early
    assert ("So far (5 training steps): Input-bound." in shown) != early


def test_while_it_is_too_early_each_look_counts_the_steps_anew(watch):
    """A view that had judged once at the start said "0 training steps" for a minute."""
    looks, seen = watch.looks(), []
    for watch.trained_ns in (0.0, 0.5e9, 1.4e9):
        seen.append(next(looks)["verdict"])
    assert seen == [{"training_steps": 5, "training_ns": ns, "first_screen": None} for ns in (0.0, 0.5e9, 1.4e9)]
    assert watch.judged == []


def test_steps_so_far_are_those_of_all_ranks_and_the_time_is_that_of_one():
    rows = [{"pace": {"steps": 3, "over_ns": 5}}, {"pace": {"steps": 4, "over_ns": 4}}, {"pace": None}]
    assert top._by_pace(rows) == {"training_steps": 7, "training_ns": 5.0}


def dashboard(content, past=(), *, utf=True):
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system="standard")
    console.print(top.dashboard(content, {9: past}, utf=utf))
    return console.file.getvalue()


def test_the_dashboard_begins_with_the_verdict_and_fits_a_terminal_of_80_by_24():
    plain = re.sub(r"\x1b\[[0-9;]*m", "", dashboard(LOOK, [10.0, 40.0, 80.0])).splitlines()
    assert plain[0] == "So far (100 training steps): Input-bound."
    assert "  steps/s ▂▅█" in plain
    assert "  ██████████░░░░░░░░░░    8 of 16   BatchOp" in plain
    assert len(plain) <= 24
    assert max(map(len, plain)) <= 80


def test_an_empty_queue_is_red_and_a_terminal_without_other_signs_has_ascii():
    drawn = dashboard(LOOK)
    assert [line.count("\x1b[1;31m") for line in drawn.splitlines() if "Op" in line] == [0, 1]
    plain = dashboard(LOOK, [1.0, 2.0], utf=False)
    assert plain.isascii()
    assert "##########.........." in plain


CODES = {value for name, value in vars(waiting).items() if name.isupper() and isinstance(value, str) and name[0] != "_"}
ROW = {
    "rep": 0, "rank": 3, "pid": 42, "code": "script", "for_s": 12.4, "site": "train.py:7", "function": "load",
    "line": "lock.acquire()", "in_callback": False, "queue": None, "stack": [], "stuck": [], "missing": [],
    "call": None,
}  # fmt: skip
MISSING = [{"rank": rank, "code": "script", "site": None, "line": None} for rank in (1, 2)]


def test_every_code_has_words():
    assert set(WORDS) == CODES


@every(sorted(CODES))
def test_a_sentence_names_the_rank_and_the_process(code):
    missing = [{"rank": 1, "code": "script", "site": "train.py:9", "line": "x"}]
    assert sentence({**ROW, "code": code, "missing": missing}).startswith("rank 3 (process 42) ")


def test_a_full_queue_is_said_to_wait_for_the_script_and_ranks_that_have_not_come_are_counted():
    assert sentence({**ROW, "queue": {"depth": 16, "capacity": 16}}) == (
        "rank 3 (process 42) is for 12 s in the script's own Python code, at train.py:7 in load; "
        "the queue of batches is full (16 of 16) and waits for it"
    )
    assert "2 of 16 ready" in sentence({**ROW, "queue": {"depth": 2, "capacity": 16}})
    for missing, said in ((MISSING[:1], "rank 1 has not come"), (MISSING, "ranks 1, 2 have not come")):
        assert said in sentence({**ROW, "code": "collective", "call": "network", "missing": missing})


def test_a_stuck_worker_is_named_with_operator_and_line():
    stuck = {"pid": 9, "for_s": 300.0, "op_type": "MapOp", "name": "decode", "site": "d.py:4", "function": "decode",
             "line": "q.get()"}  # fmt: skip
    assert details({**ROW, "stuck": [stuck]}) == [
        "lock.acquire()",
        "worker process 9 of MapOp decode has been for 5 minutes in one call, at d.py:4 in decode: q.get()",
    ]


def ask(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


def test_a_run_that_has_ended_is_one_line_and_one_whose_recording_is_gone_was_cut_off(make_run):
    path = make_run({}, state="complete").path
    done = ask("status", path)
    said = f"`{path}` is complete: nothing runs, 0 repetitions recorded; verdict: not measured\n"
    assert (done.exit_code, done.stdout) == (0, said)
    content = json.loads(ask("status", path, "--format", "json").stdout)
    assert (content["schema_version"], content["state"], content["ranks"]) == (1, "complete", [])
    assert "was cut off" in ask("status", make_run({}, state="running").path).stdout
