"""The companion of the check: keeps the one comment on the pull request up to date, a part of it for each workload.

Runs in a `workflow_run` workflow, on the default branch's code and with a token that may write comments. What it is
given comes from a run of anybody's code, so nothing of it is trusted: the pull request must have the run's commit as
its head (GitHub is asked), sizes are capped, no file is unpacked, and the text is made here, from the comparison's
numbers, by this checkout's `pipeprof render`. Which files of the gate the pull request edits GitHub is asked, too.
Standard library only.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from pathlib import Path
from typing import Any

MARK = "<!-- pipeprof-gate:"
MOST_ANSWER = 16 * 1024 * 1024
MOST_ARTIFACT = 32 * 1024 * 1024
MOST_JSON = 16 * 1024 * 1024
MOST_BODY = 65_000
MOST_PAGES = 30  # of 100 files: GitHub lists no more than 3,000 of a pull request
MOST_ARTIFACTS = 20  # workloads of one run
UNEXPECTED = (OSError, ValueError, KeyError, TypeError, AttributeError, subprocess.SubprocessError)
# Files by which a change is judged; `pipeprof` says the same from git, but in a job that the pull request may steer.
POLICY, PROJECT, ALERTS = "pipeprof.toml", "pyproject.toml", "pipeprof-alerts.jsonl"
BASELINES = ("baseline.json", "measures.parquet", "facts.json", "facts.json.zst", "history.jsonl")
CHECKS = re.compile(
    r"\.(github|ci|circleci|buildkite|gitlab|woodpecker)/.*|\.gitlab-ci\.yml|\.travis\.yml|Jenkinsfile|"
    r"(azure|bitbucket)-pipelines\.yml"
)
FOR_PEOPLE = re.compile(r"(.*/)?ISSUE_TEMPLATE/.*|\.github/FUNDING\.yml|.*\.md")  # beside the checks, and runs nowhere
WORKFLOWS = Path(".github/workflows")  # of the default branch, where this runs
LOCAL_ACTION = re.compile(rb"\buses[\"']?\s*:\s*[\"']?\./([^\s\"'#,}]*)")
POSSIBLE = "possible_policy"  # a file that may be one, or hold one
NOT_LISTED = "not_listed"  # files beyond those that GitHub lists of a pull request
KINDS = ("policy", "baseline", "alerts", POSSIBLE, NOT_LISTED, "ci")
TABLE = re.compile(r"\s*\[\[?([^\[\],#]+)\]\]?\s*(#.*)?")
# In a changed line, or in the name of its table: the gate's own, or what may hide it: escapes, and texts over lines.
GATE = re.compile(r"pipeprof|\\|\"\"\"|'''")
CHANGES = {"added": "added", "removed": "removed"}
TIMEOUT_S = 30


class Refused(Exception):  # noqa: N818 - what is refused, not an error of ours
    """Nothing is posted; `code` is 0 when that is in order."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.message, self.code = message, code


