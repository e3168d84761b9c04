"""However a recording ends, the run opens, says how it ended, and holds what happened before."""

import os
import shlex
import signal
import subprocess
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from conftest import LIMIT_S

from pipeprof.errors import RunError
from pipeprof.read.spool.finish import open_run
from pipeprof.record import store
from pipeprof.record.run import load
from pipeprof.report.build import build

pytestmark = pytest.mark.mindspore

MEMORY = 1 << 30  # of a training that is to be killed for lack of it
ADDRESSES = 6 << 30  # of one that is to get none any more
FLUSH_S = 0.1  # after so long the next step is written to disk


def told_steps(text):
    """(time, process id) of every step that the script told; a cut-off last line is left out."""
    lines = [line.split() for line in text.split("\n")[:-1] if line.startswith("step ")]
    return [(int(words[2]), int(words[3])) for words in lines]


def lost_steps_s(run, text):
    """Seconds between the last step that the script told and the last one in the run; 0 when none is missing."""
    told = [at for at, _ in told_steps(text)]
    zero = run.manifest.reps[0].zero_monotonic_ns
    rows = [row for row in store.read(run, "step").to_pylist() if row["kind"] != "eval"]
    assert told
    assert rows, "no steps at all in the run"
    assert len(rows) <= len(told) + 1
    if len(rows) >= len(told):
        return 0.0
    return (told[-1] - zero - rows[-1]["end_ns"]) / 1e9


def longest_step_s(text):
    return max(b - a for (a, _), (b, _) in pairwise(told_steps(text))) / 1e9


def may_be_lost_s(text):
    """What a kill may cost: what was not flushed yet. Twice the longest step of this run, for a step that was cut off."""
    return FLUSH_S + 2 * longest_step_s(text)


def read_until(launcher, steps):
    """The output until the script has told so many steps."""
    lines = []
    while sum(line.startswith("step ") for line in lines) < steps:
        line = launcher.stdout.readline().decode()
        assert line, "".join(lines) + launcher.stderr.read().decode()
        lines.append(line)
    return "".join(lines)


@pytest.mark.parametrize(
    ("how", "status", "state", "reason"),
    [
        ("exception", 1, "failed", "exited with code 1"),
        ("exit3", 3, "failed", "exited with code 3"),
        ("exit0", 0, "complete", None),
        ("_exit0", 0, "partial", "without its exit handlers"),
        ("_exit7", 7, "failed", "exited with code 7"),
        ("abort", -signal.SIGABRT, "partial", "SIGABRT"),
        ("segv", -signal.SIGSEGV, "partial", "SIGSEGV"),
    ],
)
def test_own_ending_is_passed_on_and_told(pipeprof, how, status, state, reason):
    recording = pipeprof.collect(pipeprof.script("endings.py", how, "40"))
    assert recording.done.returncode == status, recording.done.stderr
    assert recording.manifest.state == state
    assert reason is None if recording.manifest.reason is None else reason in recording.manifest.reason
    text = recording.done.stdout
    lost = lost_steps_s(recording.run, text)
    if how.startswith(("_exit", "abort", "segv")):
        since_last_mark_s = (
            recording.manifest.reps[0].ranks[0].missing_steps_s
        )  # which may be of a step that was cut off
        assert lost <= min(since_last_mark_s + longest_step_s(text), may_be_lost_s(text))
    else:
        assert lost == 0
        assert len(recording.training()) == 40


