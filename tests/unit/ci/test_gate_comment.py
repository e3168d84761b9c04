"""The one comment on a pull request: created, kept up to date, left alone, and never a stranger's words."""

import json
import os
import re
import subprocess
import sys

import pytest
from action_steps import FAKE, ROOT, executable
from comparisons import HEADLINE, comparison, edit, hostile, metric, setting, trust
from fake_github import BOT, HEAD, REPOSITORY, packed
from shebang import SHEBANG

RUN = "https://github.com/some-one/training/actions/runs/11"
MARK = "<!-- pipeprof-gate:demo -->"


@pytest.fixture
def comment(github, tmp_path):
    """`comment(content)` runs ci/comment.py on an artifact with that comparison; gives (exit code, log)."""
    executable(tmp_path / "pipeprof", SHEBANG + FAKE.read_text(encoding="utf-8"))

    def run(content=None, run=None, **files):
        if content is not None:
            github.artifact = packed(**({"pr_txt": "7\n", "compare_json": json.dumps(content)} | files))
        event = {"id": 11, "event": "pull_request", "head_sha": HEAD, "html_url": RUN}
        (tmp_path / "event.json").write_text(json.dumps({"workflow_run": event | (run or {})}))
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_API_URL": github.url, "GITHUB_REPOSITORY": REPOSITORY,
               "GITHUB_TOKEN": "secret", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")}  # fmt: skip
        words = [sys.executable, "-I", str(ROOT / "ci" / "comment.py")]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=120)
        assert done.stderr == ""
        return done.returncode, done.stdout

    return run


def test_first_comment_is_created_and_the_same_words_are_left_alone(comment, github):
    code, log = comment(comparison("regressed"))
    assert (code, "created" in log) == (0, True)
    (one,) = github.comments
    begin = f"{MARK}\n### Performance of `demo`: slower than before: step time +8.3 %, because the "
    assert one["body"].startswith(begin)
    assert HEADLINE.partition(" [")[0] in one["body"]
    assert one["body"].endswith(f"[The run and its artifacts]({RUN})\n")
    one["body"] = one["body"].replace("\n", "\r\n").rstrip()
    code, log = comment(comparison("regressed"))
    assert (code, "left" in log) == (0, True)
    assert len(github.written()) == 1


@pytest.mark.parametrize("before", [1, 250])
def test_comment_is_updated_in_place_on_a_later_page_too(comment, github, before):
    for _ in range(before):
        github.say("octocat", "looks good")
    github.say(BOT, f"{MARK}\nold words")
    code, log = comment(comparison("improved"))
    assert (code, "updated" in log) == (0, True)
    assert github.written() == [("PATCH", f"/repos/{REPOSITORY}/issues/comments/{100 + before}")]
    assert "improved" in github.comments[-1]["body"]
    assert {one["body"] for one in github.comments[:-1]} == {"looks good"}


def test_nothing_is_said_about_nothing_but_an_old_alarm_is_taken_back(comment, github):
    code, log = comment(comparison("unchanged"))
    assert (code, "nothing to say" in log) == (0, True)
    assert github.written() == []
    github.say(BOT, f"{MARK}\n## regressed")
    assert comment(comparison("unchanged"))[0] == 0
    assert "unchanged" in github.comments[0]["body"]


def test_what_a_pull_request_edits_is_asked_of_github_not_of_its_own_run(comment, github):
    patch = "@@ -8,2 +8,4 @@\n [tool.ruff]\n line-length = 120\n+[tool.pipeprof.gate]\n+alpha = 0.1"
    other = "@@ -8,2 +8,3 @@\n [tool.ruff]\n line-length = 120\n+preview = true"
    github.files = [{"filename": name, "status": "modified", "patch": other} for name in ("a.py", "b/pyproject.toml")]
    github.files += [
        {"filename": "pyproject.toml", "status": "modified", "patch": patch},
        {"filename": "baselines/w/m/baseline.json", "status": "added"},
        {"filename": "gate.toml", "previous_filename": "pipeprof.toml", "status": "renamed"},
        {"filename": ".github/workflows/gate.yml", "status": "removed"},
    ]
    code, log = comment(comparison("unchanged"))
    assert (code, "created" in log) == (0, True)
    lines = [line for line in github.comments[0]["body"].splitlines() if line.startswith("- this change")]
    assert [line.partition(":")[0].partition(",")[0] for line in lines] == [
        "- this change edits the policy `pipeprof.toml`",
        "- this change adds the baseline in `baselines/w/m`",
        "- this change edits `gate.toml`",
        "- this change edits `pyproject.toml`",
        "- this change removes `.github/workflows/gate.yml`",
    ]


HUNK = "@@ -40,7 +40,7 @@ metric = 1\n"
ACKNOWLEDGED = (
    ' metric = "data_wait"\n max_ratio = 2.0\n reason = "wanted"\n-expires = "2026-01-01"\n+expires = "9999-01-01"\n'
)
OTHER = " [tool.ruff]\n line-length = 100\n"


