"""What the demo says of two reports, without training."""

import json
import subprocess
import sys

import pytest

from pipeprof.errors import UsageError
from pipeprof.experiment import demo

MS = 1_000_000


def stage(op_id, name, work_ms, key="a"):
    return {
        "op_id": op_id, "op_type": "MapOp", "name": name, "workers": 1, "work_ns": work_ms * MS, "loop_rate": 25.0,
        "utilisation": work_ms / 40, "output_ratio": 0.25, "pipeline_key": key,
    }  # fmt: skip


def report(name, step_ms, work_ms, wait, kind="train"):
    pipelines = [("train", 9, "a"), ("eval", 99, "b")]
    return {
        "diagnosis": {
            "op_id": 1, "op_type": "MapOp", "op_name": name, "confidence": "high", "data_wait_share": wait,
        },
        "steps": {"summary": [{"kind": kind, "median_ns": step_ms * MS}]},
        "pipeline": {
            "pipelines": [{"role": role, "wait_ns": ns, "pipeline_key": key} for role, ns, key in pipelines],
            "load": [stage(1, name, work_ms), stage(-1, "training loop", 5.0), stage(0, "other", 900.0, "b")],
        },
    }  # fmt: skip


SLOW = report(demo.PLANTED, 40.0, 36.0, 0.685)


def line_of(text, words):
    (line,) = (line for line in text.splitlines() if words in line)
    return line.split()


def test_each_stage_is_shown_with_the_diagnosis_own_numbers_and_then_the_report(tmp_path, monkeypatch, capsys):
    started = []
    monkeypatch.setattr(demo.subprocess, "run", lambda command, **_how: started.append(command))
    demo._explain(tmp_path / "slow", SLOW)
    text = capsys.readouterr().out
    assert started == [[*demo.OURS, "report", str(tmp_path / "slow")]]
    (line,) = (line for line in text.splitlines() if line.strip().startswith(demo.PLANTED) and "%" in line)
    assert line.split() == [demo.PLANTED, "25.0", "%", "36.0", "ms", "1", "90.0", "%"]
    assert "training loop" not in text
    assert "other" not in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("$")) <= demo.WIDTH


def test_both_sides_show_the_work_of_the_same_operator(capsys):
    fixed = report("MaskFromMemory", 10.0, 0.5, 0.02)
    fixed["pipeline"]["load"].append(stage(2, "Rescale", 3.0))
    assert demo._compare(SLOW, fixed)
    text = capsys.readouterr().out
    assert line_of(text, "work of the mask")[-4:] == ["36.0", "ms", "500", "us"]
    assert "4.0 times as fast" in text


@pytest.mark.parametrize("step_ms", [38.0, 50.0])
def test_a_gain_that_may_be_chance_confirms_nothing(capsys, step_ms):
    assert not demo._compare(SLOW, report("MaskFromMemory", step_ms, 0.5, 0.5))
    assert "not confirmed" in capsys.readouterr().out


def test_a_training_that_was_stopped_in_its_warm_up_confirms_nothing(capsys):
    assert not demo._compare(SLOW, report("MaskFromMemory", 9.0, 0.5, 0.02, kind="warmup"))
    assert line_of(capsys.readouterr().out, "median step")[-3:] == ["40.0", "ms", "-"]


def test_it_runs_this_pipeprof_whatever_the_current_folder_holds(tmp_path, monkeypatch):
    tmp_path.joinpath("pipeprof.py").write_text("open('ran', 'w')\n", encoding="utf-8")
    if "-P" in demo.SAFELY:
        done = subprocess.run([*demo.OURS, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stdout.startswith("pipeprof")
        assert not tmp_path.joinpath("ran").exists()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SAFELY", ("-m",))  # as in Python 3.10
    with pytest.raises(UsageError, match=r"has a `pipeprof\.py`"):
        demo._refuse_another_pipeprof()


def test_both_trainings_and_both_reports_are_started_so(tmp_path, monkeypatch):
    started, told = [], json.dumps(SLOW | {"steps": {"summary": [{"kind": "train", "steps": demo.STEPS}]}})

    def run(command, **_how):
        started.append(command)
        return subprocess.CompletedProcess(command, 0, told)

    monkeypatch.setattr(demo.subprocess, "run", run)
    demo._train(tmp_path / "slow", "title", "map", 1.0, 15.0)
    assert all(command[: len(demo.OURS)] == list(demo.OURS) for command in started)
    at = started[0].index("--")
    assert started[0][started[0].index("--wait-ms") + 1] == "15"
    assert started[0][at + 1 :][: 1 + len(demo.SAFELY)] == [sys.executable, *demo.SAFELY]


def test_the_planted_wait_grows_with_what_else_runs(monkeypatch):
    monkeypatch.setattr(demo.os, "cpu_count", lambda: 2)
    waits = []
    for load in (0.0, 2.9, 6.0, 500.0):
        monkeypatch.setattr(demo.os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        waits.append(demo.WAIT_MS * demo._crowd())
    assert waits == [5.0, 5.0, 15.0, 60.0]
