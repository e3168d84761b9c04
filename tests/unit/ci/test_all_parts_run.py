"""One failure hides no other: `.ci/run` runs its parts, and `make test` its halves, whatever became of those before."""

import os
import re
import shutil
import subprocess

import pytest
from action_steps import ROOT, executable
from copies import copy_file

# Stands for make and for python: notes how it was called, and fails where a word of FAILING is among its words.
NOTES = """#!/bin/sh
echo "$*" >> "$NOTED"
for word in $FAILING; do case " $* " in *" $word "*) echo "a line"; echo "FAILED tests/of.py of $word"; exit 2 ;; esac; done
"""
IN_TIME = ["slow-trainings", "test-alone", "slow-measures", "slow-together", "test-real", "test-torch"]
PARTS = ["sbom", "test-duckdb", "demo", "test", "test-wheel", *IN_TIME]
BESIDE, UNTIL = ["fresh-machine", "lint"], 2  # run beside the first of them
LINT = "lint, types, floors, site"


# What `.ci/run` starts besides: its tests have no other program, and so whatever the machine has makes no difference.
PROGRAMS = ("bash", "cat", "cut", "dirname", "grep", "head", "mktemp", "rm", "sh", "sleep", "tee")


@pytest.fixture
def noted(tmp_path):
    """`noted(command, failing)`: how a command ended, and each call of a stand-in, in order."""

    def run(command, cwd, failing="", path=os.environ["PATH"]):
        file = tmp_path / "noted"
        env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "VENV"))}
        env |= {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{path}", "NOTED": str(file), "FAILING": failing}
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=60)
        return done, file.read_text(encoding="utf-8").splitlines()

    return run


@pytest.fixture
def ci(tmp_path, noted):
    """`ci(failing)`: `.ci/run` with stand-ins for make, a browser and debootstrap; how it ended, and the targets that it asked for."""
    executable(tmp_path / "bin" / "make", NOTES)
    for name in ("chromium", "debootstrap"):
        executable(tmp_path / "bin" / name, NOTES)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).symlink_to(shutil.which(name))
    (tmp_path / "tree" / ".ci").mkdir(parents=True)
    copy_file(ROOT / ".ci" / "run", tmp_path / "tree" / ".ci" / "run")

    def run(failing=""):
        done, calls = noted(["bash", ".ci/run"], tmp_path / "tree", failing, programs)
        return done, [next(word for word in call.split() if not word.startswith("--")) for call in calls]

    return run


def check_order(targets):
    assert [target for target in targets if target not in BESIDE] == PARTS
    assert sorted(target for target in targets if target in BESIDE) == BESIDE
    until = targets.index(PARTS[UNTIL])
    assert all(targets.index(target) < until for target in BESIDE), "nothing that measures runs beside another part"


def without_environment(targets):
    """What was asked for beside it; it comes before all but the bare machine, which has its own."""
    at = next(number for number, target in enumerate(targets) if target.endswith("/venv/.pipeprof-installed"))
    assert targets[:at] in ([], ["fresh-machine"])
    return targets[:at] + targets[at + 1 :]


def test_ci_runs_every_part(ci):
    done, targets = ci()
    assert (done.returncode, done.stderr) == (0, "")
    check_order(without_environment(targets))
    assert done.stdout.count(" s  passed  ") == len(PARTS) + len(BESIDE) + 3  # two packages of Debian, the environment
    assert "failed" not in done.stdout


def test_ci_leaves_out_what_a_slow_machine_has_no_time_for_and_says_so(ci, monkeypatch):
    monkeypatch.setenv("CI_TIME_S", "0")
    done, targets = ci()
    assert (done.returncode, done.stderr) == (0, "")
    assert [target for target in targets if target in PARTS] == [part for part in PARTS if part not in IN_TIME]
    told = [line.rpartition("  ")[2] for line in done.stdout.splitlines() if "left out, for it was late" in line]
    assert told == [f"make {part}" for part in IN_TIME]


@pytest.mark.parametrize(("failing", "named"), [
    ("fresh-machine", ["make fresh-machine"]), ("types", [LINT]), ("demo", ["make demo"]), ("test", ["make test"]),
    ("slow-together test-torch", ["make slow-together", "make test-torch"]),
    (" ".join([*BESIDE, *PARTS]),
     [*(f"make {part}" for part in PARTS[:UNTIL]), "make fresh-machine", LINT, *(f"make {part}" for part in PARTS[UNTIL:])]),
])  # fmt: skip
def test_ci_goes_on_after_a_failure_and_names_it_at_the_end(ci, failing, named):
    done, targets = ci(failing)
    assert done.returncode == 1
    check_order(without_environment(targets))
    told = done.stdout.partition("\nfailed:\n")[2].splitlines()
    assert [line for line in told if line.startswith("  ")] == [f"  {name}" for name in named]
    # What made a part fail is told again, below its name.
    told = {line for line in told if not line.startswith("  ")}
    assert told == {f"FAILED tests/of.py of {word}" for word in failing.split()}
    assert done.stdout.count(" s  FAILED  ") == len(named)


