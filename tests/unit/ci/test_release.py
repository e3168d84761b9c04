"""What keeps a folder of files from being a release, and what the release workflow may do."""

import io
import tarfile
import zipfile

import pytest
import yaml
from action_steps import ROOT, load_tool

METADATA = """Metadata-Version: 2.4
Version: 1.2.3
Requires-Python: >=3.10
Description-Content-Type: text/markdown
License-Expression: Apache-2.0
Project-URL: Homepage, https://example.org
"""
HOOKS = "pipeprof/collect/probe/_hooks.abi3.so"
EMPTY = ("pipeprof/py.typed", "tests/test_it.py", "docs/ops.md", "tools/make.py", "ci/action.yml", "pyproject.toml",
         "LICENSE", "README.md", "Makefile")  # fmt: skip
TREE = dict.fromkeys(EMPTY, "") | {
    "pipeprof/version.py": '__version__ = "1.2.3"\n', "queries/step/slowest.sql": "SELECT 1",
    "CHANGELOG.md": "# Changelog\n\n## 1.2.3\n",
}  # fmt: skip
WHEEL = (
    "pipeprof/version.py", "pipeprof/py.typed", "pipeprof/_queries/step/slowest.sql",
    "pipeprof-1.2.3.dist-info/licenses/LICENSE", "pipeprof-1.2.3.dist-info/entry_points.txt",
)  # fmt: skip


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """A small release; called with what is done to it, gives the exit code and the error lines."""
    module = load_tool("check_release")
    monkeypatch.setattr(module, "ROOT", tmp_path / "tree")
    for name, text in TREE.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    dist = tmp_path / "dist"
    dist.mkdir()

    def run(*words, without=(), metadata=METADATA, named="1.2.3", tag="py3-none-any", more=()):
        with zipfile.ZipFile(dist / f"pipeprof-{named}-{tag}.whl", "w") as archive:
            archive.writestr("pipeprof-1.2.3.dist-info/METADATA", metadata)
            for name in {*WHEEL, *more} - set(without):
                archive.writestr(name, "")
        with tarfile.open(dist / f"pipeprof-{named}.tar.gz", "w:gz") as archive:
            for name in set(TREE) - set(without):
                archive.addfile(tarfile.TarInfo(f"pipeprof-1.2.3/{name}"), io.BytesIO())
        monkeypatch.setattr("sys.argv", ["check_release.py", str(dist), *words])
        code = module.main()
        return code, capsys.readouterr().err.splitlines()

    return run


def test_a_whole_release_passes_with_its_tag_and_without_and_another_tag_is_refused(check, tmp_path):
    assert check() == check("--tag", "v1.2.3") == (0, [])
    for tag in ("1.2.3", "v1.2.4", "v1.2"):
        said = f"error: the tag is {tag}, and __version__ in pipeprof/version.py is 1.2.3"
        assert check("--tag", tag) == (1, [said])
    (tmp_path / "tree" / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n")
    assert check() == (0, [])
    assert check("--tag", "v1.2.3") == (1, ["error: CHANGELOG.md has no heading `## 1.2.3`"])


def test_a_wheel_of_a_platform_holds_the_compiled_hooks_and_no_other_does(check, tmp_path):
    (tmp_path / "tree" / HOOKS).parent.mkdir(parents=True)
    (tmp_path / "tree" / HOOKS).touch()  # of an editable installation
    compiled = "cp310-abi3-manylinux_2_17_x86_64"
    assert check(tag=compiled, more=[HOOKS]) == (0, [])
    assert check(tag=compiled) == (1, [f"error: {HOOKS} is missing in the wheel"])
    (tmp_path / "dist" / f"pipeprof-1.2.3-{compiled}.whl").unlink()
    said = f"error: pipeprof-1.2.3-py3-none-any.whl is for any platform, and holds {HOOKS}"
    assert check(more=[HOOKS]) == (1, [said])
    code, errors = check(tag="cp310-abi3-linux_x86_64")
    assert (code, any("1.2.3-cp310-abi3-linux_x86_64.whl is not expected" in line for line in errors)) == (1, True)


def test_a_release_for_several_machines_has_the_wheel_of_each_and_no_other(check):
    names = [f"cp310-abi3-manylinux_2_17_{machine}" for machine in ("x86_64", "aarch64", "riscv64")]
    asked = ("--machines", "x86_64", "aarch64")
    missing, strange = (f"pipeprof-1.2.3-{name}.whl" for name in names[1:])
    code, errors = check(*asked, tag=names[0], more=[HOOKS])
    assert (code, [line.split(" in ")[0] for line in errors]) == (1, [f"error: {missing} is missing"])
    assert check(*asked, tag=names[1], more=[HOOKS]) == (0, [])
    assert check(*asked, tag=names[1]) == (1, [f"error: {HOOKS} is missing in the wheel"])
    code, errors = check(*asked, tag=names[2], more=[HOOKS])
    assert f"error: {strange} is not expected" in [line.split(" in ")[0] for line in errors]


def workflow(name):
    return yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text("utf-8"))