class Redirect(urllib.request.HTTPRedirectHandler):
    """Follows to the artifact's storage, never from https to something else."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The next request; the token stays behind, since it is an unredirected header."""
        if urllib.parse.urlsplit(newurl).scheme != urllib.parse.urlsplit(req.full_url).scheme:
            raise Refused("the artifact's address leads elsewhere")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Api:
    """GitHub's REST interface, as one repository sees it."""

    def __init__(self, env: dict[str, str]) -> None:
        self.root = env.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
        self.token = env.get("GITHUB_TOKEN", "")
        self.repository = env.get("GITHUB_REPOSITORY", "")
        self.opener = urllib.request.build_opener(Redirect)
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", self.repository) or not self.root.startswith(("https://", "http://")):
            raise Refused("GITHUB_REPOSITORY or GITHUB_API_URL is not set as GitHub sets it")

    def ask(self, path: str, method: str = "GET", body: dict[str, Any] | None = None) -> Any:
        """The decoded answer of a path below the repository."""
        return json.loads(self.read(f"{self.root}/repos/{self.repository}/{path}", MOST_ANSWER, method, body))

    def read(self, address: str, most: int, method: str = "GET", body: dict[str, Any] | None = None) -> bytes:
        """The answer's bytes; Refused when there are more than `most`."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(address, data=data, method=method)  # noqa: S310 - checked above
        request.add_header("Accept", "application/vnd.github+json")
        request.add_header("X-GitHub-Api-Version", "2022-11-28")
        request.add_header("User-Agent", "pipeprof-gate")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        with self.opener.open(request, timeout=TIMEOUT_S) as answer:
            found: bytes = answer.read(most + 1)
        if len(found) > most:
            raise Refused(f"GitHub's answer has more than {most} bytes")
        return found


def read_run(env: dict[str, str]) -> dict[str, Any]:
    """The finished run that started this workflow, from the event: GitHub's words, not the run's."""
    event = json.loads(Path(env["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    run: dict[str, Any] = event["workflow_run"]
    if run.get("event") != "pull_request":
        raise Refused("the run was not of a pull request", code=0)
    if not isinstance(run.get("id"), int) or not re.fullmatch(r"[0-9a-f]{40,64}", str(run.get("head_sha"))):
        raise Refused("the event names no run")
    return run


def artifacts(api: Api, run_id: int, name: str) -> list[int]:
    """The numbers of the run's artifacts of this name, and of those with a workload behind it (`NAME-resnet`)."""
    listed = api.ask(f"actions/runs/{run_id}/artifacts?per_page=100")["artifacts"]
    found = [one for one in listed if not one.get("expired")]
    named = [one for one in found if one["name"] == name or str(one["name"]).startswith(f"{name}-")]
    if not named:
        raise Refused(f"the run has no artifact `{name}`", code=0)
    newest = {str(one["name"]): int(one["id"]) for one in sorted(named, key=lambda one: int(one["id"]))}  # re-runs add
    return list(newest.values())[:MOST_ARTIFACTS]


def read_artifact(api: Api, number: int) -> tuple[bytes, bytes]:
    """The bytes of `pr.txt` and `compare.json` of an artifact."""
    address = f"{api.root}/repos/{api.repository}/actions/artifacts/{number}/zip"
    try:
        with zipfile.ZipFile(io.BytesIO(api.read(address, MOST_ARTIFACT))) as archive:
            return _member(archive, "pr.txt", 32), _member(archive, "compare.json", MOST_JSON)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OSError, zlib.error) as error:
        if isinstance(error, urllib.error.URLError):
            raise
        raise Refused(f"the artifact is damaged: {type(error).__name__}") from error


def _member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    try:
        with archive.open(name) as stream:
            data = stream.read(most + 1)
    except KeyError:
        raise Refused(f"the artifact has no {name}: nothing was judged", code=0) from None
    if len(data) > most:
        raise Refused(f"{name} has more than {most} bytes")
    return data


def pull_request(api: Api, given: bytes, run: dict[str, Any]) -> int:
    """The number, once GitHub has said that it is open, of this repository, and that the run's commit is its head."""
    text = given.decode("ascii", "replace").strip()
    if not re.fullmatch(r"[1-9][0-9]{0,9}", text, re.ASCII):
        raise Refused("pr.txt holds no number")
    pull = api.ask(f"pulls/{text}")
    if str(pull["base"]["repo"]["full_name"]).lower() != api.repository.lower():
        raise Refused("the pull request is not of this repository")
    if pull["head"]["sha"] != run["head_sha"]:
        raise Refused("the run's commit is not the head of that pull request (any more)", code=0)
    if pull.get("state") != "open":
        raise Refused("the pull request is closed", code=0)
    return int(text)


