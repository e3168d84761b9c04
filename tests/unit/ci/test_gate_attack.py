"""The whole check on a pull request that edits the policy, the baseline and the workflow: red, and it says why."""

import json

import pytest
from action_steps import Runner
from comparisons import comparison
from git_repository import GitRepository
from shebang import SHEBANG

from pipeprof.cli import cli
from pipeprof.record.run import Rep

WORKFLOW = ".github/workflows/gate.yml"
LOOSE = "[metrics.step_time_median]\nmin_effect = 9.0\nmargin = 9.0\n"
SPREAD = (1.0, 1.004, 0.997, 1.002, 0.999)
NOISY = (1.01, 3.4, 0.52, 0.47, 2.2)  # an overloaded machine
# `collect` finds its run already recorded; everything else is the real program.
PIPEPROF = """{shebang}import shutil, sys
if sys.argv[1] == "collect":
    shutil.copytree({run!r}, sys.argv[sys.argv.index("-o") + 1])
else:
    from pipeprof.cli import start
    start()
"""


@pytest.fixture
def recorded(make_run):
    """`recorded(ms)` is the folder of a run of five repetitions with such steps."""

    def make(step_ms, spread=SPREAD):
        lengths = [round(step_ms * factor * 1e6) for factor in spread]
        rows = [
            {"rep": rep, "step": n, "kind": "train", "kind_step": n, "start_ns": n * ns, "end_ns": (n + 1) * ns}
            for rep, ns in enumerate(lengths)
            for n in range(12)
        ]
        run = make_run({"step": rows})
        run.manifest.state, run.manifest.job, run.manifest.command = "complete", "boot:1", ["python", "train.py"]
        run.manifest.fingerprint = {"cpu_model": "A", "cpu_cores": 2}
        run.manifest.reps = [
            Rep(rep=rep, zero_realtime_ns=rep, zero_monotonic_ns=0, exit_code=0) for rep in range(len(SPREAD))
        ]
        run.save()
        return str(run.path)

    return make


def write_baseline(run, root):
    cli.main(["baseline", "write", run, "--workload", "demo", "--force", "--root", str(root)], standalone_mode=False)


def program(runner, run, before=""):
    """What stands for `pipeprof` there, which finds this run recorded; `before` are lines that it runs first."""
    text = PIPEPROF.format(shebang=SHEBANG, run=run).replace("import shutil", f"{before}import shutil")
    (runner.bin / "pipeprof").write_text(text)


@pytest.fixture
def project(tmp_path, recorded):
    """A runner whose checkout has a baseline of 10 ms; gives it and the repository."""
    runner = Runner(tmp_path)
    repository = GitRepository(runner.work)
    write_baseline(recorded(10), repository.root / "baselines")
    repository.base = repository.commit({"train.py": "fast()\n", WORKFLOW: "a\n"})
    runner.event["pull_request"]["base"]["sha"] = repository.base
    return runner, repository


def test_a_pull_request_cannot_configure_its_own_check(project, recorded):
    runner, repository = project
    base = repository.base
    write_baseline(recorded(20.5), repository.root / "baselines")
    repository.commit({"train.py": "slow()\n", "pipeprof.toml": LOOSE, WORKFLOW: "b\n"})
    repository.git("replace", base, "HEAD")  # what a runner that outlives its jobs may be left with
    repository.git("branch", base, "HEAD")
    program(runner, recorded(20))

    outcome = runner.run(mode="baseline", workload="demo", policy="pipeprof.toml")

    assert outcome.exit_code == 1, outcome.log
    assert outcome.outputs["verdict"] == "regressed"
    assert [level for level, *_ in outcome.annotations][:3] == ["error", "warning", "warning"]
    comment = runner.artifact("comment.md").read_text().replace("\\", "")
    for text in (outcome.summary.replace("\\", ""), comment):
        assert "this change adds the policy `pipeprof.toml` (`metrics.step_time_median.min_effect` is 9 instead" in text
        assert "this change edits the baseline in `baselines/demo/a-2c-" in text
        assert f"this change edits `{WORKFLOW}`, which may say what is measured" in text
        assert "this change edits `train.py`, which the measured command names" in text
        assert f"policy: the defaults; the base revision {base[:10]} has no settings" in text
    kinds = [edit["kind"] for edit in json.loads(runner.artifact("compare.json").read_text())["trust"]["edits"]]
    assert kinds == ["policy", "baseline", "ci", "workload"]
    assert runner.run(mode="baseline", workload="demo", base_ref="HEAD").exit_code == 0  # merged, it would pass


def test_a_noisy_machine_does_not_let_such_a_pull_request_pass(project, recorded):
    runner, repository = project
    repository.commit({"train.py": "slow()\n", "pipeprof.toml": LOOSE, WORKFLOW: "b\n"})
    program(runner, recorded(20, NOISY))

    outcome = runner.run(mode="baseline", workload="demo", fail_on="incomparable")

    assert (outcome.exit_code, outcome.outputs["verdict"]) == (4, "inconclusive"), outcome.log
    assert outcome.annotations[-1][:2] == ("error", "inconclusive is not enough")
    comment = runner.artifact("comment.md").read_text().replace("\\", "")
    assert "this change adds the policy `pipeprof.toml`" in comment
    assert "does not pass undecided" in comment


