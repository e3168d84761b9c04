"""What `make` looks at before it downloads anything, and how big what it installs is."""

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from action_steps import ROOT, executable, load_tool
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SCRIPT = ROOT / "tools" / "preflight.py"
EXTRAS = {"demo": ("mindspore",), "test": ("mindspore", "test"), "check": ("mindspore", "test", "dev", "docs")}
GB = 1e9


@pytest.fixture
def preflight(monkeypatch, tmp_path):
    """The script, on a machine whose disks are of `tmp_path` alone and have room."""
    module = load_tool("preflight")
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path))
    return module


def free(monkeypatch, preflight, gigabytes):
    found = SimpleNamespace(f_bavail=int(gigabytes * 1e6), f_frsize=1000)
    monkeypatch.setattr(preflight.os, "statvfs", lambda _: found)


@pytest.mark.parametrize(("version", "fits"), [
    ((3, 9, 18), False), ((3, 10, 0), True), ((3, 11, 2), True), ((3, 12, 3), True), ((3, 13, 0), False),
])  # fmt: skip
def test_the_version_of_python(preflight, version, fits):
    problems = preflight.python(version)
    assert (problems == []) == fits
    for error, hint in problems:
        assert ".".join(map(str, version)) in error
        assert "3.10 to 3.12" in error
        assert "PYTHON=" in hint


def test_the_versions_are_those_of_the_package_and_a_python_that_is_too_old_can_read_it(preflight):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest, after = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', text).groups()
    assert ((3, int(oldest)), (3, int(after) - 1)) == (preflight.OLDEST, preflight.NEWEST)
    ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 5))


@pytest.mark.parametrize(("text", "expected"), [
    ('ID=debian\nVERSION_ID="12"\n', "debian"),
    ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "ubuntu"),
    ('NAME="Fedora Linux"\nID=fedora\n', "fedora"),
    ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "rhel"),
    ("ID=alpine\n", "alpine"),
    ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "suse"),
    ("ID=nixos\n", ""),
    ("", ""),
])  # fmt: skip
def test_the_distribution_is_known_by_its_name_or_by_what_it_is_like(preflight, tmp_path, text, expected):
    path = tmp_path / "os-release"
    path.write_text(text, encoding="utf-8")
    assert preflight.system(str(path)) == expected
    assert preflight.system(str(tmp_path / "none")) == ""


@pytest.mark.parametrize(("family", "hint"), [
    ("debian", "apt install libgomp1"), ("fedora", "dnf install libgomp"), ("alpine", "apk add libgomp"),
    ("", "install the package that has libno-such-library.so.1"),
])  # fmt: skip
def test_a_missing_openmp_library_is_named_with_its_package(preflight, monkeypatch, family, hint):
    monkeypatch.setattr(preflight, "OPENMP", "libno-such-library.so.1")
    ((error, said),) = preflight.openmp(family)
    assert "libno-such-library.so.1" in error
    assert said == hint
    monkeypatch.setattr(preflight, "OPENMP", "libc.so.6")
    assert preflight.openmp(family) == []


@pytest.mark.parametrize(("python", "family", "hint"), [
    ("/usr/bin/python3", "debian", "apt install python{}.{}-venv".format(*sys.version_info)),
    ("/usr/bin/python3", "fedora", "install them for this Python"),
    ("/opt/python/bin/python3", "debian", "install them for this Python"),
])  # fmt: skip
def test_what_makes_environments_may_be_a_package_of_its_own(preflight, monkeypatch, python, family, hint):
    monkeypatch.setattr(preflight.sys, "executable", python)
    monkeypatch.setattr(preflight.os.path, "realpath", lambda path: path)
    monkeypatch.setattr(preflight.importlib.util, "find_spec", lambda name: None if name == "ensurepip" else name)
    ((error, said),) = preflight.environment(family)
    assert "no module `ensurepip`" in error
    assert said == hint


