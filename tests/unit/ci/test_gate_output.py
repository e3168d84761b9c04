"""What the code under test says is passed on up to the guard that gives the log its commands back, never behind it."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from action_steps import ROOT


@pytest.fixture
def gate(monkeypatch):
    spec = importlib.util.spec_from_file_location("pipeprof_gate_action", ROOT / "ci" / "gate.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


class Stderr:
    """Takes its time for each line."""

    def __init__(self):
        self.begun, self.lines = threading.Event(), []

    def write(self, text):
        self.begun.set()
        time.sleep(0.05)
        self.lines.append(text)

    def flush(self):
        pass


def test_a_line_that_is_being_passed_on_is_out_before_the_log_is_closed(gate, monkeypatch):
    stderr, log = Stderr(), gate.Log()
    monkeypatch.setattr(gate, "sys", SimpleNamespace(stderr=stderr))
    endless = SimpleNamespace(readline=lambda _most: b"::error::late\n")
    reader = threading.Thread(target=log.pass_on, args=(endless,))
    reader.start()
    stderr.begun.wait()
    log.close()
    passed = len(stderr.lines)
    reader.join()
    assert len(stderr.lines) == passed > 0
