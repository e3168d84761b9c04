"""The command, signals that come while it ends, and the process beside it that keeps what `pipeprof top` shows."""

import json
import shutil
import signal
import sys
import threading

import pytest

from pipeprof.collect import fingerprint, launch
from pipeprof.collect.launch import ProbeOptions, run_command
from pipeprof.collect.live import watched
from pipeprof.errors import UsageError


def test_a_signal_that_comes_when_the_command_has_just_ended_is_not_lost(tmp_path, monkeypatch):
    """Else the next repetition would begin."""
    write = launch._write

    def late(path, facts):
        write(path, facts)
        if path.name == "exit.json":
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    monkeypatch.setattr(launch, "_write", late)
    outcome = run_command(["true"], tmp_path, ProbeOptions(), 1.0)
    assert (outcome.status, outcome.interrupted) == (0, True)


def test_a_script_whose_interpreter_does_not_exist_is_refused_with_the_reason(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("#!/no/such/python\n", encoding="utf-8")
    script.chmod(0o755)
    with pytest.raises(UsageError, match="cannot start") as refused:
        run_command([str(script)], tmp_path, ProbeOptions(), 1.0)
    assert "an interpreter that exists" in refused.value.hint


@pytest.mark.parametrize(("before", "after", "kills"), [("oom_kill 3\n", "oom_kill 5\n", 2), ("nr_free 1\n", "", None)])
def test_it_is_counted_what_the_kernel_ended_for_lack_of_memory_meanwhile(tmp_path, monkeypatch, before, after, kills):
    counts = tmp_path / "vmstat"
    counts.write_text("pgfault 7\n" + before, encoding="ascii")
    monkeypatch.setattr(launch, "_VMSTAT", counts)
    monkeypatch.setattr(launch, "memory_events", lambda _pid: None)
    run_command(["sh", "-c", f"printf 'pgfault 9\\n{after!s}' > {counts}"], tmp_path, ProbeOptions(), 1.0)
    assert json.loads(tmp_path.joinpath("exit.json").read_text(encoding="utf-8"))["oom_kills"] == kills


@pytest.mark.parametrize("how", ["ulimit -t 7", "prlimit"])
def test_how_fast_the_machine_is_and_the_limit_of_cpu_time_that_the_command_had_at_its_end_are_told(tmp_path, how):
    own = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (7, 9))"
    command = [sys.executable, "-c", own] if how == "prlimit" else ["sh", "-c", how]
    run_command(command, tmp_path, ProbeOptions(), 1.0)
    before, after = (json.loads(tmp_path.joinpath(f"{name}.json").read_text("utf-8")) for name in ("launch", "exit"))
    assert 0 < before["calibration_ns"] < fingerprint.calibration_ns() * 100
    assert after["cpu_limit_s"] == 7
    assert 0 <= after["cpu_s"] < 7


def test_a_run_that_is_gone_at_the_end_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    run = tmp_path / "run"
    run.mkdir()
    with watched(run, tmp_path / "now.txt"):
        run.rmdir()
