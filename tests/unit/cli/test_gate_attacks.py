"""A change cannot configure the gate that judges it: what it brings is told, and counts once it is merged."""

import shutil

import pytest

LOOSE = """
alpha = 0.0001
ignore_fingerprint = ["command"]
[metrics]
step_time_p90 = false
data_wait = false
first_step_time = false
[metrics.step_time_median]
min_effect = 9.0
margin = 9.0
[[acknowledge]]
metric = "step_time_median"
max_ratio = 99.0
reason = "trust me"
expires = "9999-12-31"
"""
WORKFLOW = ".github/workflows/gate.yml"
BASELINES = "baselines"


def rewritten(recorded, verb, folder=BASELINES):
    """A baseline as slow as the change."""
    assert verb("baseline", "write", recorded(20_500), "--workload", "mnist", "--root", folder, "--force")[0] == 0


def on_main(repository, files=None):
    """Commit them, or what lies there, on main; the change begins anew behind it."""
    repository.git("checkout", "--quiet", "main")
    repository.commit(files)
    repository.git("checkout", "--quiet", "-B", "change")


def edits(content):
    return [(edit["kind"], edit["path"], edit["change"]) for edit in content["trust"]["edits"]]


def machine(repository):
    names = repository.git("ls-tree", "-r", "--name-only", repository.base).splitlines()
    return next(name for name in names if name.endswith("baseline.json")).rpartition("/")[0]


def base_ns(content):
    return next(one["base"] for one in content["metrics"] if one["name"] == "step_time_median")


def test_a_change_that_edits_policy_baseline_and_workload_together_fails_and_is_told(repository, recorded, verb, judge):
    rewritten(recorded, verb)
    repository.commit({"pipeprof.toml": LOOSE, "train.py": "slow()\n", WORKFLOW: "run: true\n"})
    assert judge()[0] == 0  # by its own rules it would pass
    code, content, _ = judge("--base-ref", "main")
    assert (code, content["verdict"]) == (1, "regressed")
    assert base_ns(content) == pytest.approx(10e6, rel=0.01)
    assert edits(content) == [
        ("policy", "pipeprof.toml", "added"), ("baseline", machine(repository), "edited"), ("ci", WORKFLOW, "edited"),
        ("workload", "train.py", "edited"),
    ]  # fmt: skip
    assert content["trust"]["policy"] == {
        "origin": "defaults", "path": None, "revision": repository.base, "changed": False,
    }  # fmt: skip
    assert content["trust"]["departures"] == []
    assert (content["trust"]["base_revision"], content["trust"]["baseline"]) == (repository.base, "baselines/mnist")


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_people_read_what_it_tried(repository, recorded, verb, form):
    rewritten(recorded, verb)
    repository.commit({"pipeprof.toml": LOOSE})
    _, out, _ = verb("compare", "baselines/mnist", recorded(20_000), "--base-ref", "main", "--format", form)
    words = out.replace("\\", "").replace("`", "")
    assert "this change adds the policy pipeprof.toml" in words
    assert "metrics.step_time_median.min_effect is 9 instead of 0.02 (looser)" in words
    assert "accepts step_time_median up to 99 times as large until 9999-12-31: trust me (looser)" in words
    assert f"this change edits the baseline in {machine(repository)}: that counts once it is merged" in words
    assert f"policy: the defaults; the base revision {repository.base[:10]} has no settings" in words
    assert f"baseline: baselines/mnist of the base revision {repository.base[:10]}" in words


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"pyproject.toml": f"[project]\n[tool.pipeprof.gate]\n{LOOSE.replace('[metrics', '[tool.pipeprof.gate.metrics').replace('[[ack', '[[tool.pipeprof.gate.ack')}"}, "pyproject.toml"),
        ({"pipeprof.toml": "looks = ["}, "pipeprof.toml"),
        ({"pipeprof.toml": "alpha = 7\n"}, "pipeprof.toml"),
        ({"pipeprof.toml": "#" * 3_000_000}, "pipeprof.toml"),
    ],
)  # fmt: skip
def test_no_settings_of_the_change_count_nor_end_the_judgement(repository, judge, files, path):
    repository.commit(files)
    code, content, err = judge("--base-ref", "main")
    assert code == 1, err
    assert edits(content)[0][:2] == ("policy", path)


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/stdin", "../loose.toml"])
def test_a_link_that_the_change_brings_is_not_opened(repository, judge, target):
    (repository.root.parent / "loose.toml").write_text(LOOSE)
    (repository.root / "pipeprof.toml").symlink_to(target)
    repository.commit()
    code, content, err = judge("--base-ref", "main")
    assert code == 1, err
    (edit,) = content["trust"]["edits"]
    assert (edit["path"], "is not a plain file" in edit["problem"]) == ("pipeprof.toml", True)


def test_a_link_in_place_of_the_settings_of_the_base_is_an_error_and_no_default(repository, judge):
    (repository.root / "pipeprof.toml").symlink_to("conf/strict.toml")
    on_main(repository, {"conf/strict.toml": "alpha = 0.001\n"})
    code, _, err = judge("--base-ref", "main")
    assert code == 2
    assert "is a link, which is not followed" in err
    assert judge("--base-ref", "main", "--policy", "conf/strict.toml")[0] == 1


def test_a_nearer_file_of_the_change_does_not_shadow_that_of_the_base(repository, judge, monkeypatch):
    on_main(repository, {"pipeprof.toml": "alpha = 0.01\n", "jobs/readme": "x"})
    repository.commit({"jobs/pipeprof.toml": LOOSE})
    monkeypatch.chdir(repository.root / "jobs")
    code, content, err = judge("--base-ref", "main", base="../baselines/mnist")
    assert code == 1, err
    assert content["trust"]["policy"]["path"] == "pipeprof.toml"
    assert edits(content) == [("policy", "jobs/pipeprof.toml", "added")]
    assert [(one["key"], one["value"], one["effect"]) for one in content["trust"]["departures"]] == [
        ("alpha", 0.01, "stricter")
    ]


