"""What CI and the comment's job install is fixed by hashes, fits pyproject.toml, and names no place to get it from."""

import re
import sys

import pytest
import yaml
from action_steps import ROOT
from every import every
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = ROOT / "ci" / "constraints"
FILES = sorted(FOLDER.glob("*.txt"))
PYTHONS = ("3.11", "3.12")  # some of our tools need a newer one than pipeprof does
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Each file, and what it was made of.
ASKED = {
    "gate.txt": PROJECT["dependencies"],
    "dev.txt": [
        *PROJECT["dependencies"],
        *(text for name in ("mindspore", "test", "dev", "docs") for text in PROJECT["optional-dependencies"][name]),
    ],
}


def entries(path):
    """[(requirement, its hashes)] of a file."""
    text = path.read_text("utf-8").replace("\\\n", " ")
    lines = [line.partition(" #")[0].strip() for line in text.splitlines() if not line.lstrip().startswith("#")]
    of_package = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")
    return [(Requirement(line.partition(" --hash=")[0]), of_package.findall(line)) for line in lines if line]


def versions(path, python):
    """{package: its version for a Python on Linux}."""
    environment = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux",
                   "platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix", "extra": "",
                   "implementation_name": "cpython", "platform_python_implementation": "CPython"}  # fmt: skip
    chosen = [one for one, _ in entries(path) if one.marker is None or one.marker.evaluate(environment)]
    assert len({canonicalize_name(one.name) for one in chosen}) == len(chosen)
    return {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in chosen}, environment


@every(FILES, lambda path: path.name)
def test_every_package_has_one_version_and_hashes(path):
    found = entries(path)
    assert found
    for requirement, hashes in found:
        assert re.fullmatch(r"==[\w.!+]+", str(requirement.specifier)), requirement
        assert hashes, requirement
        assert requirement.url is None
    places = r"://|--(extra-)?index-url|--find-links|--trusted-host|^-[if] "
    assert not re.search(places, path.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", ASKED)
def test_what_pyproject_asks_for_is_held(name, python):
    held, environment = versions(FOLDER / name, python)
    for wanted in map(Requirement, ASKED[name]):
        if wanted.marker is None or wanted.marker.evaluate(environment):
            assert wanted.specifier.contains(held[canonicalize_name(wanted.name)], prereleases=True), wanted


@pytest.mark.parametrize("python", PYTHONS)
def test_the_files_agree_on_versions(python):
    assert [path.name for path in FILES] == ["audit.txt", "build.txt", "dev.txt", "gate.txt", "release.txt"]
    everything, _ = versions(FOLDER / "dev.txt", python)
    for path in FILES:
        held, _ = versions(path, python)
        assert held == {name: everything.get(name, version) for name, version in held.items()}, path.name


def test_every_dependency_is_bounded_above():
    for text in PROJECT["dependencies"]:
        assert any(one.operator in ("<", "<=", "==") for one in Requirement(text).specifier), text


@pytest.mark.parametrize("path", [".github/workflows/gate-comment.yml", "examples/github/gate-comment.yml"])
def test_the_job_that_comments_installs_only_what_is_fixed(path):
    steps = yaml.safe_load((ROOT / path).read_text("utf-8"))["jobs"]["comment"]["steps"]
    installs = [line.split() for step in steps for line in step.get("run", "").splitlines() if "install" in line]
    assert len(installs) == 2
    for words in installs:
        assert {"--require-hashes"} <= set(words) or {"--no-index", "--no-deps", "--no-build-isolation"} <= set(words)


def test_attacks_run_on_the_oldest_duckdb_that_is_taken_and_on_each_major_version():
    """A new major version is not taken before it stands here, or is the one that CI installs."""
    (taken,) = (Requirement(text).specifier for text in PROJECT["dependencies"] if text.startswith("duckdb"))
    bounds = {one.operator: one.version for one in taken}
    tried = re.search(r"^DUCKDBS \?= (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)[1].split()
    installed = versions(FOLDER / "dev.txt", "3.11")[0]["duckdb"]
    assert tried[0] == bounds[">="]
    majors = {version.partition(".")[0] for version in (*tried, installed)}
    assert majors == {str(major) for major in range(int(bounds[">="][0]), int(bounds["<"]))}
