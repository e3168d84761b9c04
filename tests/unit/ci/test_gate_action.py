"""The composite action, step by step, with a `pipeprof` that says what it is told to."""

import json
import re
import shlex
import sys
import xml.etree.ElementTree as ET

import pytest
from action_steps import ROOT, Runner, action, executable
from comparisons import EXIT, HEADLINE, comparison, edit, hostile, metric, setting, trust
from hostile import check_html

pytestmark = pytest.mark.slow  # runs the action in processes and repositories of their own

BASE = "b" * 40


@pytest.fixture
def runner(tmp_path):
    """A job whose git knows every revision."""
    made = Runner(tmp_path)
    executable(made.bin / "git", "#!/bin/sh\nexit 0\n")
    return made


def says(content, **other):
    """What a pipeprof does that judged: the content on stdout, its exit code."""
    return {"ab": {"stdout": json.dumps(content), "exit": content["exit_code"], **other}}


def levels(outcome):
    return [level for level, *_ in outcome.annotations]


def junit(runner):
    return ET.parse(runner.artifact("junit.xml")).getroot()  # noqa: S314 - our own file


def assert_not_judged(outcome, code, *words):
    assert outcome.exit_code == code != 0
    assert outcome.outputs["verdict"] == "error"
    assert outcome.outputs["exit-code"] == str(code)
    assert outcome.outputs["json"] == outcome.outputs["summary"] == ""
    assert levels(outcome) == ["error"]
    for word in words:
        assert word in outcome.summary


def test_nothing_changed_is_green_and_quiet(runner):
    runner.plan = says(comparison("unchanged"))
    outcome = runner.run()
    assert (outcome.exit_code, outcome.outputs["verdict"], outcome.outputs["exit-code"]) == (0, "unchanged", "0")
    assert outcome.annotations == []
    assert "| step time | " in outcome.summary
    assert "+8.3 %" in outcome.summary


def test_regression_is_red_with_annotations_summary_and_artifacts(runner):
    runner.plan = says(comparison("regressed"))
    outcome = runner.run()
    assert outcome.exit_code == 1
    assert outcome.annotations[0] == ("error", "pipeprof: demo: regressed", HEADLINE)
    assert levels(outcome) == ["error", "error", "notice"]
    assert outcome.outputs["verdict"] == "regressed"
    assert "the wait for map `decode` grew to 2.1x" in outcome.summary
    assert outcome.outputs["json"] == str(runner.artifact("compare.json"))
    assert outcome.outputs["summary"] == str(runner.artifact("summary.md"))
    assert outcome.outputs["folder"] == str(runner.artifact(""))
    check = {"red": True, "fail_on": ["incomparable", "regressed"]}
    assert json.loads(runner.artifact("compare.json").read_text()) == comparison("regressed") | {"check": check}
    assert junit(runner).get("failures") == "2"
    assert runner.artifact("compare.html").read_text().startswith("<!DOCTYPE html>")
    assert runner.artifact("compare.md").read_text().startswith("# ")
    assert runner.artifact("pr.txt").read_text() == "7\n"


@pytest.mark.parametrize("verdict", sorted(EXIT))
@pytest.mark.parametrize("fail_on", ["regressed,incomparable", "regressed", "incomparable inconclusive"])
def test_fail_on_decides_only_about_what_it_may(runner, verdict, fail_on):
    runner.plan = says(comparison(verdict))
    outcome = runner.run(fail_on=fail_on)
    red = EXIT[verdict] != 0 and (verdict in re.split("[, ]", fail_on) or verdict == "missing")
    assert outcome.exit_code == (EXIT[verdict] if red else 0)
    assert outcome.outputs["exit-code"] == str(EXIT[verdict])
    assert outcome.outputs["verdict"] == verdict


def test_inconclusive_is_a_warning_by_default(runner):
    needed = metric(verdict="inconclusive", reps_needed=31, reason="too noisy to tell")
    runner.plan = says(comparison("inconclusive", metrics=[needed]))
    outcome = runner.run()
    assert outcome.exit_code == 0
    assert levels(outcome) == ["warning", "warning", "notice"]
    assert "about 31 repetitions per side would probably settle the change seen here" in outcome.summary
    assert "too noisy to tell" in outcome.summary
    red = runner.run(fail_on="regressed,inconclusive")
    assert red.exit_code == 4
    assert levels(red) == ["error", "error", "notice"]
    first = runner.artifact("comment.md").read_text().splitlines()[1]
    assert first.endswith("cannot tell yet: step time, and this check does not pass undecided")


