"""`top`: what a look shows, and when the next one is."""

import io
import re

import pytest
from rich.console import Console

from pipeprof.record.run import Manifest, Run
from pipeprof.report import status, top

RANK = {
    "text": "rank 0 (process 9) is training",
    "pid": 9,
    "queues": [{"op_type": "BatchOp", "depth": 8, "capacity": 16}, {"op_type": "MapOp", "depth": 0, "capacity": 16}],
    "pace": {"steps": 742, "over_ns": 10_000_000_000, "steps_per_second": 74.2, "median_ns": 10_600_000,
             "data_wait_share": 0.116, "done": 742, "planned": 10_000, "left_ns": 124_770_000_000},
}  # fmt: skip
SCREEN = {
    "sentence": "Input-bound.", "cause": "it computes", "place": "a.py:3", "action": "More workers.", "gain": None,
    "confidence": "low", "confidence_reason": "few batches",
}  # fmt: skip
BUILT = {"first_screen": SCREEN, "verdict": {"causes": [], "alike": 1}}
LOOK = {
    "run": {"path": "r", "run_id": "x", "repetitions": 0},
    "state": status.RECORDING,
    "ranks": [RANK],
    "machine": {"idle_share": 0.25, "job_cores": 1.5, "rss_bytes": 3 << 20, "processes": 2},
    "verdict": {"training_steps": 100, "training_ns": 2e9, "first_screen": SCREEN},
}


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


def test_without_a_plan_nothing_is_said_of_the_rest():
    pace = RANK["pace"] | {"done": None, "planned": None, "left_ns": None}
    assert not any("left" in line for line in top.lines(LOOK | {"ranks": [RANK | {"pace": pace}]}))


def test_what_is_not_known_yet_is_said():
    shown = top.lines(LOOK | {"ranks": [RANK | {"pace": None, "queues": []}], "machine": None, "verdict": None})
    assert shown == [RANK["text"], "  no pace yet: fewer than two steps were recorded"]
    assert "no process of it has begun" in top.lines(LOOK | {"ranks": []})[0]


def test_a_text_of_many_lines_cannot_leave_its_line():
    buffer = io.StringIO()
    top.draw(Console(file=buffer, width=200), LOOK | {"ranks": [RANK | {"text": "a\nb\x1b[2Jc"}]})
    assert "a b\\x1b[2Jc" in buffer.getvalue()


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """A watch whose run is recorded for three looks; the seconds that it slept are in `watch.slept`."""
    states = [status.RECORDING, status.RECORDING, status.RECORDING, "complete"]
    run = Run(tmp_path, Manifest(run_id="x", started_at="", pipeprof_version="0"))
    run.save()
    monkeypatch.setattr(status, "build", lambda _run: {"state": states.pop(0), "ranks": [], "run": {}})
    monkeypatch.setattr(top, "_by_pace", lambda _ranks: {"training_steps": 5, "training_ns": made.trained_ns})
    made = top.Watch(run)
    made.slept, made.trained_ns = [], 2e9
    monkeypatch.setattr(top.time, "sleep", made.slept.append)
    return made


def test_it_looks_until_the_run_has_ended(watch):
    states = [content["state"] for content in watch.looks()]
    assert states == [status.RECORDING] * 3 + ["complete"]
    assert len(watch.slept) == 3


def test_a_look_that_takes_long_is_followed_by_a_pause_that_keeps_its_share_small(watch, monkeypatch):
    clock = iter([number * 0.25 for number in range(100)])
    monkeypatch.setattr(top.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(watch, "_judged", lambda _ranks: [next(clock) for _ in range(9)])  # has a pause of its own
    list(watch.looks())
    assert watch.slept == [0.25 / top.SHARE] * 3


@pytest.mark.parametrize(("mean", "early"), [(2.98e8, True), (3e8, False)])
def test_on_little_time_no_verdict_is_shown(watch, monkeypatch, mean, early):
    summary = [{"kind": "train", "steps": 5, "mean_ns": mean}]
    monkeypatch.setattr(top, "build", lambda _run: BUILT | {"steps": {"summary": summary}})
    watch.trained_ns = 1.6e9
    verdict = next(watch.looks())["verdict"]
    assert verdict["first_screen"] == (None if early else SCREEN)
    shown = top.lines(LOOK | {"verdict": verdict})
    said = "Too early to tell what limits the training: 5 training steps in 1.60 s; a verdict needs 1.5 s of them"
    assert (shown[-1] == said) == early
    assert ("So far (5 training steps): Input-bound." in shown) != early


def test_while_it_is_too_early_each_look_counts_the_steps_anew(watch, monkeypatch):
    """A view that had judged once at the start said "0 training steps" for a minute."""
    monkeypatch.setattr(top, "build", lambda _run: pytest.fail("there is nothing to judge yet"))
    looks, seen = watch.looks(), []
    for watch.trained_ns in (0.0, 0.5e9, 1.4e9):
        seen.append(next(looks)["verdict"])
    assert seen == [{"training_steps": 5, "training_ns": ns, "first_screen": None} for ns in (0.0, 0.5e9, 1.4e9)]


def test_steps_so_far_are_those_of_all_ranks_and_the_time_is_that_of_one():
    rows = [{"pace": {"steps": 3, "over_ns": 5}}, {"pace": {"steps": 4, "over_ns": 4}}, {"pace": None}]
    assert top._by_pace(rows) == {"training_steps": 7, "training_ns": 5.0}


def test_the_verdict_is_not_made_anew_at_each_look(watch, monkeypatch):
    made = []
    monkeypatch.setattr(top, "build", lambda _run: made.append(1) or {
        **BUILT, "steps": {"summary": [{"kind": "train", "steps": 5, "mean_ns": 3e8}, {"kind": "warmup", "steps": 1}]},
    })  # fmt: skip
    *looks, last = watch.looks()
    assert len(made) == 1
    assert [look["verdict"]["training_steps"] for look in looks] == [5, 5, 5]
    assert looks[0]["verdict"]["training_ns"] == 1.5e9
    assert last.get("verdict") is None  # else that of `status`, of the whole run


def shown(content, past=(), *, utf=True):
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system="standard")
    console.print(top.dashboard(content, {9: past}, utf=utf))
    return console.file.getvalue()


def test_the_dashboard_begins_with_the_verdict_and_fits_a_terminal_of_80_by_24():
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown(LOOK, [10.0, 40.0, 80.0])).splitlines()
    assert plain[0] == "So far (100 training steps): Input-bound."
    assert "  steps/s ▂▅█" in plain
    assert "  ██████████░░░░░░░░░░    8 of 16   BatchOp" in plain
    assert len(plain) <= 24
    assert max(map(len, plain)) <= 80


def test_an_empty_queue_is_red_and_a_terminal_without_other_signs_has_ascii():
    drawn = shown(LOOK)
    assert [line.count("\x1b[1;31m") for line in drawn.splitlines() if "Op" in line] == [0, 1]
    plain = shown(LOOK, [1.0, 2.0], utf=False)
    assert plain.isascii()
    assert "##########.........." in plain


def test_without_a_rank_the_dashboard_says_what_is_known():
    assert "no process of it has begun" in shown(LOOK | {"ranks": []})
