"""Which line made a process: noted however Python makes it, and never in the way."""

import subprocess
import sys

import pytest

BEGIN = "import_module('_pipeprof_probe.forks').install()\nimport multiprocessing as mp, subprocess\n"
CLASS = "class Writer(mp.get_context('fork').Process):\n    def run(self): pass\n"


@pytest.fixture
def origins(script, tmp_path):
    """Runs a script and returns its lines: (dataset, what, line of the script, library)."""

    def run(text):
        path = tmp_path / "made.py"
        path.write_text(script + BEGIN + text, encoding="utf-8")
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, timeout=60)
        assert done.stderr == ""
        file = tmp_path / "spool" / "forks.tsv"
        rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
        lines = path.read_text(encoding="utf-8").splitlines()
        places = [row[5].rpartition(":") for row in rows]
        made = [lines[int(line) - 1] if file == str(path) else file for file, _, line in places]
        return [(row[3], row[4], line, row[6]) for row, line in zip(rows, made, strict=True)]

    return run


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("p = mp.get_context('fork').Process(target=print); p.start(); p.join()", "print"),
        ("p = Writer(); p.start(); p.join()", "Writer"),
        ("subprocess.run(['true'])", ""),
        ("os.fork() or os._exit(0)", ""),
        ("os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)", ""),
    ],
)
def test_the_line_that_made_it_and_what_it_is(origins, call, what):
    assert origins(CLASS + call) == [("0", what, call, "")]


def test_a_library_in_between_is_told_too(origins, tmp_path):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "recorder_of_things.py").write_text("import os\ndef start():\n    os.fork() or os._exit(0)\n")
    call = "recorder_of_things.start()"
    text = f"sys.path.insert(0, {str(folder)!r})\nimport recorder_of_things\n{call}\n"
    assert origins(text) == [("0", "", call, f"{folder / 'recorder_of_things.py'}:3")]


def test_processes_of_the_dataset_package_are_marked(origins, tmp_path):
    package = tmp_path / "mindspore" / "dataset"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package / "made.py").write_text("import os\ndef start():\n    os.fork() or os._exit(0)\n")
    text = f"sys.path.insert(0, {str(tmp_path)!r})\nfrom mindspore.dataset import made\nmade.start()\n"
    assert [row[0] for row in origins(text)] == ["1"]


def test_a_child_of_a_child_has_its_own_line(origins):
    text = "if not os.fork():\n    os.fork()\n    os._exit(0)\nos.wait()\n"
    assert [row[2].strip() for row in origins(text)] == ["if not os.fork():", "os.fork()"]


def test_lines_are_not_written_without_end(origins):
    text = "import_module('_pipeprof_probe.forks').MOST = 3\nfor _ in range(9):\n    os.fork() or os._exit(0)\n"
    assert len(origins(text)) <= 9  # each child counts on from its parent's number


def test_a_program_that_does_not_exist_fails_as_it_does_without_us_and_a_spool_that_is_gone_is_no_error(origins):
    origins("try:\n    subprocess.run(['no-such'])\nexcept FileNotFoundError as e:\n    assert 'no-such' in str(e)\n")
    assert origins("import shutil; shutil.rmtree(REC.root)\nos.fork() or os._exit(0)\n") == []