@pytest.mark.parametrize("kind", ["policy", "baseline", "ci", "workload"])
@pytest.mark.parametrize("verdict", ["regressed", "incomparable", "inconclusive", "unchanged", "acknowledged"])
def test_who_edits_the_judge_does_not_pass_undecided(runner, kind, verdict):
    runner.plan = says(comparison(verdict, trust=trust([edit(kind)])))
    outcome = runner.run(fail_on="incomparable" if verdict != "incomparable" else "regressed")
    red = kind in ("policy", "baseline") and EXIT[verdict] != 0
    assert outcome.exit_code == (EXIT[verdict] if red else 0)
    titles = [title for level, title, _ in outcome.annotations if level == "error"]
    assert (f"{verdict} is not enough" in titles) == red
    if red and verdict == "inconclusive":
        assert "does not pass undecided" in runner.artifact("comment.md").read_text()


@pytest.mark.parametrize(("event", "base"), [
    (None, BASE), ({"before": "c" * 40}, "c" * 40), ({"before": "0" * 40}, "HEAD"), ({"schedule": "0 3 * * *"}, "HEAD"),
])  # fmt: skip
def test_a_baseline_and_its_settings_are_those_of_the_base(runner, event, base):
    runner.event = event or runner.event
    runner.plan = {"compare": {"stdout": json.dumps(comparison("unchanged"))}}
    assert runner.run(mode="baseline", workload="x", policy="gate.toml").exit_code == 0
    assert runner.calls()[-1]["words"][:4] == ["compare", "--format=json", f"--base-ref={base}", "--policy=gate.toml"]


def test_what_the_change_tried_stands_in_summary_and_annotations(runner):
    runner.plan = says(comparison("unchanged", trust=trust([edit(settings=[setting()])])))
    outcome = runner.run()
    assert outcome.exit_code == 0
    assert "## This change edits what it is judged by" in outcome.summary
    assert levels(outcome) == ["warning"]
    assert "`alpha` is 0.0001 instead of 0.008 (looser)" in outcome.annotations[0][2]


def test_missing_baseline_is_red_and_the_address_of_baselines_keeps_its_query(runner):
    error = "error: no baseline in `perf/resnet`\nhint: write one with pipeprof baseline write RUN --workload NAME\n"
    runner.plan = {"compare": {"stderr": error, "exit": 3}}
    outcome = runner.run(mode="baseline", workload="resnet", baseline_root="perf/")
    assert_not_judged(outcome, 3, "no baseline in `perf/resnet`", "could not be judged")
    assert outcome.annotations[0][2].endswith("(exit code 3): no baseline in `perf/resnet`")
    assert not runner.artifact("compare.json").exists()
    collect, compare = (call["words"] for call in runner.calls())
    assert collect[0] == "collect"
    assert collect[-4:] == ["--reps=5", "--", "python", "train.py"]
    assert compare[-3:] == ["--", "perf/resnet", collect[2]]
    runner.run(mode="baseline", workload="resnet", machine="epyc-2c", baseline_root="s3://bucket/x?region=eu-west-1")
    assert runner.calls()[-1]["words"][-2] == "s3://bucket/x/resnet/epyc-2c?region=eu-west-1"


def test_what_pipeprof_ended_with_is_red_whatever_fail_on_says(runner):
    runner.plan = {"ab": {"stderr": "error: the command failed: exit code 9\n", "exit": 5}}
    assert_not_judged(runner.run(fail_on="inconclusive"), 5, "the measured command failed", "exit code 9")
    runner.plan = {"collect": {"stderr": "Traceback: boom\n", "exit": 77}}
    assert_not_judged(runner.run(mode="baseline", workload="w"), 5, "Traceback: boom")
    early = "the check after 4 repetitions per side needs about 60 s more"
    runner.plan = {"ab": {"exit": 3, "stderr": f"error: stopped early: {early}\nhint: --budget\n"}}
    outcome = runner.run(fail_on="regressed")
    assert_not_judged(outcome, 3, early)
    assert "needs about 60 s more" in outcome.annotations[0][2]
    runner.plan = {"ab": {"stderr": "error: unknown key `alhpa` in pyproject.toml\n", "exit": 2}}
    assert_not_judged(runner.run(), 2, "set up wrongly", "alhpa")


