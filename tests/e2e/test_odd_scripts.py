"""Scripts that do odd things write the same files, print the same and end alike, with and without a recording."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import odd_scripts
import pytest
from conftest import LIMIT_S, WORKLOADS

WAIT_S = 0.05
ADDRESS = re.compile(rb"0x[0-9a-f]+")


def ended(pipeprof, folder, name, *, training, is_recorded):
    """How the script ended, what it printed, and its files by name: where nothing is recorded, and where it is."""
    folder.mkdir(parents=True)
    path = folder.parent / "script.py"
    path.write_text(odd_scripts.source(name, training=training, workloads=WORKLOADS), encoding="utf-8")
    command = [pipeprof.python, str(path)]
    # A limit on the size of files would cut off bytecode that Python stores, of modules of the environment, too.
    how = {"cwd": folder, "text": False, "env": pipeprof.environment(PYTHONDONTWRITEBYTECODE="1")}
    done = pipeprof.collect(command, "-q", **how).done if is_recorded else pipeprof.plain(command, **how)
    if '"last"' in path.read_text(encoding="utf-8").rpartition("def exhaust")[2]:
        end = time.monotonic() + LIMIT_S
        while not (folder / "last").exists():
            assert time.monotonic() < end
            time.sleep(WAIT_S)
    files = {file.name: read(file) for file in sorted(folder.iterdir()) if file.is_file()}
    return {"code": done.returncode, "stdout": done.stdout, "files": files}, done.stderr


def read(file):
    file.chmod(0o600)  # a script may have hidden it
    return file.read_bytes()


def test_there_are_sixty_scripts_and_twenty_trainings():
    assert len(odd_scripts.PLAIN) + len(odd_scripts.TRAINING) >= 60
    assert len(odd_scripts.TRAINING) >= 20


@pytest.mark.parametrize("name", odd_scripts.PLAIN)
def test_an_odd_script_is_the_same_with_and_without_a_recorder(pipeprof, tmp_path, name):
    plain, errors = ended(pipeprof, tmp_path / "plain", name, training=False, is_recorded=False)
    recorded, recorded_errors = ended(pipeprof, tmp_path / "other", name, training=False, is_recorded=True)
    assert recorded == plain
    assert ADDRESS.sub(b"", recorded_errors) == ADDRESS.sub(b"", errors)
    assert plain["files"] or plain["stdout"] or errors


@pytest.mark.slow
@pytest.mark.mindspore
@pytest.mark.parametrize("name", odd_scripts.TRAINING)
def test_an_odd_training_is_the_same_with_and_without_a_recording(pipeprof, tmp_path, name):
    with ThreadPoolExecutor() as pool:
        how = {"training": True}
        first = pool.submit(ended, pipeprof, tmp_path / "a" / "plain", name, is_recorded=False, **how)
        second = pool.submit(ended, pipeprof, tmp_path / "b" / "other", name, is_recorded=True, **how)
    (plain, _), (recorded, errors) = first.result(), second.result()
    assert recorded == plain, errors[-3000:]
    assert "losses" in plain["files"]