@pytest.mark.parametrize(
    ("patch", "possible"),
    [
        (None, True),  # too large to be shown
        (HUNK + ACKNOWLEDGED, True),
        (HUNK + " [[tool.pipeprof.gate.acknowledge]]\n" + ACKNOWLEDGED, True),
        (HUNK + OTHER + "+[tool.pipeprof.gate]\n+alpha = 0.1", True),
        (HUNK + OTHER + '+[tool."\\u0070ipeprof".gate]\n+alpha = 0.1', True),
        (HUNK + OTHER + '+x = """\n [tool.pipeprof.gate]\n alpha = 0.1\n [tool.ty]\n+"""', True),
        (HUNK + " looks = [5]\n+[tool.ty]\n alpha = 0.1\n", True),
        (HUNK + OTHER + "-preview = true\n+preview = false\n" + HUNK + ACKNOWLEDGED, True),
        (HUNK + OTHER + "-preview = true\n+preview = false\n", False),
        (HUNK + " [tool.pipeprof.gate]\n alpha = 0.1\n \n" + OTHER + "+preview = true\n", False),
        ('@@ -0,0 +1,3 @@\n+[project]\n+name = "x"\n+[tool.ruff]', False),
    ],
)
def test_an_edit_that_the_patch_does_not_rule_out_is_told_as_possible(comment, github, patch, possible):
    file = {"filename": "pyproject.toml", "status": "modified"}
    github.files = [file | ({} if patch is None else {"patch": patch})]
    assert comment(comparison("unchanged"))[0] == 0
    assert bool(github.comments) == possible
    if possible:
        (one,) = github.comments
        said = "**This change may edit what it is judged by:** it edits `pyproject.toml`, which may hold settings"
        assert said in one["body"].partition("<details>")[0]
        assert "**What to do:** nothing.\n" in one["body"]


def test_any_toml_may_be_the_policy_that_the_check_was_given(comment, github):
    github.files = [{"filename": "perf/gate.toml", "status": "modified", "patch": HUNK + OTHER + "+preview = true"}]
    assert comment(comparison("unchanged"))[0] == 0
    assert "this change edits `perf/gate.toml`, which may hold settings of the gate" in github.comments[0]["body"]
    assert comment(comparison("unchanged", trust=trust([edit(path="perf/gate.toml", settings=[setting()])])))[0] == 0
    body = github.comments[0]["body"]
    assert "this change edits the policy `perf/gate.toml` (`alpha` is 0.0001 instead of 0.008" in body
    assert "which may hold" not in body


@pytest.mark.parametrize(("kind", "told"), [("policy", True), ("baseline", True), ("ci", True), ("workload", False)])
def test_edits_that_the_run_tells_make_a_comment(comment, github, kind, told):
    assert comment(comparison("unchanged", trust=trust([edit(kind, "x/y")])))[0] == 0
    assert bool(github.comments) == told


def test_details_of_the_run_stand_beside_what_github_saw(comment, github):
    told = [edit(f"made up {number}", "x") for number in range(30)] + [edit(settings=[setting()])]
    github.files = [{"filename": "pipeprof.toml", "status": "modified"}]
    assert comment(comparison("improved", trust=trust(told)))[0] == 0
    lines = [line for line in github.comments[0]["body"].splitlines() if line.startswith("- this change")]
    assert "`alpha` is 0.0001 instead of 0.008" in lines[0]
    assert len(lines) == 12


@pytest.mark.parametrize(("number", "told"), [(150, False), (2998, False), (2999, True)])
def test_where_the_list_of_files_ended_is_told(comment, github, number, told):
    github.files = [{"filename": f"{number}.py", "status": "added"} for number in range(number)]
    github.files += [{"filename": "pipeprof.toml", "status": "added"}]
    assert comment(comparison("unchanged"))[0] == 0
    (one,) = github.comments
    assert "this change adds the policy `pipeprof.toml`" in one["body"]
    assert ("GitHub lists only 3,000 files of this change: it may edit more than is told here" in one["body"]) == told


def test_only_the_bots_own_comment_is_touched(comment, github):
    github.say("octocat", f"{MARK}\nmine")
    github.say(BOT, f"a quote: {MARK}")
    assert comment(comparison("regressed"))[0] == 0
    assert github.written() == [("POST", f"/repos/{REPOSITORY}/issues/7/comments")]