def whole(**changes):
    return json.dumps(comparison("unchanged", **changes))


RELEASE = "use the action and pipeprof of the same release"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        *((text, ()) for text in ("", "  \n", "no JSON", "[]", "null", "{}", "[" * 100_000, '"unchanged"')),
        (whole() * 2, ()), (whole()[:-40], ()), (whole(metrics=[]), ()),
        (whole(schema_version=2), ("a comparison of version 2", RELEASE)),
        (whole(metrics="all"), ()), (whole(verdict="fine"), ("the verdict 'fine'", RELEASE)),
        (whole(verdict=["unchanged"]), ()), (json.dumps(comparison("regressed")), ()), (whole(exit_code=1), ()),
        (whole(exit_code=False), ()), (whole(headline=float("nan")), ()),
    ],
)  # fmt: skip
def test_output_that_is_no_comparison_is_never_green(runner, output, words):
    runner.plan = {"ab": {"stdout": output, "exit": 0}}
    assert_not_judged(runner.run(fail_on="inconclusive"), 3, *words)


def test_exit_code_without_its_comparison_is_never_green(runner):
    for how in ({"exit": 1}, {"exit": 4}, {"exit": 77}, {"signal": True}):
        runner.plan = {"ab": {"stdout": whole(), **how}}
        assert_not_judged(runner.run(fail_on="incomparable"), 3)


def test_command_reaches_the_program_word_for_word(runner):
    command = """python 'a b.py' "it's" $(touch pwned) `touch pwned` ; touch pwned\n&& touch pwned \\\n --lr=1 "x\ny" '${{ x }}'"""
    runner.plan = says(comparison("unchanged"))
    assert runner.run(command=command, budget="1h30m", policy="gate.toml").exit_code == 0
    (call,) = runner.calls()
    words = call["words"]
    assert words[:3] == ["ab", f"--base-ref={BASE}", "--new-ref=HEAD"]
    assert words[5:] == [
        "--budget=1h30m", "--policy=gate.toml", "--format=json", "--", "python", "a b.py", "it's", "$(touch", "pwned)",
        "`touch", "pwned`", ";", "touch", "pwned", "&&", "touch", "pwned", "--lr=1", "x\ny", "${{ x }}",
    ]  # fmt: skip
    assert list(runner.work.iterdir()) == []


@pytest.mark.parametrize(
    "inputs",
    [
        {"command": ""}, {"command": "python 'x"}, {"mode": "fast"}, {"base_ref": "--upload-pack=touch pwned"},
        {"base_ref": "a\nb"}, {"budget": "1; touch pwned"}, {"budget": "-1"}, {"budget": "ten"},
        {"budget": "1" * 60 + "x"}, {"budget": "1h" * 40 + "?"}, {"budget": "h"}, {"budget": "1."}, {"fail_on": ""},
        {"fail_on": "nothing"}, {"fail_on": "regressed,missing"}, {"mode": "baseline"}, {"mode": "baseline", "workload": "../../etc"},
        {"mode": "baseline", "workload": "x", "reps": "0"}, {"mode": "baseline", "workload": "x", "reps": "$(id)"},
        {"mode": "baseline", "workload": "x", "machine": "../y"},
    ],
)  # fmt: skip
def test_wrong_input_is_red_before_anything_runs(runner, inputs):
    assert_not_judged(runner.run(**inputs), 2, *(["budget"] if "budget" in inputs else []))
    assert runner.calls() == []


