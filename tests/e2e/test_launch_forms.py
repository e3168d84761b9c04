"""Whatever starts the training, it is found; where it cannot be, the run says so."""

import os
import stat
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from shebang import SHEBANG

TRAIN = Path(__file__).parent / "workloads" / "loops.py"
STYLE = "fixed_tensors"
STEPS = 7


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "__init__.py").write_text("", encoding="utf-8")
    code = f"import runpy, sys\nsys.path.insert(0, {str(TRAIN.parent)!r})\nsys.argv[1:] = [{STYLE!r}]\n"
    (folder / "train.py").write_text(f"{code}runpy.run_path({str(TRAIN)!r}, run_name='__main__')\n", encoding="utf-8")
    return folder


def executable(path, text):
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def commands(pipeprof, package, form):
    folder, python = package.parent, pipeprof.python
    code = (package / "train.py").read_text(encoding="utf-8")
    return {
        "script": lambda: [python, str(package / "train.py")],
        "name on the path": lambda: [Path(python).name, str(package / "train.py")],
        "module": lambda: [python, "-m", "mine.train"],
        "shebang": lambda: [executable(folder / "x.py", f"{SHEBANG}{code}")],
        "relative shebang": lambda: [
            "./" + Path(executable(folder / "x.py", f"#!/usr/bin/env {Path(python).name}\n{code}")).name
        ],
        "bash": lambda: ["bash", executable(folder / "run.sh", f'cd mine\n"{python}" train.py\n')],
        "exec": lambda: ["bash", "-c", f'exec "{python}" mine/train.py'],
        "subprocess": lambda: [
            python,
            "-c",
            f"import subprocess, sys; sys.exit(subprocess.call([{python!r}, 'mine/train.py']))",
        ],
        "code": lambda: [python, "-c", code],
        "safe path": lambda: [python, "-P", "-s", str(package / "train.py")],
        "unbuffered and optimised": lambda: [python, "-u", "-O", str(package / "train.py")],
    }[form]()


@pytest.mark.mindspore
@pytest.mark.parametrize("form", [
    "script", "name on the path", "module", "shebang", pytest.param("relative shebang", marks=pytest.mark.slow), "bash", pytest.param("exec", marks=pytest.mark.slow), "subprocess", pytest.param("code", marks=pytest.mark.slow),
    pytest.param("unbuffered and optimised", marks=pytest.mark.slow),
    pytest.param("safe path", marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="-P came with Python 3.11")),
])  # fmt: skip
def test_training_is_found(pipeprof, package, form):
    recording = pipeprof.collect(commands(pipeprof, package, form))
    assert recording.done.returncode == 0, recording.done.stderr
    assert len(recording.training()) == STEPS
    assert recording.manifest.state == "complete"


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_python_that_cannot_be_watched_is_told(pipeprof, flag):
    recording = pipeprof.collect([pipeprof.python, flag, "-c", "print('trained')"])
    assert recording.done.returncode == 0, recording.done.stderr
    assert recording.done.stdout == "trained\n"
    words = recording.done.stderr
    assert "watched" in words
    assert flag in words
    assert "watched" in {gap.what: gap.why for gap in recording.manifest.not_measured}["step"]


def test_command_without_python_says_that_nothing_was_seen(pipeprof):
    recording = pipeprof.collect(["true"])
    assert recording.done.returncode == 0
    assert "no Python of the command was watched" in recording.done.stderr


def test_python_without_mindspore_says_that_nothing_was_seen(pipeprof):
    recording = pipeprof.collect([pipeprof.python, "-c", "print(1)"])
    assert "no training was seen" in recording.done.stderr
    assert recording.rows("step") == []


@pytest.mark.mindspore
def test_two_trainings_one_after_the_other_are_both_there(pipeprof, package):
    word = f'"{pipeprof.python}" mine/train.py'
    recording = pipeprof.collect(["bash", "-c", f"{word} && {word}"])
    assert recording.done.returncode == 0, recording.done.stderr
    assert len(recording.training()) == 2 * STEPS
    rows = recording.training()
    assert [row["step"] for row in rows] == list(range(2 * STEPS))
    assert all(one["end_ns"] <= other["start_ns"] for one, other in pairwise(rows))


@pytest.mark.mindspore
@pytest.mark.skipif(
    not os.environ.get("PIPEPROF_E2E_OTHER_PYTHON"), reason="PIPEPROF_E2E_OTHER_PYTHON names no other MindSpore"
)
@pytest.mark.parametrize(
    "style", ["pynative_loop", "model_fit_with_eval", "jit_loop", "train_one_step_cell_in_graph_mode"]
)
def test_other_python_with_another_mindspore_is_recorded(pipeprof, style):
    recording = pipeprof.collect([os.environ["PIPEPROF_E2E_OTHER_PYTHON"], str(TRAIN), style])
    assert recording.done.returncode == 0, recording.done.stderr
    times = [at for kind, _, at in recording.truth() if kind == "train"]
    rows = recording.training()
    assert len(rows) == len(times)
    assert all(row["start_ns"] <= at <= row["end_ns"] for row, at in zip(rows, times, strict=True))
    assert recording.rows("op")
    assert recording.rows("queue")
    assert recording.manifest.fingerprint["mindspore"] != ""
