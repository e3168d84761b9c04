"""What the code under test says is passed on up to the guard that gives the log its commands back, never behind it."""

import importlib.util
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from action_steps import ROOT, executable


@pytest.fixture
def gate(monkeypatch):
    spec = importlib.util.spec_from_file_location("pipeprof_gate_action", ROOT / "ci" / "gate.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


class Stdout:
    """Takes its time for each line."""

    def __init__(self):
        self.begun, self.lines, self.buffer = threading.Event(), [], self

    def write(self, text):
        self.begun.set()
        time.sleep(0.05)
        self.lines.append(text)

    def flush(self):
        pass


def test_a_line_that_is_being_passed_on_is_out_before_the_log_is_closed(gate, monkeypatch):
    stdout, log = Stdout(), gate.Log()
    monkeypatch.setattr(gate, "sys", SimpleNamespace(stdout=stdout))
    endless = SimpleNamespace(readline=lambda _most: b"::error::late\n")
    reader = threading.Thread(target=log.pass_on, args=(endless,))
    reader.start()
    stdout.begun.wait()
    log.close()
    passed = len(stdout.lines)
    reader.join()
    assert len(stdout.lines) == passed > 0


def test_the_log_has_the_guards_and_what_they_stand_around_on_one_stream(gate, monkeypatch, tmp_path, capfd):
    said = "#!/bin/sh\nprintf '::error::out\\n'\nprintf '::error::\\303\\251\\377' >&2\n"
    program = executable(tmp_path / "pipeprof", said)
    monkeypatch.setattr(gate, "program", lambda: str(program))

    code, tail = gate.run(["any"], None)

    out, err = capfd.readouterr()
    first, *between, last = out.splitlines()
    assert (code, err) == (0, "")
    assert between == ["::error::out", "::error::\u00e9\ufffd"] == tail.splitlines()
    assert first == f"::stop-commands::{last.strip(':')}"
