"""`pipeprof status` on trainings that hang: every place is named while the training stands there."""

import json
import os
import time
from pathlib import Path

import pytest
from free_port import free_port

pytestmark = pytest.mark.mindspore

PLACES = ("process", "first", "compile", "script", "lock", "pipe", "gil", "thread")
CODES = {
    "process": "batch", "first": "first_batch", "compile": "compile", "script": "script", "lock": "script",
    "pipe": "script", "gil": "silent", "thread": "batch",
}  # fmt: skip


def asked(pipeprof, out):
    done = pipeprof.run("status", out, "--format", "json")
    return json.loads(done.stdout) if done.returncode == 0 else {"ranks": []}  # the folder may not be there yet


def standing(launcher, pipeprof, out, wanted):
    """What `status` says once `wanted` holds for it."""
    while launcher.poll() is None:
        content = asked(pipeprof, out)
        if wanted(content["ranks"]):
            return content
        time.sleep(0.1)
    raise AssertionError(launcher.communicate())


def looked_at(launcher, live):
    """The file of the newest look, once one has a pace: looks come rarely, and at the lowest priority."""
    while launcher.poll() is None:
        text = live.read_text(encoding="utf-8") if live.exists() else ""
        if "steps/s" in text:
            return text
        time.sleep(0.1)
    raise AssertionError(launcher.communicate())


def is_at(place, rows):
    """Whether the only rank says all that it can about a place."""
    if len(rows) != 1 or rows[0]["code"] != CODES[place]:
        return False
    (row,) = rows
    if place in ("process", "thread", "first"):
        return any(one["pid"] is None or place == "process" for one in row["stuck"])
    if place == "script":
        return row["queue"] is not None and row["queue"]["depth"] == row["queue"]["capacity"] and "hang" in row["text"]
    return place not in ("lock", "pipe") or f"{place}" in row["function"]


@pytest.fixture(scope="module")
def hung(pipeprof_in):
    """What `status` said in each place, as JSON and as text; and of the run when it had ended."""
    pipeprof = pipeprof_in("hangs")
    os.mkfifo(pipeprof.folder / "gil")
    live = pipeprof.folder / "now.txt"
    launcher, out = pipeprof.start(pipeprof.script("hangs.py", str(pipeprof.folder)), "--live", str(live))
    found = {}
    try:
        for place in PLACES:
            content = standing(launcher, pipeprof, out, lambda rows, place=place: is_at(place, rows))
            found[place] = content["ranks"][0], pipeprof.run("status", out).stdout
            if place == "script":
                found["live"] = looked_at(launcher, live)
                found["top"] = [pipeprof.run("top", out, "--once", "--format", form) for form in ("json", "terminal")]
            if place == "gil":
                pipeprof.folder.joinpath("gil").write_bytes(b"x")
            else:
                pipeprof.folder.joinpath(place).touch()
        _, errors = launcher.communicate()
        assert launcher.returncode == 0, errors
    finally:
        launcher.kill()
        launcher.communicate()
    found["live at the end"] = live.read_text(encoding="utf-8")
    found["end"] = asked(pipeprof, out), pipeprof.run("status", out).stdout
    return found


def test_a_look_at_the_running_training_has_its_pace_and_its_queues_and_no_verdict_too_early(hung):
    as_json, as_text = hung["top"]
    (row,) = json.loads(as_json.stdout)["ranks"]
    assert row["pace"]["steps"] >= 2
    assert row["queues"][0] == {"op_type": "BatchOp"} | row["queue"]
    verdict = json.loads(as_json.stdout)["verdict"]
    assert verdict["training_steps"] >= 1
    assert verdict["first_screen"] is None
    assert f"{row['pace']['steps_per_second']:.4g} steps/s" in as_text.stdout
    assert " of " in as_text.stdout
    assert "Too early to tell what limits the training" in as_text.stdout


def test_a_file_has_the_newest_look_while_it_is_recorded_and_the_last_one_when_it_has_ended(hung):
    assert "steps/s, median step" in hung["live"]
    assert "has ended" in hung["live at the end"] or "complete" in hung["live at the end"]
    assert "steps/s" not in hung["live at the end"]


