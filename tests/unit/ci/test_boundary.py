"""What no test may do makes a test fail: each kind is done by a small test, in a session of their own."""

import os
import re
import shutil
import subprocess
import sys

import boundary
import pytest
from action_steps import ROOT
from copies import copy_file
from every import every

OUTSIDE = "/no-test-writes-here"
DEEDS = {
    "opens": (f"open({OUTSIDE!r}, 'w')", f"changed {OUTSIDE}"),
    "catches": (f"try:\n    open({OUTSIDE!r}, 'a')\nexcept Exception:\n    pass", f"changed {OUTSIDE}"),
    "makes_a_folder": (f"pathlib.Path({OUTSIDE!r}).mkdir()", f"changed {OUTSIDE}"),
    "makes_a_folder_below_another": ("pathlib.Path('/no-test-writes-here/a').mkdir(parents=True)", f"changed {OUTSIDE}"),
    "moves": (f"os.rename(tmp_path, {OUTSIDE!r})", f"changed {OUTSIDE}"),
    "removes": (f"os.remove({OUTSIDE!r})", f"changed {OUTSIDE}"),
    "source_tree": ("pathlib.Path(__file__).with_name('new').touch()", "/tests/new"),
    "working_folder": ("open('new', 'w').close()", "/new"),
    "home_by_child": ("subprocess.run(['sh', '-c', 'echo x > ~/new'])", "there is a new new in the home folder"),
    "system": ("subprocess.run(['sh', '-c', 'apt-get install -y x'])", "called apt-get install -y x"),
    "module": ("subprocess.run([sys.executable, '-m', 'pip', 'install', '--no-index', 'no-such-module'])", "No matching distribution"),
    "pip": ("subprocess.run(['pip', 'install', 'x'])", "called pip install x"),
    "npm": ("subprocess.run(['npm', 'install'])", "called npm install"),
    "unpack": ("subprocess.run('tar -xJf a.tar.xz', shell=True)", "called tar -xJf a.tar.xz"),
    "download": ("try:\n    socket.create_connection(('192.0.2.1', 80), timeout=0.01)\nexcept OSError:\n    pass", "connected to 192.0.2.1"),
}  # fmt: skip
STAYS = "try:\n    open('/no/such/folder/a', 'w')\nexcept FileNotFoundError:\n    pass\n(tmp_path / 'a').mkdir()\n(tmp_path / 'a' / 'b').touch()\nshutil.rmtree(tmp_path / 'a')\nsubprocess.run(['sh', '-c', 'echo x > \"$0\"', tmp_path / 'b'], check=True)"
CHILD = "subprocess.run(['sh', '-c', 'echo x > left'])"


def text_of(name, body):
    return f"def test_{name}(tmp_path):\n" + "".join(f"    {line}\n" for line in body.splitlines()) + "\n\n"


def session(root, bodies, *options):
    """A session of tests of these bodies in a source tree of their own: how it ended."""
    (root / "tests").mkdir(parents=True)
    copy_file(ROOT / "tests" / "boundary.py", root / "tests")
    (root / "tests" / "conftest.py").write_text("pytest_plugins = ['boundary']\n")
    (root / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider -p no:randomly --tb=short -rA\n")
    imports = "import os, pathlib, shutil, socket, subprocess, sys\n\n\n"
    tests = "".join(text_of(name, body) for name, body in bodies.items())
    (root / "tests" / "test_it.py").write_text(imports + tests)
    words = [sys.executable, "-m", "pytest", "-q", *options, "tests"]
    return subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", params=[(), ("-n", "1")], ids=["alone", "worker"])
def done(request, tmp_path_factory):
    bodies = {name: body for name, (body, _) in DEEDS.items()}
    return session(tmp_path_factory.mktemp("tree") / "root", {"stays": STAYS, **bodies}, *request.param)


def part(done, name):
    """What pytest says of an error at the end of a test; "" for none."""
    found = re.search(rf"(?ms)^_+ ERROR at teardown of test_{name} _+$(.*?)^[_=]{{5,}}", done.stdout)
    return found.group(1) if found else ""


def test_a_test_that_stays_inside_passes_and_nothing_of_what_others_tried_was_done(done):
    assert "PASSED tests/test_it.py::test_stays" in done.stdout
    assert part(done, "stays") == ""
    assert done.returncode == 1
    assert "left files" not in done.stdout


@every(DEEDS)
def test_what_a_test_may_not_do_is_an_error(name, done):
    assert f"ERROR tests/test_it.py::test_{name}" in done.stdout, done.stdout
    assert DEEDS[name][1] in part(done, name)


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "worker"])
def test_what_a_child_left_in_the_source_tree_ends_the_session_as_failed(tmp_path, options):
    done = session(tmp_path / "root", {"child": CHILD}, *options)
    assert done.returncode == 1, done.stdout
    assert "1 passed" in done.stdout
    assert f"the tests left files in the source tree =\n{tmp_path}/root/left" in re.sub("=+", "=", done.stdout)


def test_these_tests_are_held_to_it():
    shared = os.environ[boundary.SHARED]
    assert os.environ["HOME"].startswith(shared)
    assert all(shutil.which(name).startswith(shared) for name in boundary.STAND_INS)