def test_ci_tries_the_wheels_that_a_release_takes():
    jobs = {name: workflow(name)["jobs"] for name in ("ci", "release", "wheels")}
    assert jobs["ci"]["wheels"]["uses"] == jobs["release"]["wheels"]["uses"] == "./.github/workflows/wheels.yml"
    made = [one["machine"] for one in jobs["wheels"]["wheel"]["strategy"]["matrix"]["include"]]
    checked = next(step["run"] for step in jobs["release"]["build"]["steps"] if "check_release" in step.get("run", ""))
    assert checked.partition("--machines ")[2].split() == made == ["x86_64", "aarch64"]


@pytest.mark.parametrize(("name", "place"), [
    ("pipeprof/py.typed", "wheel"), ("pipeprof/_queries/step/slowest.sql", "wheel"), (WHEEL[-1], "wheel"),
    ("queries/step/slowest.sql", "sdist"), ("tests/test_it.py", "sdist"), ("LICENSE", "sdist"),
])  # fmt: skip
def test_what_is_missing_in_the_wheel_or_the_sdist_is_named(check, name, place):
    code, errors = check(without=[name])
    assert code == 1
    assert f"error: {name} is missing in the {place}" in errors
    assert place == "wheel" or len(errors) == 1


def test_a_file_of_another_version_and_a_wrong_metadata_are_named(check):
    code, errors = check(metadata="Version: 1.2.2\n")
    assert code == 1
    assert errors[0] == "error: the wheel says that its version is 1.2.2, expected 1.2.3"
    assert "error: the wheel's metadata has no Project-URL" in errors
    code, errors = check(named="1.2.2")
    assert code == 1
    assert any("pipeprof-1.2.2.tar.gz is not expected" in line for line in errors)


def test_only_the_publishing_job_can_speak_for_the_project():
    content = workflow("release")
    assert content[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}  # YAML 1.1 reads the key `on` so; not `v1`
    jobs = content["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job["permissions"]] == ["publish"]
    assert not any("run" in step for step in jobs["publish"]["steps"])
    assert jobs["publish"]["needs"] == "build"
    assert jobs["announce"]["needs"] == "publish"


def test_a_release_has_a_bill_of_materials_and_a_signed_statement():
    """As SECURITY.md says; the statement is about the wheel that users verify."""
    steps = [step for job in workflow("release")["jobs"].values() for step in job.get("steps", ())]
    assert any("make sbom" in step.get("run", "") for step in steps)
    signed = [step for step in steps if "attest-build-provenance" in step.get("uses", "")]
    assert [step["with"]["subject-path"] for step in signed]
    assert any("gh release create" in step.get("run", "") and "sbom" in step["run"] for step in steps)
