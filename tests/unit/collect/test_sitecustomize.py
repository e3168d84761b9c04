"""How the probe enters a Python: quietly, first, and without displacing the user's own sitecustomize."""

import json

import pytest

from tests.unit.collect.conftest import python

TELL = "import sys; print([p for p in sys.path if 'probe' in p]); print(sys.modules['sitecustomize'].__file__)"


@pytest.fixture
def user(tmp_path):
    folder = tmp_path / "user"
    folder.mkdir()
    folder.joinpath("sitecustomize.py").write_text("print('the user was here')\n", encoding="utf-8")
    return folder


def test_the_users_own_sitecustomize_still_runs_and_is_the_one_in_sys_modules(user, spool):
    done = python("-c", TELL, path=[user], spool=spool)
    assert done.stdout == f"the user was here\n[]\n{user / 'sitecustomize.py'}\n"
    assert done.stderr == ""
    show = "import sys; print(sys.path)"
    plain = python("-c", show, path=[user], watched=False)
    assert python("-c", show, path=[user], spool=spool).stdout == plain.stdout != ""


def test_a_python_that_is_watched_leaves_one_line(spool):
    assert python("-c", "pass", spool=spool).returncode == 0
    (line,) = spool.joinpath("hello.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line).keys() == {"pid", "ppid"}
    assert sorted(path.name for path in spool.iterdir()) == ["hello.jsonl"]


def test_who_asks_whether_mindspore_is_installed_does_not_begin_its_import(tmp_path, spool):
    tmp_path.joinpath("mindspore").mkdir()
    tmp_path.joinpath("mindspore/__init__.py").write_text("__version__ = '2.9.0'\n", encoding="utf-8")
    look = (
        "import sys, time\nfrom importlib.util import find_spec\nassert find_spec('mindspore')\n"
        "asked = time.monotonic_ns()\nimport mindspore\n"
        "print(sys.modules['_pipeprof_probe.steps']._imports['mindspore']['begin'] >= asked)"
    )
    done = python("-c", look, path=[tmp_path], spool=spool)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_nothing_heavy_is_imported_into_the_users_process_and_without_a_spool_nothing_is_hooked(spool):
    heavy = "('mindspore', 'numpy', 'pipeprof', 'psutil', 'importlib.metadata')"
    for is_meant, where in ((f"m in {heavy}", spool), ("'pipeprof' in m", None)):
        done = python("-c", f"import sys; print([m for m in sys.modules if {is_meant}])", spool=where)
        assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("broken", [{"PIPEPROF_SPOOL": "/nowhere/at/all"}, {"PIPEPROF_OPTIONS": "{no json"}])
def test_a_probe_that_cannot_start_is_silent_and_the_script_runs(spool, broken):
    done = python("-c", "print('ran')", **({"PIPEPROF_SPOOL": str(spool)} | broken))
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


def test_when_debugging_a_probe_that_cannot_start_says_why():
    done = python("-c", "print('ran')", PIPEPROF_SPOOL="/nowhere/at/all", PIPEPROF_DEBUG="1")
    assert "FileNotFoundError" in done.stderr


def test_an_error_in_the_users_sitecustomize_looks_as_it_does_without_us(user, spool):
    user.joinpath("sitecustomize.py").write_text("import sys\nraise RuntimeError('mine')\n", encoding="utf-8")
    done = python("-c", "print('ran')", path=[user], spool=spool)
    assert done.stdout == "ran\n"
    assert "RuntimeError: mine" in done.stderr