@pytest.fixture
def merged(tmp_path):
    """A checkout of a pull request as GitHub makes it: merged with a main that went on since the event."""
    runner = Runner(tmp_path)
    repository = GitRepository(runner.work)
    repository.old = repository.commit({"train.py": "fast()\n"})
    repository.git("checkout", "--quiet", "-b", "change")
    repository.head = repository.commit({"README": "better\n"})
    repository.git("checkout", "--quiet", "main")
    repository.main = repository.commit({"other.py": "slow()\n"})
    repository.git("checkout", "--quiet", "--detach")
    repository.git("merge", "--quiet", "--no-ff", "--message", "merge", "change")
    runner.event["pull_request"] |= {"base": {"sha": repository.old}, "head": {"sha": repository.head}}
    runner.plan = {"ab": {"stdout": json.dumps(comparison("unchanged"))}}
    return runner, repository


def base_of(runner):
    outcome = runner.run()
    assert outcome.exit_code == 0, outcome.log
    return runner.calls()[-1]["words"][1].removeprefix("--base-ref=")


def test_what_main_got_meanwhile_is_not_held_against_the_change(merged):
    runner, repository = merged
    assert base_of(runner) == repository.main
    runner.event["pull_request"]["head"]["sha"] = "c" * 40  # a merge of something else
    assert base_of(runner) == repository.old
    runner.event["pull_request"]["head"]["sha"] = repository.head
    repository.git("checkout", "--quiet", "--detach", repository.head)  # no merge
    assert base_of(runner) == repository.old


def refused(runner, **inputs):
    """The one error of a check that is set up wrongly; nothing was measured for it."""
    outcome = runner.run(mode="baseline", workload="demo", **inputs)
    assert (outcome.exit_code, outcome.outputs["verdict"]) == (2, "error"), outcome.log
    assert runner.calls() == []
    ((level, title, message),) = outcome.annotations
    assert (level, title) == ("error", "pipeprof: the check is set up wrongly")
    return message


def test_a_base_that_was_not_fetched_is_told_before_anything_is_measured(tmp_path):
    runner = Runner(tmp_path)
    full = GitRepository(tmp_path / "full")
    base = full.commit({"train.py": "fast()\n"})
    full.commit({"train.py": "slow()\n"})
    runner.work.rmdir()
    full.git("clone", "--quiet", "--depth", "1", full.root.as_uri(), str(runner.work))
    runner.event["pull_request"]["base"]["sha"] = base
    message = refused(runner)
    assert f"the base revision `{base}` is not in this checkout" in message
    assert "`fetch-depth: 0`" in message


def test_a_command_that_moves_the_base_judges_nothing(project, recorded):
    runner, repository = project
    repository.git("branch", "release", repository.base)
    write_baseline(recorded(20.5), repository.root / "baselines")
    head = repository.commit({"train.py": "slow()\n"})
    moves = f"import subprocess\nsubprocess.run(['git', 'update-ref', 'refs/heads/release', {head!r}], check=True)\n"
    program(runner, recorded(20), moves)
    outcome = runner.run(mode="baseline", workload="demo", base_ref="release")
    assert (outcome.exit_code, outcome.outputs["verdict"]) == (3, "error"), outcome.log
    assert "`release` became another commit while the command ran" in outcome.summary.replace("\\", "")


OUTSIDE = "there is no git repository here, so `{}` has to name what the change cannot write"


@pytest.mark.parametrize(
    "policy",
    ["", "gate.toml", "../work/gate.toml", "link/gate.toml", "{work}/gate.toml", "{work}/out.toml", "../in.toml"],
)
def test_without_git_the_change_cannot_bring_its_settings(tmp_path, policy):
    runner = Runner(tmp_path)
    runner.work.joinpath("gate.toml").write_text(LOOSE, encoding="utf-8")
    runner.work.joinpath("link").symlink_to(runner.work)
    runner.work.joinpath("out.toml").symlink_to(tmp_path / "own.toml")
    tmp_path.joinpath("in.toml").symlink_to(runner.work / "gate.toml")
    message = refused(runner, policy=policy.format(work=runner.work), baseline_root=str(tmp_path / "baselines"))
    assert OUTSIDE.format("policy") in message


@pytest.mark.parametrize("root", ["baselines", "../work", "file://{work}/baselines", "{work}/a/../baselines"])
def test_without_git_the_change_cannot_bring_its_baseline(tmp_path, root):
    runner = Runner(tmp_path)
    own = tmp_path / "own.toml"
    own.write_text("", encoding="utf-8")
    message = refused(runner, policy=str(own), baseline_root=root.format(work=runner.work))
    assert OUTSIDE.format("baseline-root") in message
    assert "there is no git repository" in refused(runner, policy=str(own), base_ref="main")


def test_without_git_files_outside_of_the_change_judge(tmp_path, recorded):
    runner = Runner(tmp_path)
    own, root = tmp_path / "own.toml", tmp_path / "baselines"
    own.write_text("[metrics.step_time_median]\nmin_effect = 0.03\n", encoding="utf-8")
    runner.work.joinpath("pipeprof.toml").write_text(LOOSE, encoding="utf-8")
    write_baseline(recorded(10), root)
    program(runner, recorded(20))

    outcome = runner.run(mode="baseline", workload="demo", policy=str(own), baseline_root=str(root))

    assert (outcome.exit_code, outcome.outputs["verdict"]) == (1, "regressed"), outcome.log
    assert json.loads(runner.artifact("compare.json").read_text())["trust"]["policy"]["path"] == str(own)
