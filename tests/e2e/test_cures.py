"""MindSpore and NumPy as `pip install 'pipeprof[mindspore]'` gives them, and trainings that end for a lack whose cure is known."""

import subprocess

import pytest
from conftest import PYTHON, WORKLOADS, clean_environment


@pytest.mark.mindspore
def test_the_versions_that_a_user_gets_go_together():
    done = subprocess.run(
        [PYTHON, WORKLOADS / "numpy_versions.py"], capture_output=True, text=True, env=clean_environment()
    )
    assert done.returncode == 0, done.stderr
    version, *numbers = done.stdout.split()
    assert version.startswith("1."), "the extra `mindspore` keeps NumPy below 2"
    assert [float(number) for number in numbers] == [1, 1, 1, 0.5, 0.5, 0.5, 1, 1, 1, 0, 1, 2]


def test_a_training_that_finds_no_openmp_library_is_told_the_cure(pipeprof, tmp_path):
    """The same of a MindSpore that cannot be imported, in a process that the command starts."""
    folder = tmp_path / "app"
    folder.mkdir()
    lacking = "libgomp.so.1: cannot open shared object file: No such file or directory"
    (folder / "mindspore.py").write_text(f"raise ImportError({lacking!r})\n", encoding="utf-8")
    (folder / "train.py").write_text("import mindspore\n", encoding="utf-8")
    starter = folder / "start.py"
    starter.write_text(
        f"import subprocess, sys\nsubprocess.run([sys.executable, {str(folder / 'train.py')!r}], check=True)\n",
        encoding="utf-8",
    )
    recording = pipeprof.collect([PYTHON, str(starter)])
    assert recording.done.returncode == 1
    hints = [line for line in recording.done.stderr.splitlines() if line.startswith("hint: ")]
    assert len(hints) == 1
    assert "apt install libgomp1" in hints[0]
    assert recording.warned()["openmp"] == hints[0].removeprefix("hint: ")


def test_a_training_that_dies_of_numpy_2_is_told_the_cure(pipeprof, tmp_path):
    """MindSpore and NumPy are stand-ins: what counts is what they say of themselves, and how the script ends."""
    folder = tmp_path / "app"  # not where pipeprof itself starts
    folder.mkdir()
    for name, version in {"mindspore": "2.10.0", "numpy": "2.4.6"}.items():
        (folder / f"{name}.py").write_text(f'__version__ = "{version}"\n', encoding="utf-8")
    script = folder / "train.py"
    script.write_text("import numpy\nimport mindspore\nraise SystemError('returned a result with an exception set')\n")
    recording = pipeprof.collect([PYTHON, str(script)])
    assert recording.done.returncode == 1
    hints = [line for line in recording.done.stderr.splitlines() if line.startswith("hint: ")]
    assert len(hints) == 1
    assert "pip install 'numpy<2'" in hints[0]
    assert "NumPy 2.4.6" in hints[0]
    assert recording.warned()["numpy"] == hints[0].removeprefix("hint: ")