def test_text_of_the_comparison_is_text_everywhere(runner):
    runner.plan = says(hostile())
    outcome = runner.run()
    assert outcome.exit_code == 1
    assert levels(outcome) == ["error", *["warning"] * 3, "error", "notice"]
    assert not any(message == "pwned" for *_, message in outcome.annotations)
    for shown in (outcome.summary, runner.artifact("compare.md").read_text()):
        assert "<img" not in re.sub("`[^`\n]*`", "", shown).replace("\\<", "")
        assert "@octocat" not in re.sub("`[^`\n]*`", "", shown)
        assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", shown)
    check_html(runner.artifact("compare.html").read_text())
    assert len(junit(runner).findall(".//testcase")) == 2


def test_output_of_the_measured_command_commands_nothing(runner):
    shout = "::error::pwned\n::set-env name=X::y\n::stop-commands::z\n::z::\n::add-mask::e\n"
    runner.plan = says(comparison("unchanged"), stderr=shout)
    outcome = runner.run()
    assert outcome.annotations == []
    assert "::error::pwned" in outcome.log
    runner.plan = {"collect": {"stdout": shout, "stderr": shout}, "compare": {"exit": 3, "stderr": shout + "```\n<b>"}}
    outcome = runner.run(mode="baseline", workload="x")
    assert_not_judged(outcome, 3)
    assert outcome.summary.count("````") == 2, "what is said cannot end the block that it stands in"
    assert ":\\x3aerror::pwned" in outcome.summary


def test_what_the_command_left_behind_is_neither_waited_for_nor_obeyed(runner):
    left = "sleep 5; echo ::error::late; echo ::error::late >&2; sleep 100"
    runner.plan = {"collect": {"leaves": left}, "compare": {"stdout": json.dumps(comparison("unchanged"))}}
    outcome = runner.run(mode="baseline", workload="x")
    assert outcome.exit_code == 0
    assert outcome.annotations == []


