"""What the bare machine is made of, and what it finds afterwards. Its functions run here without root."""

import re
import subprocess

import pytest
from action_steps import ROOT

SCRIPT = ROOT / "tools" / "fresh_machine.sh"
HOME = "home/user"


def bash(text, **variables):
    """Runs text after the functions of the script."""
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nowhere", **variables}
    words = ["bash", "-c", f'source "$1"; {text}', "bash", SCRIPT]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def system(tmp_path):
    """Folders of a system with a clone."""
    for name in (f"{HOME}/pipeprof", "tmp", "usr/lib"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "usr/lib/old").write_text("1", encoding="utf-8")
    return tmp_path


def after(system, change, status=""):
    """What is found after the shell commands of `change`, and whether it is a failure."""
    done = bash(
        f"""as_user() {{ printf '%s' '{status}'; }}
        files_outside > "$FRESH_ROOT/tmp/before"
        cd "$FRESH_ROOT"; {change}
        leftovers; printf 'failed %d\\n' "${{#failed[@]}}" """,
        FRESH_ROOT=str(system),
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("change", [
    "true", f"mkdir -p {HOME}/.cache/pip; touch {HOME}/.cache/pip/x", "touch tmp/x", f"touch {HOME}/pipeprof/x",
])  # fmt: skip
def test_the_clone_tmp_and_the_cache_may_change(system, change):
    assert "git status: clean\nelsewhere: nothing\nfailed 0\n" in after(system, change)


@pytest.mark.parametrize(("change", "status", "named"), [
    (f"touch {HOME}/x", "", f"./{HOME}/x"), (f"mkdir -p {HOME}/.config/y", "", f"./{HOME}/.config/y"),
    ("echo 22 > usr/lib/old", "", "./usr/lib/old"), ("rm usr/lib/old", "", "./usr/lib/old"),
    (f"mkdir {HOME}/pipeprof2", "", f"./{HOME}/pipeprof2"), ("true", "?? left-over", "git status: ?? left-over"),
])  # fmt: skip
def test_what_is_new_or_changed_elsewhere_or_in_the_clone_is_a_failure(system, change, status, named):
    said = after(system, change, status)
    assert named in said
    assert said.endswith("failed 1\n")


def test_a_command_that_fails_is_a_failure_and_the_next_one_runs():
    done = bash('as_user() { echo "ran $*"; [ "$2" != demo ]; }; try make demo; try make test; echo "${failed[@]}"')
    assert re.findall(r"ran (.+)", done.stdout) == ["make demo", "make test"]
    assert done.stdout.endswith("make demo: exit code 1\n")


def test_only_the_way_to_packages_is_taken_over():
    given = {"PIP_INDEX_URL": "a", "SSL_CERT_FILE": "b", "https_proxy": "c", "NO_PROXY": "d"}
    others = {"PYTHONPATH": "x", "VENV": "x", "PIPEPROF_SPOOL": "x", "MY_PIP_": "x"}
    done = bash("way_variables | sort", **given, **others)
    assert done.stdout.splitlines() == sorted(f"{name}={value}" for name, value in given.items())


@pytest.mark.parametrize("words", [["--nonsense"], ["--demo", "extra"]])
def test_an_unknown_option_is_refused_before_anything_is_made(words):
    done = subprocess.run(["bash", SCRIPT, *words], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: unknown option {words[-1]}\nhint: ")


def test_the_bare_machine_has_what_the_readme_names_but_for_one_that_may_be_left_out_and_names_no_host():
    script = SCRIPT.read_text(encoding="utf-8")
    (named,) = re.findall(r"^apt install (.+)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    (packages,) = re.findall(r"^readonly PACKAGES=\((.+)\)$", script, re.MULTILINE)
    assert named.split() == packages.split()
    assert bash("without=libgomp1; packages").stdout == "python3,python3-venv,make,git,ca-certificates\n"
    assert re.findall(r"\w+://\w+", script) == []