def test_a_pull_request_has_one_comment_with_a_part_for_each_workload(comment, github):
    for name in ("resnet", "bert", "quiet", "resnet"):
        assert comment(comparison("unchanged" if name == "quiet" else "regressed", workload=name))[0] == 0
    (one,) = github.comments
    heads = re.findall(r"^(?:<!-- pipeprof-gate:.*|### Performance of `\w+`)", one["body"], re.MULTILINE)
    assert heads == [
        "<!-- pipeprof-gate:bert -->", "### Performance of `bert`",
        "<!-- pipeprof-gate:resnet -->", "### Performance of `resnet`",
    ]  # fmt: skip
    assert github.written()[-1][0] == "PATCH"
    assert comment(comparison("unchanged", workload="bert"))[0] == 0
    assert "### Performance of `bert`: no slower than before" in one["body"]
    assert "### Performance of `resnet`: slower than before" in one["body"]


def test_token_does_not_follow_to_the_storage(comment, github):
    github.artifacts = [{"id": number, "name": "pipeprof-gate", "expired": False} for number in (5, 4, 3)]
    assert comment(comparison("regressed"))[0] == 0
    seen = {path: token for _, path, token in github.requests}
    assert seen["/storage/blob"] is None
    assert seen[f"/repos/{REPOSITORY}/pulls/7"] == "Bearer secret"
    # of a run that was repeated the newest artifact counts
    assert [path.rpartition("/actions/")[2] for path in seen if path.endswith("/zip")] == ["artifacts/5/zip"]


@pytest.mark.parametrize(
    "number", ["", "7; touch x", "../../issues/1", "-7", "0", "7\n8", "\uff17", "1" * 31, "1" * 5000, "\0"]
)
def test_pull_request_must_be_a_number(comment, github, number):
    code, log = comment(comparison("regressed"), pr_txt=number)
    assert (code, log.startswith("::error ")) == (1, True)
    assert github.written() == []


def test_pull_request_must_have_the_commit_of_the_run_and_be_open_here(comment, github):
    mine = dict(github.pull)
    for change, code, said in (
        ({"head": {"sha": "c" * 40}}, 0, "not the head"), ({"state": "closed"}, 0, ""),
        ({"base": {"repo": {"full_name": "some-one/else"}}}, 1, "::error "),
    ):  # fmt: skip
        github.pull = mine | change
        found, log = comment(comparison("regressed"))
        assert (found, said in log) == (code, True)
    github.pull = mine
    code, log = comment(comparison("regressed"), pr_txt="8")
    assert (code, "GitHub answered 404" in log) == (1, True)
    assert github.written() == []


def test_run_that_judged_nothing_gets_no_comment(comment, github):
    github.artifact = packed(pr_txt="7\n")
    assert comment()[0] == 0
    github.artifacts = []
    assert comment()[0] == 0
    assert comment(run={"event": "push"})[0] == 0
    assert github.written() == []


def changed_inside():
    data = bytearray(packed(pr_txt="7", compare_json=json.dumps(comparison())))
    at = data.index(b"compare.json") + 20
    data[at : at + 8] = b"\xff" * 8
    return bytes(data)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no zip", packed(pr_txt="7", compare_json="{}"),
                                  packed(pr_txt="7", compare_json="[" * 100_000),
                                  packed(pr_txt="7", compare_json=" " * (17 * 1024 * 1024)),
                                  b" " * (33 * 1024 * 1024), changed_inside()], ids=range(7))  # fmt: skip
def test_damaged_or_huge_artifact_is_refused(comment, github, data):
    github.artifact = data
    code, log = comment()
    assert (code, log.count("\n"), log.startswith("::error ")) == (1, 1, True)
    assert github.written() == []


def test_words_of_the_artifact_are_text(comment, github):
    assert comment(hostile(), comment_md="[click](https://evil.example)")[0] == 0
    body = github.comments[0]["body"]
    outside = re.sub("`[^`\n]*`", "", body)
    assert "click" not in body
    assert "://evil" not in body
    assert "<img" not in outside.replace("\\<", "")
    assert "@octocat" not in outside
    assert re.fullmatch(r"<!-- pipeprof-gate:[\w.-]* -->", body.partition("\n")[0])


def test_long_comparisons_fit_a_comment_and_parts_lose_what_is_folded_away(comment, github):
    many = [metric(f"m{n}" * 30, "regressed") for n in range(2000)]
    assert comment(comparison("regressed", metrics=many))[0] == 0
    body = github.comments[0]["body"]
    assert 50_000 < len(body.encode()) < 65_536
    assert "The rest is in the artifact" in body
    assert body.rstrip().endswith("/actions/runs/11)")
    github.comments.clear()
    for name in ("one", "two", "three"):
        assert comment(comparison("regressed", metrics=many, workload=name))[0] == 0
    (one,) = github.comments
    assert len(one["body"]) <= 65_000
    assert one["body"].count("### Performance of `") == 3
    assert one["body"].count("All numbers are in the artifacts of the run.") == 2
    assert one["body"].count("<details>") == one["body"].count("</details>")


def test_refusal_by_github_is_an_error(comment, github):
    github.refuse = {"POST"}
    code, log = comment(comparison("regressed"))
    assert (code, "GitHub answered 403" in log) == (1, True)
    assert "secret" not in log