def edited(api: Api, number: int) -> list[dict[str, Any]]:
    """Files of policies, baselines and checks that the pull request edits, as the comparison's `trust` lists them."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    actions = local_actions()
    for page in range(1, MOST_PAGES + 1):
        files = api.ask(f"pulls/{number}/files?per_page=100&page={page}")
        for file in files:
            for path in filter(None, (file.get("filename"), file.get("previous_filename"))):
                kind = kind_of(str(path), file.get("patch"), actions)
                if kind:
                    place = str(path).rpartition("/")[0] if kind == "baseline" else str(path)
                    change = CHANGES.get(str(file.get("status")), "edited")
                    found.setdefault((kind, place), {"kind": kind, "path": place, "change": change})
        if len(files) < 100:
            break
    else:
        listed = f"{100 * MOST_PAGES:,}"
        found[NOT_LISTED, listed] = {"kind": NOT_LISTED, "path": listed, "change": "edited"}
    return sorted(found.values(), key=lambda one: (KINDS.index(one["kind"]), one["path"]))


def local_actions() -> set[str]:
    """Folders of actions of the repository itself that its workflows use (`uses: ./ci`); of `./` its file."""
    texts = [path.read_bytes() for path in sorted(WORKFLOWS.glob("*.y*ml")) if path.is_file()]
    named = {word.decode("utf-8", "replace").rstrip("/") for text in texts for word in LOCAL_ACTION.findall(text)}
    return (named - {""}) | ({"action.yml", "action.yaml"} if "" in named else set())


def kind_of(path: str, patch: object, actions: set[str]) -> str:
    """One of KINDS, or nothing. `patch` is the part of the file that GitHub shows; it shows none of a large one.

    `actions`: folders of actions that workflows use. Which file the check was given as its policy only the run says,
    so any TOML may be it.
    """
    name = path.rpartition("/")[2]
    if name == POLICY:
        return "policy"
    if name in BASELINES:
        return "baseline"
    if path == ALERTS:
        return "alerts"
    if (CHECKS.fullmatch(path) and not FOR_PEOPLE.fullmatch(path)) or any(
        path == one or path.startswith(one + "/") for one in actions
    ):
        return "ci"
    untouched = name == PROJECT and isinstance(patch, str) and leaves_gate(patch)
    return POSSIBLE if name.endswith(".toml") and not untouched else ""


def leaves_gate(patch: str) -> bool:
    """Whether a patch shows that the gate's table of a pyproject.toml stays: each changed line is in another one."""
    table: str | None = None  # not known
    for line in patch.split("\n"):
        sign, text = line[:1], line[1:]
        if sign == "@":
            table = "" if re.match(r"@@ -[01][ ,]", line) else None  # a file begins outside of all tables
            continue
        if sign in ("+", "-") and (table is None or GATE.search(f"{table} {text}")):
            return False
        header = TABLE.fullmatch(text)
        table = header[1] if header else table
    return True


def with_edits(comparison: bytes, seen: list[dict[str, Any]]) -> bytes:
    """The comparison with what GitHub saw first among its `trust.edits`; as it is when it is no comparison.

    Where the run tells of the same file, its words stand there: they have the settings.
    """
    try:
        content = json.loads(comparison)
        trust = content.get("trust") or {"policy": {"origin": "unknown"}}
        told = {(one["kind"], one["path"]): one for one in trust.get("edits") or []}
        keys = [(one["kind"].replace(POSSIBLE, "policy"), one["path"]) for one in seen]
        edits = [told.pop(key, one) for key, one in zip(keys, seen, strict=True)]
        trust["edits"] = [*edits, *told.values()]
        return json.dumps(content | ({"trust": trust} if trust["edits"] else {})).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return comparison


def body_of(comparison: bytes) -> tuple[str, bool]:
    """(text, whether it has nothing to say), by `pipeprof render`: it refuses what is none and escapes every word."""
    program = shutil.which("pipeprof") or shutil.which("pipeprof", path=str(Path(sys.executable).parent))
    if program is None:
        raise Refused("there is no `pipeprof` on PATH")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "compare.json"
        source.write_bytes(comparison)
        words = [program, "render", str(source), "--to", "github-comment"]
        env = {name: value for name, value in os.environ.items() if name != "GITHUB_TOKEN"}
        done = subprocess.run(words, capture_output=True, env=env, timeout=120, check=False)
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode or not text.startswith(MARK):
        raise Refused("the artifact's compare.json is no comparison")
    content = json.loads(comparison)
    edits = (content.get("trust") or {}).get("edits") or []
    return text, content["verdict"] == "unchanged" and not any(one["kind"] in KINDS for one in edits)


def finish(text: str, run: dict[str, Any]) -> str:
    """The body with a link to the run, whose address GitHub gave."""
    address = str(run.get("html_url", ""))
    link = f"\n[The run and its artifacts]({address})\n" if re.fullmatch(r"https?://[\w.:/-]+", address) else ""
    return text[: MOST_BODY - len(link)] + link


