"""The command, and signals that come while it ends."""

from __future__ import annotations

import signal
import threading

from pipeprof.collect import launch
from pipeprof.collect.launch import ProbeOptions, run_command


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