def test_disk_space_counts_what_lies_on_the_same_disk_once_and_not_what_is_installed(preflight, monkeypatch, tmp_path):
    venv = tmp_path / "deep" / ".venv"
    _, installed, downloaded = preflight.SIZES["demo"]
    least = (installed + preflight.SPARE + 2 * downloaded) / GB
    free(monkeypatch, preflight, least + 0.01)
    assert preflight.disk("demo", str(venv)) == []
    free(monkeypatch, preflight, least - 0.01)
    ((error, hint),) = preflight.disk("demo", str(venv))
    assert f"expected {least:.1f} GB" in error
    assert all(name in hint for name in ("VENV", "TMPDIR", "PIP_CACHE_DIR"))
    for folder in (venv, tmp_path / "cache"):
        folder.mkdir(parents=True)
        with (folder / "sparse").open("wb") as file:
            file.truncate(int(10 * GB))
    free(monkeypatch, preflight, downloaded / GB + 0.01)  # of the temporary folder
    assert preflight.disk("demo", str(venv)) == []


def test_all_that_is_missing_is_said_at_once_and_the_exit_code_is_1(preflight, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(preflight, "OPENMP", "libno-such-library.so.1")
    free(monkeypatch, preflight, 1)
    monkeypatch.setattr(sys, "argv", ["preflight", "demo", "--venv", str(tmp_path)])
    assert preflight.main() == 1
    said = capsys.readouterr().err
    assert (said.count("error: "), said.count("hint: ")) == (2, 2)
    assert said.endswith("Nothing was downloaded.\n")


@pytest.mark.parametrize("target", ["demo", "test-together", "lint"])
def test_make_installs_nothing_where_something_is_missing(tmp_path, target):
    """A Python that is too old stands before all: it notes how it is called."""
    python = executable(tmp_path / "python", f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\nexit 1\n')
    done = make(target, f"PYTHON={python}", f"VENV={tmp_path}/venv")
    assert done.returncode == 2
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert [call.split()[0] for call in calls] == ["tools/preflight.py"]
    assert not (tmp_path / "venv").exists()


def test_make_without_any_python_says_so(tmp_path):
    done = make("demo", "PYTHON=", f"VENV={tmp_path}/venv")
    assert done.returncode == 2
    assert "error: no Python was found, 3.10 to 3.12 is needed" in done.stderr


@pytest.mark.parametrize(("target", "purpose"), [
    ("demo", "demo"), ("test-together", "test"), ("test-trainings", "test"), ("slow-together", "test"), ("lint", "check"), ("wheel", "check"),
])  # fmt: skip
def test_each_target_installs_what_it_needs_and_no_more(tmp_path, target, purpose):
    said = make("--dry-run", target, "PYTHON=python3", f"VENV={tmp_path}/venv", "LOCKED=").stdout
    installs = re.findall(r'pip install --quiet -e "\.\[(.*)\]"', said)
    assert installs == [",".join(EXTRAS[purpose])]
    assert f"preflight.py {purpose} " in said


def make(*words):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(["make", *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60)


def resolved(extras):
    """{package: its distribution} of what is installed here and needed by pipeprof with these extras."""
    asked = [*PROJECT["dependencies"], *(text for name in extras for text in PROJECT["optional-dependencies"][name])]
    found, todo, seen = {"pipeprof": importlib.metadata.distribution("pipeprof")}, needed(asked, ()), set()
    while todo:
        name, wanted = entry = todo.pop()
        if entry not in seen:
            seen.add(entry)
            found[name] = importlib.metadata.distribution(name)
            todo += needed(found[name].requires or (), wanted)
    return found


def needed(texts, extras):
    """[(package, its extras)] of requirements, for this Python."""
    environments = [{"extra": extra} for extra in ("", *extras)]
    return [
        (canonicalize_name(requirement.name), tuple(sorted(requirement.extras)))
        for requirement in map(Requirement, texts)
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments))
    ]


def disk_bytes(distribution):
    paths = (distribution.locate_file(file) for file in distribution.files or ())
    return sum(path.stat().st_size for path in paths if path.exists())


@pytest.mark.parametrize("purpose", ["demo", "test"])
def test_the_sizes_that_are_told_are_those_of_what_is_resolved_and_the_readme_tells_the_same(preflight, purpose):
    """Within what another Python, or next month's versions, may change; not what a new dependency or extra would."""
    packages, installed, downloaded = preflight.SIZES[purpose]
    found = resolved(EXTRAS[purpose])
    assert abs(len(found) - packages) <= 4 + 0.05 * packages, sorted(found)
    assert 0.85 * installed <= sum(map(disk_bytes, found.values())) <= 1.15 * installed
    row = f"| `make {purpose}` | {packages} | {downloaded / GB:.1f} GB | {installed / GB:.1f} GB |"
    assert row in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split()), row
