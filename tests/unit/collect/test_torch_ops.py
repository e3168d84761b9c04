"""The op recorder of PyTorch: one profiler at a time, quiet, still while a process is forked, and on the CPU alone."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest


class Profile:
    """Stands in for `torch.profiler.profile`: how it was made and what became of it."""

    made: ClassVar[list] = []
    size = 2

    def __init__(self, **options):
        self.said, self.shapes = ["made"], options["record_shapes"]
        Profile.made.append(self)

    def start(self):
        self.said.append("start")

    def stop(self):
        self.said.append("stop")

    def export_chrome_trace(self, path):
        Path(path).write_text(json.dumps({"traceEvents": []}).ljust(Profile.size))


@pytest.fixture
def torch(probe, rec, monkeypatch):
    monkeypatch.setattr(Profile, "made", [])
    module = SimpleNamespace(profile=Profile, ProfilerActivity=SimpleNamespace(CPU=0))
    monkeypatch.setitem(sys.modules, "torch.profiler", module)
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils", raising=False)
    hooks = {}
    monkeypatch.setattr(probe.recorder, "at_fork", lambda **calls: [hooks.setdefault(*one) for one in calls.items()])
    monkeypatch.setattr(probe.recorder, "at_exit", lambda _call: None)
    yield SimpleNamespace(forks=hooks, module=module)
    probe.windows.WINDOWS.pause()  # no line is watched any more
    sys.settrace(None)


def stepped(probe, count):
    for _ in range(count):
        probe.windows.WINDOWS.step_done()


def test_windows_begin_with_the_step_behind_the_first_update_and_kineto_is_told_to_be_quiet_meanwhile(
    probe, rec, torch, told, monkeypatch
):
    levels = []
    monkeypatch.delenv("KINETO_LOG_LEVEL", raising=False)
    monkeypatch.setattr(probe.torch_ops.os, "putenv", lambda name, value: levels.append((name, value)))
    monkeypatch.setattr(probe.torch_ops.os, "unsetenv", levels.append)
    rec.options["schedule"] = {"active": 2, "repeat": 1}
    probe.torch_ops.prepare("cpu")
    assert Profile.made == []
    stepped(probe, 4)
    (made,) = Profile.made
    assert made.said == ["made", "start", "stop"]
    assert levels == [("KINETO_LOG_LEVEL", "99"), "KINETO_LOG_LEVEL"]
    assert "KINETO_LOG_LEVEL" not in os.environ
    assert [len(event["ticks"]) for event in told("window")] == [3]
    assert Path(rec.folder, "window-1", "torch-1.json").exists()


@pytest.mark.parametrize(
    ("executions", "steps", "shapes"),
    [(0, 3, True), (9_000, 3, True), (30_000, 3, False), (50_000, 2, False), (200_000, 1, False)],
)
def test_the_step_that_runs_by_line_says_how_many_executions_a_step_has(
    probe, rec, torch, told, monkeypatch, executions, steps, shapes
):
    """What it launches is only counted: of steps with very many fewer are recorded, without shapes."""
    monkeypatch.setattr(Profile, "size", 2 + 400 * executions)
    probe.torch_ops.prepare("cpu")
    stepped(probe, 2)
    counted, first = Profile.made
    assert (counted.shapes, counted.said) == (False, ["made", "start", "stop"])
    stepped(probe, 4)
    assert (first.shapes, first.said) == (shapes, ["made", "start", "stop"])
    assert [(event["warmup"], len(event["ticks"]) - 1) for event in told("window")] == [(1, 1), (0, steps)]


def test_where_a_device_computes_no_window_is_taken_and_that_is_said(probe, rec, torch):
    probe.torch_ops.prepare("cuda")
    rec.open()
    stepped(probe, 4)
    assert (Profile.made, rec._warned) == ([], {"ops_off"})


def test_it_stands_still_while_a_process_is_forked_and_the_child_has_none(probe, rec, torch):
    probe.torch_ops.prepare("cpu")
    stepped(probe, 1)
    torch.forks["before"]()
    assert Profile.made[0].said == ["made", "start", "stop"]
    torch.forks["after_in_parent"]()
    assert Profile.made[1].said == ["made", "start"]
    assert [path.name for path in Path(rec.folder, "window-1").iterdir()] == ["torch-1.json"]
    torch.forks["after_in_child"]()
    probe.windows.WINDOWS.pause()
    assert Profile.made[1].said == ["made", "start"]


def test_the_programs_own_profiler_ends_the_window_and_there_is_no_other(probe, rec, torch):
    own = type("Own", (), {"_prepare_trace": lambda _self: None, "__exit__": lambda _self, *_error: None})
    probe.profiler_guard.install_torch(SimpleNamespace(profile=own))
    probe.torch_ops.prepare("cpu")
    stepped(probe, 1)
    profile = own()
    profile._prepare_trace()
    assert Profile.made[0].said == ["made", "start", "stop"]
    assert probe.windows.USERS_PROFILES == [1]
    profile.__exit__(None, None, None)
    assert probe.windows.USERS_PROFILES == [0]
    stepped(probe, 60)
    assert (len(Profile.made), rec._warned) == (1, {"ops_left_to_user"})


def test_what_was_compiled_is_not_run_line_by_line(probe, torch, monkeypatch):
    assert probe.torch_ops.is_eager()
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(counters={"frames": {"total": 1}}))
    assert not probe.torch_ops.is_eager()
