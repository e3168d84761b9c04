"""The GitHub check: runs pipeprof on the user's command, shows what it found, and decides green or red.

Thin: measuring, judging and rendering are `pipeprof`'s. Standard library only. Everything comes in through variables
(PIPEPROF_GATE_*, GitHub's own), nothing is put into a shell. Fails closed: only a judged comparison can be green.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

# Exit codes of pipeprof, and the verdicts that belong to them.
EXIT = {
    "unchanged": 0, "improved": 0, "acknowledged": 0, "regressed": 1, "incomparable": 3, "missing": 3,
    "inconclusive": 4,
}  # fmt: skip
SCHEMA_VERSION = 1  # of the comparison
SAME_RELEASE = "use the action and pipeprof of the same release"
USAGE, NOT_JUDGED, WORKLOAD_FAILED = 2, 3, 5
MEANING = {
    USAGE: "the check is set up wrongly", NOT_JUDGED: "the comparison could not be judged",
    WORKLOAD_FAILED: "the measured command failed",
}  # fmt: skip
JUDGES = ("policy", "baseline")
NOT_ENOUGH = (
    "this change edits the policy or the baseline that it is judged by, so only a verdict that passes makes it "
    "green: measure it again, on a quieter machine or with more time, or move those edits into a change of their own"
)
COMPARISON = "compare.json"
LATER = "later"  # the input `confirm` of the first of two jobs
CHOOSABLE = ("regressed", "incomparable", "inconclusive")  # everything else that is not fine is always red
GIVEN = (
    "COMMAND", "MODE", "BASE_REF", "BASELINE_ROOT", "WORKLOAD", "MACHINE", "BUDGET", "POLICY", "REPS", "FAIL_ON",
    "SELF_TEST", "CONFIRM",
)  # fmt: skip
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}"
SHARE = r"([0-9]*\.?[0-9]+)?"
TIME = r"([0-9]+(\.[0-9]+)?[smh])*([0-9]+(\.[0-9]+)?)?"
MOST_JSON = 64 * 1024 * 1024
TAIL_LINES, MOST_REASON = 40, 500
LINGER_S = 3.0  # a process that the command left behind may hold its output open
# What a step writes to steer the job, and its credentials: not for the code under test.
KEPT_FROM_COMMAND = re.compile(
    r"GITHUB_(OUTPUT|ENV|PATH|STATE|STEP_SUMMARY|TOKEN)|GH_TOKEN|ACTIONS_(RUNTIME|ID_TOKEN|RESULTS|CACHE).*"
)
COMMAND_LINE = re.compile(r"::(error|warning|notice)( title=[^:\r\n]*)?::[^\r\n]*")


class GateError(Exception):
    """The check cannot be green; `code` is the exit code."""

    def __init__(self, message: str, code: int, details: str = "") -> None:
        super().__init__(message)
        self.message, self.code, self.details = message, code, details


@dataclass(frozen=True)
class Inputs:
    """What the action was given."""

    command: list[str]
    mode: str
    base_ref: str
    baseline: str
    budget: str
    policy: str
    reps: str
    workload: str
    planted: str
    fail_on: frozenset[str]
    asked_base: str  # the input `base-ref` itself
    confirm: str  # nothing, LATER, or the folder of the first runner's comparison


def read_inputs(env: dict[str, str]) -> Inputs:
    """Raises GateError for everything that is not as it should be."""
    given = {name: env.get(f"PIPEPROF_GATE_{name}", "").strip() for name in GIVEN}
    try:
        command = shlex.split(re.sub(r"\\\r?\n", " ", given["COMMAND"]))
    except ValueError as error:
        raise GateError(f"`command` is not a command line: {error}", USAGE) from error
    mode, workload = given["MODE"] or "ab", given["WORKLOAD"]
    fail_on = frozenset(filter(None, re.split(r"[,\s]+", given["FAIL_ON"])))
    base_ref = given["BASE_REF"] or default_base(env) or ("HEAD" if mode == "baseline" else "")
    base_ref = "HEAD" if given["SELF_TEST"] else base_ref  # against itself, slowed down
    for wrong, text in (
        (not command, "`command` is empty"),
        (mode not in ("ab", "baseline"), f"`mode` is {mode!r}, expected ab or baseline"),
        (mode == "ab" and not base_ref, "`base-ref` is empty, and this event does not say what it is a change of"),
        (base_ref.startswith("-") or "\n" in base_ref, f"`base-ref` is {base_ref!r}, expected a git revision"),
        (
            not re.fullmatch(NAME if mode == "baseline" else f"({NAME})?", workload),
            f"`workload` is {workload!r}, expected a name",
        ),
        (
            not re.fullmatch(SHARE, given["SELF_TEST"]),
            f"`self-test` is {given['SELF_TEST']!r}, expected a share, such as 0.3",
        ),
        (bool(given["CONFIRM"]) and mode != "ab", "`confirm` needs `mode: ab`"),
        (bool(given["SELF_TEST"]) and mode != "ab", "`self-test` needs `mode: ab`"),
        (not re.fullmatch(f"({NAME})?", given["MACHINE"]), f"`machine` is {given['MACHINE']!r}, expected a name"),
        (not re.fullmatch(TIME, given["BUDGET"]), f"`budget` is {given['BUDGET']!r}, expected a time"),
        (not re.fullmatch(r"([1-9]\d*)?", given["REPS"]), f"`reps` is {given['REPS']!r}, expected a number"),
        (not fail_on, "`fail-on` is empty; use continue-on-error for a check that never fails"),
        (not fail_on <= set(CHOOSABLE), f"`fail-on` has {sorted(fail_on)}, expected some of {', '.join(CHOOSABLE)}"),
    ):
        if wrong:
            raise GateError(text, USAGE)
    root, mark, query = (given["BASELINE_ROOT"] or "baselines").partition("?")  # an address may have a query
    baseline = "/".join(filter(None, (root.rstrip("/"), workload, given["MACHINE"]))) + mark + query
    reps, asked = given["REPS"] or "5", given["BASE_REF"]
    return Inputs(
        command, mode, base_ref, baseline, given["BUDGET"], given["POLICY"], reps, workload, given["SELF_TEST"],
        fail_on, asked, given["CONFIRM"],
    )  # fmt: skip


def default_base(env: dict[str, str]) -> str:
    """The commit that this event is a change of: the base of a pull request, or what was there before a push.

    Of a pull request GitHub checks out a merge with the base branch as it is now, which may have more than the base
    that the event names: what was merged since would be taken for a part of the change.
    """
    event = read_event(env)
    pull = event.get("pull_request") or {}
    for found in (
        {"sha": merged_into((pull.get("head") or {}).get("sha"))},
        pull.get("base"),
        {"sha": (event.get("merge_group") or {}).get("base_sha")},
        {"sha": event.get("before")},
    ):
        sha = (found or {}).get("sha")
        if isinstance(sha, str) and re.fullmatch(r"[0-9a-f]{40,64}", sha) and set(sha) != {"0"}:
            return sha
    return ""


def merged_into(head: object) -> str:
    """The commit that HEAD merges `head` into; empty when HEAD is no merge of it."""
    commits = (git("rev-list", "--parents", "--max-count=1", "HEAD") or "").split()
    return commits[1] if len(commits) == 3 and commits[2] == head else ""


def read_event(env: dict[str, str]) -> dict[str, Any]:
    """The event's payload; empty when there is none."""
    try:
        event = json.loads(Path(env["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    except (KeyError, OSError, ValueError):
        return {}
    return event if isinstance(event, dict) else {}


def measure(inputs: Inputs, folder: Path) -> tuple[int, bytes, str]:
    """Runs pipeprof; gives its exit code, its stdout, and the last lines of its stderr."""
    policy = [f"--policy={inputs.policy}"] if inputs.policy else []
    out = folder / "stdout"
    if inputs.mode == "ab":
        budget = [f"--budget={inputs.budget}"] if inputs.budget else []
        budget += [f"--workload={inputs.workload}"] if inputs.workload else []
        budget += [f"--plant-slow-down={inputs.planted}"] if inputs.planted else []
        budget += [f"--confirms={Path(inputs.confirm, COMPARISON)}"] if inputs.confirm not in ("", LATER) else []
        code, tail = run(
            ["ab", f"--base-ref={inputs.base_ref}", "--new-ref=HEAD", "-o", str(folder / "session"), *budget, *policy,
             "--format=json", "--", *inputs.command], out)  # fmt: skip
    else:
        base = judged_by(inputs)
        new, commit = folder / "run", commit_of(inputs.base_ref)
        code, tail = run(["collect", "-o", str(new), f"--reps={inputs.reps}", "--", *inputs.command], None)
        if code:
            raise GateError(f"`pipeprof collect` exited with {code}", WORKLOAD_FAILED, tail)
        if base and commit_of(inputs.base_ref) != commit:
            raise GateError(f"`{inputs.base_ref}` became another commit while the command ran", NOT_JUDGED, tail)
        code, tail = run(["compare", "--format=json", *base, *policy, "--", inputs.baseline, str(new)], out)
    with out.open("rb") as stream:
        data = stream.read(MOST_JSON + 1)
    out.unlink()
    return code, data, tail


def judged_by(inputs: Inputs) -> list[str]:
    """The options of `compare` that say which revision judges; none outside of git, where named files do.

    Raises GateError, before anything is measured, when the revision is not there, or the change itself would judge.
    """
    if git("rev-parse", "--git-dir") is not None:
        if commit_of(inputs.base_ref) is None:
            raise GateError(
                f"the base revision `{inputs.base_ref}` is not in this checkout: "
                "give `fetch-depth: 0` to actions/checkout, or correct `base-ref`",
                USAGE,
            )
        return [f"--base-ref={inputs.base_ref}"]
    if inputs.asked_base:
        raise GateError(f"`base-ref` is `{inputs.asked_base}`, and there is no git repository here", USAGE)
    for name, given in (("policy", inputs.policy), ("baseline-root", inputs.baseline)):
        if not given or lies_here(given):
            raise GateError(
                f"there is no git repository here, so `{name}` has to name what the change cannot write: "
                "an absolute path outside of the working folder" + (" or an address" if name != "policy" else ""),
                USAGE,
            )
    return []


def commit_of(ref: str) -> str | None:
    """The hash of the commit that git takes a name for; None for none. Ambiguous names are refused by pipeprof."""
    return git("rev-parse", "--verify", "--quiet", ref + "^{commit}")


def git(*words: str) -> str | None:
    """What git prints; None when it fails, or is not there."""
    command = ["git", "--no-replace-objects", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout


def lies_here(path: str) -> bool:
    """Whether a path, with the links in it, leads into the working folder. An address does not."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path):
        return path.lower().startswith("file:")
    here = os.path.realpath(Path.cwd())
    named = Path(here, path)
    ways = (os.path.normpath(named), os.path.realpath(named))
    return any(os.path.commonpath([here, way]) == here for way in ways)


def run(words: list[str], out: Path | None) -> tuple[int, str]:
    """One pipeprof command. Its words, and those of the code under test, go to the log, where they command nothing."""
    guard = secrets.token_hex(16)
    say(f"::stop-commands::{guard}")
    log = Log()
    env = {name: value for name, value in os.environ.items() if not KEPT_FROM_COMMAND.fullmatch(name)}
    try:
        with out.open("wb") if out else contextlib.nullcontext() as file:
            pipes = (subprocess.DEVNULL, file or subprocess.PIPE, subprocess.PIPE if file else subprocess.STDOUT)
            child = subprocess.Popen([program(), *words], -1, None, *pipes, env=env)
        reader = threading.Thread(target=log.pass_on, args=(child.stderr or child.stdout,), daemon=True)
        reader.start()
        code = child.wait()
        reader.join(timeout=LINGER_S)
    except OSError as error:
        raise GateError(f"cannot start pipeprof: {error}", NOT_JUDGED) from error
    finally:
        log.close()
        say(f"\n::{guard}::")
    return code, "".join(log.tail)


def program() -> str:
    """The `pipeprof` on PATH, else the one beside this Python."""
    found = shutil.which("pipeprof") or shutil.which("pipeprof", path=str(Path(sys.executable).parent))
    if found is None:
        raise GateError("there is no `pipeprof` on PATH; see the input `install`", USAGE)
    return found


class Log:
    """Passes what a command says on to the job's log until it is closed, and not a line more; `tail` is its end."""

    def __init__(self) -> None:
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._closed, self._turn = threading.Event(), threading.Lock()

    def pass_on(self, stream: IO[bytes]) -> None:
        """Read to the end of the stream, or until closed."""
        for line in iter(lambda: stream.readline(65536), b""):
            with self._turn:
                if self._closed.is_set():
                    return
                text = line.decode("utf-8", "replace")
                self.tail.append(text)
                put(text)
        stream.close()

    def close(self) -> None:
        """Returns when the line that is being passed on is out."""
        self._closed.set()
        with self._turn:
            pass


def judged(code: int, data: bytes, tail: str) -> dict[str, Any]:
    """The comparison that pipeprof printed. Raises GateError unless it is whole and agrees with the exit code."""
    if code not in set(EXIT.values()):
        known = code in (USAGE, WORKLOAD_FAILED)
        raise GateError(f"pipeprof exited with {code}{reason(tail)}", code if known else NOT_JUDGED, tail)
    try:
        content = json.loads(data) if len(data) <= MOST_JSON else None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise GateError(f"pipeprof printed no comparison (exit code {code}){reason(tail)}", NOT_JUDGED, tail)
    verdict = content.get("verdict")
    expected = EXIT.get(verdict) if isinstance(verdict, str) else None
    if content.get("schema_version") != SCHEMA_VERSION:
        given = f"version {content.get('schema_version')!r}, and this action reads version {SCHEMA_VERSION}"
        raise GateError(f"pipeprof printed a comparison of {given}: {SAME_RELEASE}", NOT_JUDGED, tail)
    if expected is None:
        given = f"the verdict {verdict!r}, which this action does not know"
        raise GateError(f"pipeprof printed {given}: {SAME_RELEASE}", NOT_JUDGED, tail)
    if not expected == code == content.get("exit_code"):
        given = f"exit code {content.get('exit_code')!r}, and pipeprof exited with {code}"
        raise GateError(f"the comparison contradicts itself: verdict {verdict}, {given}", NOT_JUDGED, tail)
    if code == 0 and not content.get("metrics"):
        raise GateError("the comparison has no metrics: nothing was judged", NOT_JUDGED, tail)
    return content


def edits_its_judge(content: dict[str, Any]) -> bool:
    """Whether the change edits the settings or the baseline that judge it: then `fail-on` leaves no verdict out."""
    return any(one["kind"] in JUDGES for one in (content.get("trust") or {}).get("edits") or [])


def waits(inputs: Inputs, content: dict[str, Any]) -> bool:
    """Whether the job behind this one decides: it is slower by time alone, and the base's policy asks for both."""
    return inputs.confirm == LATER and (content.get("confirmation") or {}).get("state") == "wanted"


def nothing_to_confirm(inputs: Inputs) -> bool:
    """Whether the first runner left nothing to this one. Raises GateError for a comparison that is not there."""
    if inputs.confirm in ("", LATER):
        return False
    path = Path(inputs.confirm, COMPARISON)
    try:
        with path.open("rb") as stream:
            content = json.loads(stream.read(MOST_JSON))
        return not waits(replace(inputs, confirm=LATER), content)
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise GateError(f"`confirm`: there is no comparison in {inputs.confirm}: {error}", NOT_JUDGED) from error


def reason(tail: str) -> str:
    """The last error among these lines, to go behind a sentence; empty without one."""
    found = [line[len("error: ") :].strip() for line in tail.splitlines() if line.startswith("error: ")]
    return f": {found[-1][:MOST_REASON]}" if found else ""


def publish(content: dict[str, Any], folder: Path, env: dict[str, str]) -> None:
    """Writes every form into the folder, the summary into the job's, and prints the annotations."""
    source = folder / COMPARISON
    source.write_text(json.dumps(content), encoding="utf-8")
    code, tail = run(["render", str(source), "-o", str(folder), "--force"], None)
    if code:
        raise GateError("the comparison could not be rendered", NOT_JUDGED, tail)
    append(env.get("GITHUB_STEP_SUMMARY"), (folder / "summary.md").read_text(encoding="utf-8"))
    lines = (folder / "annotations.txt").read_text(encoding="utf-8").splitlines()
    for line in [line for line in lines if COMMAND_LINE.fullmatch(line)][:10]:
        say(line)


def publish_error(error: GateError, env: dict[str, str]) -> None:
    """The same for a check that judged nothing."""
    meaning = MEANING.get(error.code, "the check failed")
    escape, redact = beside("escape"), beside("collect/probe/redact")
    message = redact.redacted(error.message)
    say(f"::error title={escape.log_property(f'pipeprof: {meaning}')}::{escape.log_data(message)}")
    tail = redact.redacted(error.details)[-10_000:].rstrip()
    details = "\n" + "\n".join(escape.markdown_block(tail.splitlines())) + "\n" if tail else ""
    append(env.get("GITHUB_STEP_SUMMARY"), f"## pipeprof: {meaning}\n\n{escape.markdown(message)}\n{details}")


def beside(name: str) -> Any:
    """A module of the pipeprof beside this script, which needs the standard library only; no other is in reach."""
    source = Path(__file__).resolve().parent.parent / "pipeprof" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"pipeprof_gate_{source.stem}", source)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {source}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_outputs(env: dict[str, str], **outputs: str) -> None:
    """Into GITHUB_OUTPUT, each between delimiters that no value can know."""
    for name, value in outputs.items():
        mark = f"end_{secrets.token_hex(16)}"
        append(env.get("GITHUB_OUTPUT"), f"{name.replace('_', '-')}<<{mark}\n{value}\n{mark}\n")


def append(path: str | None, text: str) -> None:
    """Adds to one of the files that the runner reads; nothing without it."""
    if path:
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text if text.endswith("\n") else text + "\n")


def say(line: str) -> None:
    """To the log, at once."""
    put(line + "\n")


def put(text: str) -> None:
    """All that the log gets: of two streams the runner knows no common order, so that a guard would guard nothing."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def write_origin(folder: Path, env: dict[str, str]) -> None:
    """The pull request's number, for the workflow that comments: a fork's own run must not."""
    number = (read_event(env).get("pull_request") or {}).get("number")
    if isinstance(number, int):
        (folder / "pr.txt").write_text(f"{number}\n", encoding="utf-8")


def main() -> int:
    """The exit code: 0 when green, else pipeprof's."""
    env = dict(os.environ)
    folder = Path(env.get("PIPEPROF_GATE_OUTPUT") or Path(env.get("RUNNER_TEMP", ".")) / "pipeprof-gate").resolve()
    work = folder.with_name(folder.name + "-work")
    verdict, content_there, later = "error", False, False
    try:
        for each in (folder, work):
            shutil.rmtree(each, ignore_errors=True)
            each.mkdir(parents=True)
        write_origin(folder, env)
        inputs = read_inputs(env)
        if nothing_to_confirm(inputs):
            say("pipeprof: the first runner left nothing to confirm: the check is green")
            write_outputs(env, verdict="", exit_code="0", confirm="", folder=str(folder))
            return 0
        code, data, tail = measure(inputs, work)
        content = judged(code, data, tail)
        verdict = content["verdict"]
        own = verdict in CHOOSABLE and verdict not in inputs.fail_on and edits_its_judge(content)
        later = waits(inputs, content)
        red = bool(code and (verdict not in CHOOSABLE or verdict in inputs.fail_on or own)) and not later
        publish(content | {"check": {"red": red, "fail_on": sorted(inputs.fail_on)}}, folder, env)
        content_there = True
        if own:
            say(f"::error title={verdict} is not enough::{NOT_ENOUGH}")
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not look like a verdict
        verdict = "error"
        known = error if isinstance(error, GateError) else GateError(f"{type(error).__name__}: {error}", NOT_JUDGED)
        publish_error(known, env)
        code, red = known.code, True
    files = {"summary": "summary.md", "json": COMPARISON}
    paths = {name: str(folder / file) if content_there else "" for name, file in files.items()}
    confirm = "wanted" if later else ""
    write_outputs(env, verdict=verdict, exit_code=str(code), confirm=confirm, folder=str(folder), **paths)
    say(f"pipeprof: {verdict}, exit code {code}: the check is {'red' if red else 'green'}")
    return code if red else 0


if __name__ == "__main__":
    sys.exit(main())