def ended_by(process, number):
    """Send a signal to the training once it has told some steps; its output and the status its parent ended with."""
    text = read_until(process, 60)
    os.kill(told_steps(text)[-1][1], number)
    rest, _ = process.communicate(timeout=LIMIT_S)
    return text + rest.decode(), process.returncode


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_signal_to_the_command_is_seen_by_the_caller_and_told(pipeprof, name):
    number = getattr(signal, name)
    command = pipeprof.script("endings.py", "sleep", "4000")
    plain = subprocess.Popen(command, env=pipeprof.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    _, expected = ended_by(plain, number)
    launcher, out = pipeprof.start(command)
    text, status = ended_by(launcher, number)
    assert status == expected < 0
    run = load(out)  # what the launcher itself wrote: nothing is recovered by opening it
    assert run.manifest.state == "partial"
    assert signal.Signals(-status).name in run.manifest.reason
    assert lost_steps_s(run, text) <= may_be_lost_s(text)


@contextmanager
def group_of_its_own(pipeprof, *args):
    launcher, out = pipeprof.start(pipeprof.script("endings.py", *args), start_new_session=True)
    try:
        yield launcher, out
    finally:
        with suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
        launcher.communicate(timeout=LIMIT_S)


def test_kill_of_the_whole_group_leaves_a_run_that_opens(pipeprof):
    with group_of_its_own(pipeprof, "sleep", "4000") as (launcher, out):
        text = read_until(launcher, 150)
        os.killpg(launcher.pid, signal.SIGKILL)
        text += launcher.stdout.read().decode()
        launcher.wait(timeout=LIMIT_S)
    assert load(out).manifest.state == "running"
    run = open_run(out)
    assert run.manifest.state == "partial"
    assert "launcher was killed" in run.manifest.reason
    assert lost_steps_s(run, text) <= may_be_lost_s(text)
    assert store.read(run, "queue").num_rows
    again = open_run(out)
    assert again.manifest == run.manifest
    assert store.read(again, "step") == store.read(run, "step")


def test_kill_of_the_launcher_alone_lets_the_command_finish(pipeprof):
    with group_of_its_own(pipeprof, "end", "200") as (launcher, out):
        text = read_until(launcher, 20)
        child = psutil.Process(told_steps(text)[-1][1])
        child.suspend()  # so that it cannot end before it was looked at
        os.kill(launcher.pid, signal.SIGKILL)
        launcher.wait(timeout=LIMIT_S)
        with pytest.raises(RunError, match="still being recorded"):
            open_run(out)
        child.resume()
        text += launcher.stdout.read().decode()
        child.wait(timeout=LIMIT_S)
    assert text.endswith("last words\n")
    run = open_run(out)
    assert run.manifest.state == "partial"
    assert "launcher was killed" in run.manifest.reason
    assert store.read(run, "step").num_rows == 200


def test_run_is_not_opened_while_it_is_recorded(pipeprof):
    with group_of_its_own(pipeprof, "sleep", "4000") as (launcher, out):
        read_until(launcher, 5)
        with pytest.raises(RunError, match="still being recorded"):
            open_run(out)
        done = pipeprof.run("report", str(out))
    assert done.returncode == 3
    assert done.stderr.splitlines()[0].startswith("error: ")


def test_dying_dataset_worker_ends_the_command_as_without_pipeprof(pipeprof):
    command = pipeprof.script("endings.py", "worker", "60")
    plain = pipeprof.plain(command)
    recording = pipeprof.collect(command)
    assert recording.done.returncode == plain.returncode != 0
    assert recording.manifest.state in ("partial", "failed")
    assert recording.manifest.reason
    assert lost_steps_s(recording.run, recording.done.stdout) <= may_be_lost_s(recording.done.stdout)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 300 KB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "pipeprof-e2e", folder], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot mount a small disk: {done.stderr.decode()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk_does_not_disturb_the_training(pipeprof, small_disk):
    recording = pipeprof.collect(
        pipeprof.script("endings.py", "end", "150"), "--queue-interval", "10", "--ops", "all", out=small_disk / "run"
    )
    assert recording.done.returncode == 0, recording.done.stderr
    assert len(told_steps(recording.done.stdout)) == 150
    assert recording.done.stdout.endswith("last words\n")
    assert "Traceback" not in recording.done.stderr
    manifest = load(small_disk / "run").manifest
    if manifest.state == "running":
        manifest = open_run(small_disk / "run").manifest
    assert manifest.state in ("partial", "failed")
    assert "space" in (manifest.reason or ""), manifest.reason


def test_disk_that_is_full_from_the_start_does_not_disturb_the_training(pipeprof, small_disk):
    with (small_disk / "ballast").open("wb") as file:
        file.write(bytes(300 * 1024 - 24 * 1024))
    recording = pipeprof.collect(pipeprof.script("endings.py", "end", "30"), out=small_disk / "run")
    assert recording.done.returncode == 0, recording.done.stderr
    assert len(told_steps(recording.done.stdout)) == 30
    assert "Traceback" not in recording.done.stderr
    assert load(small_disk / "run").manifest.state != "complete"


@pytest.fixture
def small_group():
    """The file that takes a process into a control group with 1 GiB of memory."""
    root = Path("/sys/fs/cgroup")
    version_1 = root.joinpath("memory", "memory.limit_in_bytes").is_file()
    folder = root / ("memory" if version_1 else "") / f"pipeprof-test-{os.getpid()}"
    try:
        folder.mkdir()
        folder.joinpath("memory.limit_in_bytes" if version_1 else "memory.max").write_text(str(MEMORY))
    except OSError as error:
        with suppress(OSError):
            folder.rmdir()
        pytest.skip(f"cannot make a control group with a limit of memory: {error}")
    with suppress(OSError):  # what swaps is not killed
        folder.joinpath("memory.memsw.limit_in_bytes" if version_1 else "memory.swap.max").write_text(
            str(MEMORY if version_1 else 0)
        )
    yield folder / "cgroup.procs"
    folder.rmdir()


def test_a_kill_by_the_kernel_for_lack_of_memory_is_told(pipeprof, small_group):
    train = shlex.join(pipeprof.script("endings.py", "memory", "60"))
    recording = pipeprof.collect(["sh", "-c", f"echo $$ > {small_group}; exec {train}"])
    assert recording.done.returncode == -signal.SIGKILL
    assert recording.manifest.reps[0].oom_kills == 1
    assert recording.manifest.state == "partial"
    screen = build(recording.run)["first_screen"]
    assert "when the kernel had no memory left" in screen["sentence"]
    assert "had not been written" in screen["sentence"]
    assert "lack of memory" in screen["action"]
    assert lost_steps_s(recording.run, recording.done.stdout) <= may_be_lost_s(recording.done.stdout)


def test_the_end_of_the_address_space_is_the_same_and_told(pipeprof):
    train = shlex.join(pipeprof.script("endings.py", "memory", "60"))
    command = ["sh", "-c", f"ulimit -v {ADDRESSES >> 10}; exec {train}"]
    plain = pipeprof.plain(command)
    recording = pipeprof.collect(command)
    assert recording.done.returncode == plain.returncode == 1
    assert "MemoryError" in plain.stderr
    assert recording.manifest.state == "failed"
    screen = build(recording.run)["first_screen"]
    assert screen["cause"].startswith("MemoryError")
    assert "lack of memory" in screen["action"]
    assert lost_steps_s(recording.run, recording.done.stdout) == 0