def test_measured_command_cannot_steer_the_job(runner):
    secrets = ("GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    runner.secrets = dict.fromkeys(secrets, "t") | {"MINE": "1"}
    runner.plan = says(comparison("unchanged"))
    runner.run()
    (call,) = runner.calls()
    gone = {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY", *secrets}
    assert not gone & set(call["env"])
    assert (call["env"]["MINE"], call["env"]["GITHUB_WORKSPACE"]) == ("1", str(runner.work))


def test_a_huge_comparison_fits_the_summary_and_has_at_most_ten_annotations(runner):
    runner.plan = says(comparison("regressed", metrics=[metric("m" * 190 + str(n), "regressed") for n in range(6000)]))
    outcome = runner.run()
    assert (outcome.exit_code, len(outcome.annotations)) == (1, 10)
    assert 900_000 < len(outcome.summary.encode()) <= 1024 * 1024
    assert "The rest is in the artifact" in outcome.summary[-200:]
    assert len(runner.artifact("compare.md").read_bytes()) > 1024 * 1024


@pytest.mark.parametrize(("event", "base"), [
    ({"before": "c" * 40}, "c" * 40), ({"merge_group": {"base_sha": "d" * 40}}, "d" * 40), ({"before": "0" * 40}, None),
    ({"before": "--exec=x"}, None), ({}, None),
])  # fmt: skip
def test_base_of_other_events(runner, event, base):
    runner.event = event
    runner.plan = says(comparison("unchanged"))
    outcome = runner.run()
    if base is None:
        assert_not_judged(outcome, 2, "base-ref")
    else:
        assert runner.calls()[0]["words"][1] == f"--base-ref={base}"
        assert not runner.artifact("pr.txt").exists()


def test_given_base_wins(runner):
    runner.plan = says(comparison("unchanged"))
    runner.run(base_ref="origin/main")
    assert runner.calls()[0]["words"][1] == "--base-ref=origin/main"


def noting(runner, note):
    """A Python that notes in `pip` how it is called to install something."""
    text = f"""#!/bin/bash
if [ "$1" = -I ]; then exec {shlex.quote(sys.executable)} "$@"; fi
{note} >> "{runner.folder}/pip"
"""
    return str(executable(runner.bin / "some python", text))


@pytest.mark.parametrize(("install", "what"), [
    ("action", str(ROOT / "ci" / "..")), ("pipeprof==1.0", "pipeprof==1.0"), ("$(touch pwned); x", "$(touch pwned); x"),
])  # fmt: skip
def test_install_takes_its_input_as_one_word(runner, install, what):
    runner.plan = says(comparison("unchanged"))
    assert runner.run(install=install, python=noting(runner, 'printf "%s\\n" "$@"')).exit_code == 0
    words = (runner.folder / "pip").read_text().splitlines()
    assert words[:3] == ["-m", "pip", "install"]
    assert words[-2:] == ["--", what]
    assert list(runner.work.iterdir()) == []


def test_locked_installs_nothing_but_files_with_hashes(runner):
    runner.plan = says(comparison("unchanged"))
    assert runner.run(install="locked", python=noting(runner, 'echo "$*"')).exit_code == 0
    fixed, own = [line.split() for line in (runner.folder / "pip").read_text().splitlines()]
    assert "--require-hashes" in fixed
    files = [str(ROOT / "ci" / "constraints" / name) for name in ("gate.txt", "build.txt")]
    assert [word for word in fixed if word.endswith(".txt")] == files
    assert {"--no-index", "--no-deps", "--no-build-isolation"} < set(own)
    assert own[-2:] == ["--", str(ROOT / "ci" / "..")]


def test_failed_install_stops_the_job(runner):
    python = executable(runner.bin / "python-broken", "#!/bin/bash\nexit 9\n")
    assert runner.run(install="action", python=str(python)).exit_code == 9
    assert runner.calls() == []


def test_every_input_is_used_and_none_reaches_a_script():
    steps = action()["runs"]["steps"]
    used = " ".join(value for step in steps for value in step["env"].values())
    assert all(f"inputs.{name} " in used for name in action()["inputs"])
    assert not any("${{" in step["run"] for step in steps)


def asks():
    confirmation = {"state": "wanted", "metrics": ["step_time_median"], "first": None}
    return comparison("regressed", confirmation=confirmation)


def test_a_regression_by_time_alone_is_left_to_the_job_behind_where_there_is_one(runner):
    runner.plan = says(asks())
    later = runner.run(confirm="later")
    assert (later.exit_code, later.outputs["verdict"], later.outputs["confirm"]) == (0, "regressed", "wanted")
    assert levels(later) == ["warning", "warning", "notice"]
    assert "not confirmed by another yet" in runner.artifact("comment.md").read_text().splitlines()[1]
    alone = runner.run()
    assert (alone.exit_code, alone.outputs["confirm"]) == (1, "")
    assert alone.annotations[0][0] == "error"


@pytest.mark.parametrize("verdict", ["regressed", "missing", "unchanged"])
def test_what_no_other_runner_is_asked_for_is_decided_by_the_first_job(runner, verdict):
    runner.plan = says(comparison(verdict))
    outcome = runner.run(confirm="later")
    assert (outcome.exit_code, outcome.outputs["confirm"]) == (EXIT[verdict], "")


def first_job(runner, content):
    folder = runner.temp / "first"
    folder.mkdir()
    (folder / "compare.json").write_text(json.dumps(content))
    return str(folder)


@pytest.mark.parametrize(("state", "verdict"), [("confirmed", "regressed"), ("not_confirmed", "unchanged")])
def test_the_second_job_is_red_if_it_says_the_same(runner, state, verdict):
    said = {"state": state, "metrics": ["step_time_median"], "first": {"headline": HEADLINE}}
    runner.plan = says(comparison(verdict, confirmation=said))
    folder = first_job(runner, asks())
    outcome = runner.run(confirm=folder)
    assert outcome.exit_code == EXIT[verdict]
    assert f"--confirms={folder}/compare.json" in runner.calls()[0]["words"]
    assert ("**Not confirmed:**" in runner.artifact("comment.md").read_text()) == (state == "not_confirmed")


@pytest.mark.parametrize("content", [comparison("unchanged"), comparison("regressed")])
def test_the_second_job_measures_nothing_where_the_first_has_decided_or_left_nothing(runner, content):
    assert runner.run(confirm=first_job(runner, content)).exit_code == 0
    assert runner.calls() == []
    assert_not_judged(runner.run(confirm=str(runner.temp / "nowhere")), 3, "confirm")