def line_of(name, text):
    """file:line of the workload's line that has the text."""
    path = Path(__file__).parent / "workloads" / name
    lines = path.read_text(encoding="utf-8").splitlines()
    return f"{path}:{next(number for number, line in enumerate(lines, 1) if text in line)}"


SLEEP = line_of("hangs.py", "time.sleep(0.01)"), line_of("hangs.py", "while not FOLDER")


@pytest.mark.parametrize("place", PLACES)
def test_the_place_is_said_in_words_with_the_line(hung, place):
    row, text = hung[place]
    assert row["text"].partition(" for ")[0] in text
    assert row["site"] in text


def test_a_source_that_gives_no_first_row_is_the_wait_for_the_first_batch(hung):
    (stuck, *_) = hung["first"][0]["stuck"]
    assert stuck["site"] in SLEEP
    assert any("__getitem__" in frame for frame in stuck["stack"])


def test_a_worker_thread_that_is_stuck_is_named_with_its_operator_and_its_line(hung):
    row, text = hung["thread"]
    (stuck,) = [one for one in row["stuck"] if one["op_type"] == "MapOp"]
    assert stuck["name"] == "stuck_in_thread"
    assert stuck["site"] in SLEEP
    assert "thread of MapOp stuck_in_thread" in text


def test_a_worker_process_that_is_stuck_is_named_with_its_operator_and_its_line(hung):
    row, text = hung["process"]
    (stuck,) = [one for one in row["stuck"] if one["pid"] is not None]
    assert (stuck["op_type"], stuck["name"]) == ("MapOp", "stuck_in_process")
    assert stuck["site"] in SLEEP
    assert f"worker process {stuck['pid']} of MapOp stuck_in_process" in text


def test_compiling_is_named_with_the_python_that_the_compiler_runs(hung):
    row, _ = hung["compile"]
    assert row["site"] in SLEEP
    assert any("slowly_compiled" in frame for frame in row["stack"])


def test_a_loop_that_sleeps_has_a_full_queue_behind_it(hung):
    row, text = hung["script"]
    assert row["site"] in SLEEP
    assert "the queue of batches is full" in text


@pytest.mark.parametrize(("place", "line"), [("lock", "    lock.acquire()"), ("pipe", "    os.read(end, 1)")])
def test_a_lock_and_a_pipe_are_named_by_the_line_that_waits(hung, place, line):
    row, text = hung[place]
    assert row["line"] == line.strip()
    assert line.strip() in text


def test_a_call_that_keeps_the_interpreters_lock_is_told_from_a_hang_in_python(hung):
    row, text = hung["gil"]
    assert "holds the interpreter's lock" in text
    assert row["function"] in ("holding_the_interpreter", "with_threads", "reading_a_pipe")


def test_of_a_run_that_has_ended_one_line_says_so(hung):
    content, text = hung["end"]
    assert (content["state"], content["ranks"]) == ("complete", [])
    assert len(text.splitlines()) == 1


def test_a_rank_that_does_not_come_to_a_collective_is_named_by_the_one_that_waits(pipeprof):
    words = ["--worker_num=2", "--local_worker_num=2", f"--master_port={free_port()}", "--join=True"]
    command = [str(Path(pipeprof.python).with_name("msrun")), *words, f"--log_dir={pipeprof.folder / 'logs'}"]
    command += pipeprof.script("late_rank.py", str(pipeprof.folder))[1:]
    launcher, out = pipeprof.start(command)
    try:
        waiting, late = standing(
            launcher, pipeprof, out, lambda rows: [row["code"] for row in rows] == ["collective", "script"]
        )["ranks"]
        pipeprof.folder.joinpath("collective").touch()
        _, errors = launcher.communicate()
        assert launcher.returncode == 0, errors
    finally:
        launcher.kill()
        launcher.communicate()
    assert [one["rank"] for one in waiting["missing"]] == [1]
    assert "to which rank 1 has not come" in waiting["text"]
    assert any("come_late" in frame for frame in late["stack"])