def own_comment(api: Api, number: int, login: str) -> dict[str, Any] | None:
    """The first comment that this bot wrote and that begins with a mark."""
    for page in range(1, MOST_PAGES + 1):
        found = api.ask(f"issues/{number}/comments?per_page=100&page={page}")
        for comment in found:
            if (comment.get("user") or {}).get("login") == login and str(comment.get("body")).startswith(MARK):
                return dict(comment)
        if len(found) < 100:
            return None
    raise Refused(f"more than {MOST_PAGES * 100} comments")


def parts_of(body: str) -> dict[str, str]:
    """The parts of a comment by their marks: one for each workload."""
    parts: dict[str, str] = {}
    mark = ""
    for line in body.replace("\r\n", "\n").splitlines(keepends=True):
        mark = line.strip() if line.startswith(MARK) else mark
        parts[mark] = parts.get(mark, "") + line
    return parts


def whole(parts: dict[str, str]) -> str:
    """One body of all parts; where they do not fit, the longest lose what is folded away."""
    shown = {mark: parts[mark].strip() + "\n" for mark in sorted(parts)}
    for mark in sorted(shown, key=lambda mark: len(shown[mark]), reverse=True):
        if len("\n".join(shown.values())) > MOST_BODY:
            shown[mark] = shown[mark].partition("<details>")[0] + "All numbers are in the artifacts of the run.\n"
    return "\n".join(shown.values())[:MOST_BODY]


def post(api: Api, number: int, parts: dict[str, str], quiet: set[str], login: str) -> str:
    """Creates, updates or leaves the one comment; says which. A `quiet` part is left out where there is none yet."""
    old = own_comment(api, number, login)
    before = parts_of(str(old["body"])) if old else {}
    after = before | {mark: text for mark, text in parts.items() if mark not in quiet or mark in before}
    if not after:
        return "nothing to say: unchanged, and there is no comment"
    body = whole(after)
    if old is None:
        api.ask(f"issues/{number}/comments", "POST", {"body": body})
        return "created the comment"
    if str(old["body"]).replace("\r\n", "\n").strip() == body.strip():
        return "left the comment: it says the same"
    api.ask(f"issues/comments/{int(old['id'])}", "PATCH", {"body": body})
    return "updated the comment"


def part(api: Api, run: dict[str, Any], artifact: int) -> tuple[int, str, bool]:
    """(number of the pull request, text, whether it has nothing to say) of one artifact."""
    given, comparison = read_artifact(api, artifact)
    number = pull_request(api, given, run)
    text, quiet = body_of(with_edits(comparison, edited(api, number)))
    return number, finish(text, run), quiet


def main() -> int:
    """The exit code: 0 when the comment is as it should be, or when there is nothing to say."""
    env = dict(os.environ)
    found: dict[int, dict[str, str]] = {}
    quiet: set[str] = set()
    codes = [0]
    try:
        run = read_run(env)
        api = Api(env)
        for artifact in artifacts(api, run["id"], env.get("PIPEPROF_ARTIFACT", "pipeprof-gate")):
            try:
                number, text, silent = part(api, run, artifact)
            except (Refused, *UNEXPECTED) as error:  # another workload has its say all the same
                codes.append(told(*meant(error)))
                continue
            mark = text.partition("\n")[0].strip()
            found.setdefault(number, {})[mark] = text
            quiet = quiet | {mark} if silent else quiet - {mark}  # of two runners the second has the last word
        for number, parts in found.items():
            told(post(api, number, parts, quiet, env.get("PIPEPROF_BOT_LOGIN", "github-actions[bot]")), 0)
    except (Refused, *UNEXPECTED) as error:
        return told(*meant(error))
    return max(codes)


def meant(error: Exception) -> tuple[str, int]:
    """What an error is called, and its exit code."""
    if isinstance(error, Refused):
        return error.message, error.code
    if isinstance(error, urllib.error.HTTPError):
        return f"GitHub answered {error.code} to {error.url}", 1
    return f"unexpected error: {type(error).__name__}", 1


def told(words: str, code: int) -> int:
    """Says it on one line of the log; gives the code."""
    line = re.sub(r"[^\x20-\x7e]", "?", words)
    sys.stdout.write(f"::error title=pipeprof comment::{line.replace('%', '%25')}\n" if code else f"pipeprof: {line}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