@pytest.mark.parametrize("failing", ["", "update"])
def test_ci_installs_a_browser_where_there_is_none_and_goes_on_without_one(ci, tmp_path, failing):
    executable(tmp_path / "bin" / "apt-get", NOTES.replace("$*", "apt-get:$*", 1))
    (tmp_path / "bin" / "chromium").unlink()
    done, targets = ci(failing)
    check_order(without_environment([target for target in targets if not target.startswith("apt-get:")]))
    if failing:
        assert done.returncode == 1
        assert done.stdout.endswith("\nfailed:\n  browser\nFAILED tests/of.py of update\n")
        return
    assert (done.returncode, done.stderr) == (0, "")
    asked = [line for line in (tmp_path / "noted").read_text().splitlines() if line.startswith("apt-get:")]
    assert [line.split()[0] for line in asked] == ["apt-get:update", "apt-get:install"]
    assert asked[1].endswith(" chromium")


def test_ci_does_not_go_on_without_an_environment(ci, tmp_path):
    (tmp_path / "bin" / "make").write_text('#!/bin/sh\necho "$*" >> "$NOTED"\nexit 2\n', encoding="utf-8")
    done, targets = ci()
    assert done.returncode == 1
    assert without_environment(targets) == ["fresh-machine"]
    assert done.stdout.endswith("\nfailed:\n  install\n  make fresh-machine\n")


@pytest.fixture
def make(tmp_path, noted):
    """`make(target, failing)`: the real Makefile in an environment whose python is a stand-in."""
    venv = tmp_path / "venv"
    executable(venv / "bin" / "python", NOTES)
    (venv / ".test-installed").touch()

    def run(target, failing="", *words):
        done, calls = noted(["make", target, f"VENV={venv}", *words], ROOT, failing)
        return done, [call.removeprefix("-m pytest ") for call in calls]

    return run


EXPECTED = {
    "test": ["-m not slow and not real -n auto", "-m not slow and not real and not (alone or measures) -n auto --maxprocesses 2"],
    "test-slow": ["-m slow -n auto", "-m slow and not (alone or measures) -n auto --maxprocesses 2",
                  "-m slow and measures -n auto --maxprocesses 2", "-m not slow and not real and alone tests/e2e"],
}  # fmt: skip


def assert_begin(calls, target):
    assert len(calls) == len(EXPECTED[target])
    assert all(map(str.startswith, calls, EXPECTED[target])), calls


@pytest.mark.parametrize("words", [(), ("-j4",)])
@pytest.mark.parametrize("target", EXPECTED)
def test_make_runs_all_tests_one_part_after_the_other(make, target, words):
    done, calls = make(target, "", *words)
    assert done.returncode == 0, done.stderr
    assert_begin(calls, target)


@pytest.mark.parametrize("failing", ["loadfile", "2", "tests/e2e"])
def test_make_runs_all_tests_also_when_some_failed(make, failing):
    done, calls = make("test", failing)
    assert done.returncode == 2
    assert_begin(calls, "test")


def test_what_a_part_beside_says_is_shown_and_it_has_ended_before_anything_is_measured(ci, tmp_path):
    slow = 'case "$*" in *lint*) sleep 1; echo said by lint; echo ended >> "$NOTED" ;; esac\nfor word'
    (tmp_path / "bin" / "make").write_text(NOTES.replace("for word", slow, 1), encoding="utf-8")
    done, targets = ci()
    assert done.returncode == 0
    assert done.stdout.count("said by lint") == 1
    assert targets.index("ended") < targets.index("demo")


def test_the_slow_part_looks_into_every_file_with_a_slow_test(make):
    _, calls = make("slow-together")
    named = {word for word in calls[0].split() if word.endswith(".py")}
    marked = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if "pytest.mark.slow" in path.read_text(encoding="utf-8") and "e2e" not in path.parts
    }
    assert named >= marked - {"tests/unit/ci/test_all_parts_run.py"}
    assert len(marked) >= 25


def test_the_workflow_runs_the_same_parts_side_by_side():
    words = re.findall(r"run: (?:sudo )?make (.+)", (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    found = {word for line in words for word in line.split() if not word.startswith("--")}
    assert found == {"types", "floors", "site", "test-together", "test-trainings", *BESIDE, *PARTS} - {"test"}