def test_loosening_counts_after_the_merge(repository, judge):
    repository.commit({"pipeprof.toml": LOOSE})
    assert judge("--base-ref", "main")[0] == 1
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "change")
    code, content, _ = judge("--base-ref", "main")
    assert code == 0
    assert edits(content) == []
    departed = {one["key"]: one["effect"] for one in content["trust"]["departures"]}
    assert departed["metrics.step_time_median.min_effect"] == departed["acknowledge"] == "looser"


def test_a_named_file_is_read_as_the_base_has_it(repository, judge):
    on_main(repository, {"ci/gate.toml": "alpha = 0.01\n"})
    repository.commit({"ci/gate.toml": LOOSE})
    code, content, _ = judge("--base-ref", "main", "--policy", "ci/gate.toml")
    assert code == 1
    assert content["trust"]["policy"]["path"] == "ci/gate.toml"
    assert edits(content) == [("policy", "ci/gate.toml", "edited")]
    assert judge("--policy", "ci/gate.toml")[0] == 0  # at a desk, by the rules that lie there


def test_a_named_file_that_only_the_change_has_leaves_the_defaults(repository, judge):
    repository.commit({"gate.toml": LOOSE})
    code, content, _ = judge("--base-ref", "main", "--policy", "gate.toml")
    assert (code, content["trust"]["policy"]["origin"]) == (1, "defaults")
    assert edits(content) == [("policy", "gate.toml", "added")]
    repository.write({"mine.toml": LOOSE})
    code, _, err = judge("--base-ref", "main", "--policy", "mine.toml")
    assert code == 2
    assert "`mine.toml` is not in revision" in err


def test_a_file_outside_of_the_repository_is_the_operators(repository, judge, tmp_path):
    (tmp_path / "house.toml").write_text("alpha = 0.01\n")
    repository.commit({"pipeprof.toml": LOOSE})
    code, content, _ = judge("--base-ref", "main", "--policy", str(tmp_path / "house.toml"))
    assert code == 1
    assert content["trust"]["policy"]["origin"] == "file"


@pytest.mark.parametrize("how", ["rewritten", "removed", "a link to another"])
def test_the_baseline_is_that_of_the_base(repository, recorded, verb, judge, tmp_path, how):
    folder = repository.root / BASELINES
    rewritten(recorded, verb, BASELINES if how == "rewritten" else str(tmp_path / "slow"))
    if how != "rewritten":
        shutil.rmtree(folder)
    if how == "a link to another":
        folder.symlink_to(tmp_path / "slow")
    repository.commit()
    code, content, err = judge("--base-ref", "main")
    assert code == 1, err
    assert base_ns(content) == pytest.approx(10e6, rel=0.01)
    assert ("baseline", machine(repository)) in {(kind, path) for kind, path, _ in edits(content)}


def test_a_first_baseline_of_the_change_judges_nothing(repository, recorded, verb, judge):
    shutil.rmtree(repository.root / BASELINES)
    on_main(repository)
    rewritten(recorded, verb)
    repository.commit()
    code, _, err = judge("--base-ref", "main")
    assert code == 3
    assert "no baseline in `" in err


def test_another_command_than_the_baselines_cannot_pass(repository, judge):
    code, content, _ = judge("--base-ref", "main", dur_us=10_001, command=("python", "train.py", "--steps", "1"))
    assert (code, content["verdict"]) == (3, "incomparable")
    assert content["fingerprint"]["differences"][0] == {
        "name": "command", "base": "python train.py", "new": "python train.py --steps 1", "hard": True,
    }  # fmt: skip
    same = judge("--base-ref", "main", dur_us=10_001, command=("/venv/bin/python", "train.py"))
    assert same[0] == 0


def test_a_base_that_is_no_revision_of_a_repository_is_exit_2(repository, recorded, verb, judge, tmp_path, monkeypatch):
    for ref in ("nosuch", "--help", "-h"):
        code, _, err = judge(f"--base-ref={ref}")
        assert (code, f"git knows no revision `{ref}`" in err) == (2, True)
    shutil.copytree(recorded(20_100), repository.root / "base")
    code, _, err = verb("compare", "base", recorded(20_000), "--base-ref", "main")
    assert (code, "is a run of the working tree" in err) == (2, True)
    monkeypatch.chdir(tmp_path)
    code, _, err = verb("compare", recorded(), recorded(20_000), "--base-ref", "main")
    assert (code, "not in a git repository" in err) == (2, True)


def test_at_a_desk_the_file_of_the_working_tree_counts_and_is_named(repository, recorded, verb):
    slow, slower = recorded(20_000), recorded(20_500)
    repository.commit({"pipeprof.toml": "[metrics]\nfirst_step_time = false\n"})
    out = verb("compare", slow, slower)[1]
    revision = repository.git("rev-parse", "HEAD")
    assert f"policy: `pipeprof.toml` of the working tree at revision {revision[:10]}\n" in out
    assert "`metrics.first_step_time.family` is secondary instead of informing (looser)" in out
    repository.write({"pipeprof.toml": "alpha = 0.01\n"})
    assert f"revision {revision[:10]}, not as committed" in verb("compare", slow, slower)[1]
    repository.write({"pipeprof.toml": None})
    assert "policy: the defaults\n" in verb("compare", slow, slower)[1]
