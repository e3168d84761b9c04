"""Tricks of a change that is twice as slow: none passes. Innocent changes that are as fast as the base: none is red.

How a change is judged by the base's settings and baselines: test_gate_attacks.py. Here git itself, names and the
surroundings are what it tries. A trick that is a function gets the repository on its branch; what it returns are
further words of the comparison, or None.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOOSE = "[metrics.step_time_median]\nmin_effect = 9.0\nmargin = 9.0\n"
STRICT = "[metrics.step_time_median]\nmin_effect = 0.03\n"
TABLE = "[tool.pipeprof.gate.metrics.step_time_median]\nmin_effect = 9.0\nmargin = 9.0\n"
MORE = "[tool.pipeprof]\nextends = 'loose.toml'\n[tool.pipeprof.env]\nPIPEPROF_MAX_ROWS = '1'\n"
ATTRIBUTES = "* export-subst ident -diff merge=ours filter=evil diff=evil\n"
SAME_US = 10_017  # as fast as the base, and no copy of its repetitions
EVIL = "#!/bin/sh\ntouch {marker}\n"


def marker(repository):
    """What a program of the change would leave behind."""
    return repository.root.parent / "it-ran"


def program(repository, name, folder=None):
    """A program of the change that says that it ran, and does nothing else."""
    path = (folder or repository.root) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(EVIL.format(marker=marker(repository)))
    path.chmod(0o755)
    return path


FILES = {  # what the change brings
    "policy_is_a_folder": {"pipeprof.toml/pipeprof.toml": LOOSE},
    "policy_in_other_letters": {"Pipeprof.toml": LOOSE, "PIPEPROF.TOML": LOOSE, "PyProject.toml": TABLE},
    "policy_with_look_alike_letters": {"p\u0456peprof.toml": LOOSE, "pipeprof.toml\u200b": LOOSE},
    "settings_under_other_keys": {"pyproject.toml": TABLE + MORE, "loose.toml": LOOSE},
    "attributes_of_the_tree": {".gitattributes": ATTRIBUTES, "pipeprof.toml": LOOSE},
    "configuration_in_the_tree": {
        ".gitconfig": "[alias]\nls-tree = !false\n", "config": "[core]\nbare = true\n", "HEAD": "x\n",
    },
    "three_thousand_files": {f"many/{number}.txt": "" for number in range(3_000)} | {"pipeprof.toml": LOOSE},
}  # fmt: skip
REFS = {  # what git is told once a loose policy is committed, and the base that the check is given then
    "tag_shadows_main": ("tag main HEAD", "main"),
    "branch_named_as_a_short_hash": ("branch SHORT HEAD", "SHORT"),
    "branch_named_as_the_full_hash": ("branch BASE HEAD", "BASE"),
    "tag_named_as_a_full_name": ("tag refs/heads/release HEAD", "refs/heads/release"),
    "replaced_base": ("replace main HEAD", "main"),
    "replaced_tree_of_the_base": ("replace main^{tree} change^{tree}", "main"),
}


def filled(words, repository):
    return [word.replace("SHORT", repository.base[:8]).replace("BASE", repository.base) for word in words.split()]


def tried(repository, name):
    """The base that the check is given, and further words of the comparison, after the trick."""
    if name in FILES:
        repository.commit(FILES[name])
    elif name in REFS:
        repository.commit({"pipeprof.toml": LOOSE})
        words, base = REFS[name]
        repository.git(*filled(words, repository))
        return ("--base-ref", *filled(base, repository))
    else:
        return ("--base-ref", "main", *(TRICKS[name](repository) or ()))
    return ("--base-ref", "main")


def grafted_history(repository):
    head = repository.commit({"pipeprof.toml": LOOSE})
    (repository.root / ".git/info").mkdir(exist_ok=True)
    (repository.root / ".git/info/grafts").write_text(f"{repository.base} {head}\n")


def history_of_its_own(repository):
    repository.git("checkout", "--quiet", "--orphan", "alone")
    repository.commit({"pipeprof.toml": LOOSE})


def main_merged_into_it(repository):
    repository.commit({"pipeprof.toml": LOOSE})
    repository.git("merge", "--quiet", "--no-ff", "-s", "ours", "-m", "m", repository.git("commit-tree", "-p", "main", "-m", "x", "main^{tree}"))  # fmt: skip


def policy_renamed_away(repository):
    repository.git("mv", "pyproject.toml", "pipeprof.toml")
    repository.commit({"pipeprof.toml": LOOSE})


def policy_through_a_linked_folder(repository):
    (repository.root / "conf").mkdir()
    (repository.root / "conf/pipeprof.toml").write_text(LOOSE)
    (repository.root / "linked").symlink_to("conf")
    repository.commit()
    return ("--policy", "linked/pipeprof.toml")


def policy_in_another_encoding(repository):
    (repository.root / "pipeprof.toml").write_bytes(LOOSE.encode("utf-16"))
    repository.commit()


def configuration_of_the_checkout(repository):
    evil = program(repository, "evil", repository.root.parent)
    for key in ("diff.external", "core.fsmonitor", "diff.evil.textconv", "diff.evil.command",
                "core.pager", "pager.diff", "gpg.program", "core.sshCommand"):  # fmt: skip
        repository.git("config", key, str(evil))
    repository.git("config", "diff.ignoreSubmodules", "all")
    (repository.root / ".gitattributes").write_text("*.toml diff=evil\n")
    (repository.root / "pipeprof.toml").write_text(LOOSE)


def hooks_of_the_checkout(repository):
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        program(repository, name, repository.root / ".git/hooks")
    (repository.root / "pipeprof.toml").write_text(LOOSE)


def baseline_is_a_submodule(repository):
    repository.git("rm", "-r", "--quiet", "baselines")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{repository.base},baselines")
    (repository.root / ".gitmodules").write_text(
        '[submodule "baselines"]\npath = baselines\nurl = ../x\nignore = all\n'
    )
    repository.git("add", ".gitmodules")
    repository.git("commit", "--quiet", "-m", "x")


def index_that_hides_files(repository):
    (repository.root / "pyproject.toml").write_text(TABLE)
    repository.git("update-index", "--assume-unchanged", "pyproject.toml")


def modules_beside_the_script(repository):
    names = ("sitecustomize", "usercustomize", "conftest", "json", "numpy", "scipy", "duckdb", "msgspec", "pipeprof")
    code = f"open({str(marker(repository))!r}, 'w')\nimport os\nos._exit(0)\n"
    repository.commit({f"{name}.py": code for name in names} | {"pipeprof.toml": LOOSE})


def programs_beside_the_script(repository):
    for name in ("git", "python", "pipeprof", "sh"):
        program(repository, name)
    repository.commit({"pipeprof.toml": LOOSE})


TRICKS = {
    trick.__name__: trick
    for trick in (
        grafted_history, history_of_its_own, main_merged_into_it, policy_renamed_away, policy_through_a_linked_folder,
        policy_in_another_encoding, configuration_of_the_checkout, hooks_of_the_checkout, baseline_is_a_submodule,
        index_that_hides_files, modules_beside_the_script, programs_beside_the_script,
    )
}  # fmt: skip
REFUSED = (
    "tag_shadows_main", "branch_named_as_a_short_hash", "tag_named_as_a_full_name", "policy_through_a_linked_folder",
)  # fmt: skip


@pytest.mark.parametrize("trick", [*FILES, *REFS, *TRICKS])
def test_no_trick_makes_a_change_pass_that_is_twice_as_slow(repository, judge, trick):
    words = tried(repository, trick)
    code, content, err = judge(*words)
    assert not marker(repository).exists()
    if trick in REFUSED:
        assert (code, content) == (2, {})
        assert err.count("error: ") == 1
        return
    assert (code, content["verdict"]) == (1, "regressed"), err
    assert content["trust"]["base_revision"] == repository.base
    assert content["trust"]["departures"] == []
    assert judge(*words, dur_us=SAME_US)[0] == 0  # what is as fast as the base still passes


def test_the_installed_program_loads_nothing_from_the_working_directory(repository, recorded):
    modules_beside_the_script(repository)
    programs_beside_the_script(repository)
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"):
        os.environ.pop(name, None)
    pipeprof = Path(sys.executable).parent / "pipeprof"
    words = [pipeprof, "compare", "baselines/mnist", recorded(20_000), "--base-ref", "main"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, marker(repository).exists()) == (1, False), done.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {"GIT_DIR": "{evil}/.git"}, {"GIT_DIR": "{evil}/.git", "GIT_WORK_TREE": "{root}"},
        {"GIT_OBJECT_DIRECTORY": "{evil}/.git/objects"}, {"GIT_COMMON_DIR": "{evil}/.git"},
        {"GIT_REPLACE_REF_BASE": "refs/heads/"}, {"GIT_NAMESPACE": "evil"}, {"GIT_EXTERNAL_DIFF": "{evil}/evil"},
        {"GIT_INDEX_FILE": "/dev/null"}, {"GIT_CEILING_DIRECTORIES": "/"}, {"GIT_ATTR_SOURCE": "change"},
    ],
)  # fmt: skip
def test_no_variable_leads_git_to_another_repository(repository, judge, monkeypatch, tmp_path, variables):
    evil = type(repository)(tmp_path / "evil")
    evil.commit({"pipeprof.toml": LOOSE})
    program(repository, "evil", evil.root)
    repository.commit({"pipeprof.toml": LOOSE})
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(evil=evil.root, root=repository.root))
    code, content, err = judge("--base-ref", "main")
    assert (code, content["trust"]["base_revision"]) == (1, repository.base), err
    assert not marker(repository).exists()


@pytest.mark.parametrize(
    ("kind", "code"), [("no steps", 3), ("one repetition", 4), ("noise", 4), ("some noise", 1), ("a copy", 2)]
)
def test_no_recording_of_its_own_makes_it_pass(repository, recorded, verb, tmp_path, kind, code):
    spreads = {"one repetition": (1.0,), "noise": (1.0, 3.4, 0.3, 6.2, 2.2), "some noise": (1.1, 1.9, 1.3, 2.1, 1.2)}
    spread = spreads.get(kind)
    run = recorded(20_000, **({"spread": spread} if spread else {}))
    if kind == "no steps":
        (Path(run) / "step/rep=0/rank=0/part-00000.parquet").parent.parent.parent.rename(tmp_path / "steps")
    if kind == "a copy":
        run = str(next((repository.root / "baselines/mnist").iterdir()))
    found, _, err = verb("compare", "baselines/mnist", run, "--base-ref", "main")
    assert found == code, err


def test_a_submodule_that_was_moved_is_told_whatever_the_change_asks_for(repository, judge):
    repository.git("checkout", "--quiet", "main")
    (repository.root / ".gitmodules").write_text('[submodule "ci"]\npath = .ci\nurl = ../x\nignore = all\n')
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{repository.base},.ci")
    repository.git("add", ".gitmodules")
    repository.git("commit", "--quiet", "-m", "x")
    repository.git("checkout", "--quiet", "-B", "change")
    repository.git("update-index", "--cacheinfo", f"160000,{repository.git('rev-parse', 'main')},.ci")
    repository.git("commit", "--quiet", "-m", "y")
    _, content, err = judge("--base-ref", "main")
    assert [(edit["kind"], edit["path"]) for edit in content["trust"]["edits"]] == [("ci", ".ci")], err
    baseline_is_a_submodule(repository)
    _, content, _ = judge("--base-ref", "main")
    assert ("baseline", "removed") in {(edit["kind"], edit["change"]) for edit in content["trust"]["edits"]}


INNOCENT = {
    "nothing": {}, "the script": {"train.py": "fast()  # and tidy\n"}, "a page": {"README.md": "x\n"},
    "a module": {"lib/model.py": "x = 1\n"}, "a test": {"tests/conftest.py": "x = 1\n"},
    "a workflow": {".github/workflows/gate.yml": "run: python train.py # pinned\n"},
    "another workflow": {".github/workflows/docs.yml": "run: make\n"},
    "other settings": {"pyproject.toml": "[project]\nname = 'x'\n[tool.ruff]\nline-length = 120\n"},
    "stricter settings": {"pipeprof.toml": STRICT}, "settings of a sub-folder": {"docs/pipeprof.toml": STRICT},
    "no script": {"train.py": None}, "letters": {"docs/\u00fcber \u4e2d\u6587.md": "x\n"}, "a name with a line": {"a\nb.txt": "x\n"},
    "attributes": {".gitattributes": "* text=auto eol=lf\n*.bin filter=lfs diff=lfs\n"},
    "line ends": {"train.py": "fast()\r\n"}, "a large file": {"data.bin": "x" * 3_000_000},
    "many files": {f"many/{number}.txt": "" for number in range(200)}, "a hidden file": {".env": "A=1\n"},
}  # fmt: skip


@pytest.mark.parametrize("name", INNOCENT)
def test_an_innocent_change_is_unchanged(repository, judge, name):
    repository.commit(INNOCENT[name])
    code, content, err = judge("--base-ref", "main", dur_us=SAME_US)
    assert (code, content["verdict"]) == (0, "unchanged"), err


@pytest.mark.parametrize("name", ["a tag", "a branch", "a link", "main merged", "a tag on main", "a submodule"])
def test_an_innocent_use_of_git_is_unchanged(repository, judge, name):
    if name == "a link":
        (repository.root / "latest").symlink_to("train.py")
    head = repository.commit({"train.py": "fast()  # and tidy\n"})
    if name == "a tag":
        repository.git("tag", "-a", "-m", "x", "v2", head)
    elif name == "a branch":
        repository.git("branch", "feature/main", head)
    elif name == "a tag on main":
        repository.git("tag", "main", "main")
    elif name == "main merged":
        repository.git("checkout", "--quiet", "main")
        repository.commit({"other.py": "1\n"})
        repository.git("checkout", "--quiet", "change")
        repository.git("merge", "--quiet", "--no-ff", "-m", "m", "main")
    elif name == "a submodule":
        repository.git("update-index", "--add", "--cacheinfo", f"160000,{repository.base},vendor")
        repository.git("commit", "--quiet", "-m", "x")
    code, content, err = judge("--base-ref", "main", dur_us=SAME_US)
    assert (code, content["verdict"]) == (0, "unchanged"), err
