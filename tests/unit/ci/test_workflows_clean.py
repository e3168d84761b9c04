"""actionlint and zizmor have nothing to say about our workflows, the examples and the action."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from action_steps import ACTION, ROOT

WORKFLOWS = sorted([*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob("examples/github/*.yml")])
PINNED = re.compile(r"uses: (?:\./ci|[\w./-]+@[0-9a-f]{40})(?: #.*)?")


def tool(name):
    if name == "zizmor" and sys.version_info < (3, 11):
        pytest.skip("zizmor has no build for Python 3.10")
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    assert found, f"{name} is not installed; it is part of the extra `test`"
    return found


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)


def test_actionlint_is_clean():
    done = run(tool("actionlint"), "-no-color", "-shellcheck=", "-pyflakes=", *map(str, WORKFLOWS))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_zizmor_is_clean():
    done = run(tool("zizmor"), "--offline", "--no-progress", "--no-config", "-q", *map(str, [*WORKFLOWS, ACTION]))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_workflow_has_no_right_it_does_not_name(path):
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert content["permissions"] == {}
    for job in content["jobs"].values():
        if "uses" in job:  # a workflow of ours, which names its own limits
            assert (ROOT / job["uses"]).is_file()
        else:
            assert job["timeout-minutes"]
        assert "permissions" in job
        assert "pull_request_target" not in content[True]  # YAML 1.1 reads the key `on` so
    for line in path.read_text(encoding="utf-8").splitlines():
        if "uses: " in line and "uses: ./" not in line:
            assert PINNED.fullmatch(line.strip().removeprefix("- ")), line


def test_checks_find_what_they_are_for(tmp_path):
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    bad = folder / "bad.yml"
    bad.write_text("on: pull_request_target\njobs:\n  x:\n    runs-on: ubuntu-24.04\n    steps:\n"
                   "      - run: echo ${{ github.event.pull_request.title }}\n      - uses: actions/checkout@v4\n")  # fmt: skip
    assert run(tool("actionlint"), "-shellcheck=", str(bad)).returncode == 1
    assert run(tool("zizmor"), "--offline", "--no-config", "-q", str(bad)).returncode != 0
