"""A folder has one recording: what is live is not replaced, what was replaced is not claimed, kills cost what is said."""

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager, suppress

import pytest
from conftest import LIMIT_S

from pipeprof.errors import RunError
from pipeprof.read.spool.finish import open_run
from pipeprof.record import lock, store
from pipeprof.record.run import load


@contextmanager
def training(pipeprof, steps, *options, out=None, command=None):
    """A recorded training that did its steps and waits for the end of its input: its launcher, run and output so far."""
    launcher, out = pipeprof.start(
        command or pipeprof.script("marks.py", str(steps)), *options, out=out, stdin=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        lines = []
        while not lines or lines[-1] != "ready\n":
            lines.append(launcher.stdout.readline().decode())
            assert lines[-1], launcher.stderr.read().decode()
        yield launcher, out, lines[:-1]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
        launcher.communicate(timeout=LIMIT_S)


def told(lines):
    """(end, process id) of the steps that a training told."""
    return [(int(words[2]), int(words[3])) for words in map(str.split, lines) if words[0] == "step"]


def test_a_live_run_is_not_replaced_and_ends_whole(pipeprof):
    with training(pipeprof, 5) as (launcher, out, _):
        before = load(out).manifest.run_id
        for options in ((), ("--force",)):
            done = pipeprof.collect(["true"], *options, out=out).done
            assert done.returncode == 2
            assert done.stderr.splitlines()[0] == f"error: `{out}` is being recorded"
        launcher.communicate(timeout=LIMIT_S)
        assert launcher.returncode == 0
    run = load(out)
    assert (run.manifest.run_id, run.manifest.state) == (before, "complete")
    assert store.read(run, "step").num_rows == 5
    assert not out.joinpath(lock.LOCK).exists()


def test_a_training_that_lost_its_launcher_is_not_replaced(pipeprof):
    with training(pipeprof, 5) as (launcher, out, lines):
        os.kill(launcher.pid, signal.SIGKILL)
        launcher.wait(timeout=LIMIT_S)
        done = pipeprof.collect(["true"], "--force", out=out).done
        assert done.returncode == 2
        assert "is being recorded" in done.stderr
        with pytest.raises(RunError, match=f"process {told(lines)[-1][1]} runs on"):
            open_run(out)
    assert load(out).manifest.state == "running"


def test_what_is_said_to_be_missing_after_both_were_killed_is_enough(pipeprof):
    with training(pipeprof, 400) as (launcher, out, lines):
        os.killpg(launcher.pid, signal.SIGKILL)
        lines.extend(launcher.stdout.read().decode().splitlines())  # until both are gone
    run = open_run(out)
    rows = store.read(run, "step").to_pylist()
    ends = [end - run.manifest.reps[0].zero_monotonic_ns for end, _ in told(lines)]
    (rank,) = run.manifest.reps[0].ranks
    assert [row["end_ns"] for row in rows] == ends[: len(rows)]
    assert (ends[-1] - rows[-1]["end_ns"]) / 1e9 <= rank.missing_steps_s
    assert rank.missing_steps_s >= 0.5


def test_a_folder_deleted_under_a_recording_ends_as_failed_with_the_reason(pipeprof):
    with training(pipeprof, 5) as (launcher, out, _):
        shutil.rmtree(out)
        stdout, stderr = launcher.communicate(timeout=LIMIT_S)
    assert launcher.returncode == 0  # the command's
    assert stdout == b"last words\n"
    assert b"Traceback" not in stderr
    manifest = load(out).manifest
    assert (manifest.state, manifest.reason) == ("failed", "its folder was deleted while it was recorded")
    assert not out.joinpath("spool").exists()


def test_a_recording_whose_folder_was_replaced_leaves_the_new_run_alone(pipeprof):
    with training(pipeprof, 5) as (first, out, _):
        shutil.rmtree(out)
        with training(pipeprof, 7, out=out) as (second, _, _):
            before = load(out).manifest.run_id
            _, stderr = first.communicate(timeout=LIMIT_S)
            assert first.returncode == 0
            assert f"error: `{out}` holds another run".encode() in stderr
            assert load(out).manifest.state == "running"
            assert not list(out.glob("spool/rep=0/exit.json"))
            second.communicate(timeout=LIMIT_S)
    run = load(out)
    assert (run.manifest.run_id, run.manifest.state) == (before, "complete")
    assert store.read(run, "step").num_rows == 7


LATE = "import sys; print('ready', flush=True); sys.stdin.readline(); sys.argv[1:] = ['3']; exec(open({!r}).read())"


def test_a_training_that_begins_after_its_run_was_replaced_is_not_in_the_new_one(pipeprof):
    """It was started, and had recorded nothing yet, when its launcher was killed."""
    script = pipeprof.script("marks.py")[-1]
    command = [pipeprof.python, "-c", LATE.format(script)]
    with training(pipeprof, 0, command=command) as (first, out, _):
        os.kill(first.pid, signal.SIGKILL)
        first.wait(timeout=LIMIT_S)
        with training(pipeprof, 7, "--force", out=out) as (second, _, _):
            first.stdin.write(b"go\n")
            first.stdin.close()
            assert first.stdout.read().decode().endswith("last words\n")
            second.communicate(timeout=LIMIT_S)
        first.stdin = None
    run = load(out)
    assert run.manifest.state == "complete"
    assert store.read(run, "step").num_rows == 7
