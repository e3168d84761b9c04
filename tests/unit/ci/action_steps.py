"""Runs the steps of ci/action.yml as the runner does: inputs through expressions in env, files for what steps say."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from shebang import SHEBANG

ROOT = Path(__file__).resolve().parents[3]
ACTION = ROOT / "ci" / "action.yml"
FAKE = Path(__file__).with_name("fake_pipeprof.py")
EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
FILES = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE")
COMMAND = re.compile(r"::([\w-]+)(?: ([^:]*))?::(.*)")


def action():
    return yaml.safe_load(ACTION.read_text(encoding="utf-8"))


@dataclass
class Outcome:
    """What the runner knows after the last step."""

    exit_code: int
    log: str
    summary: str = ""
    outputs: dict = field(default_factory=dict)
    annotations: list = field(default_factory=list)  # (level, title, message)


def evaluate(text, known):
    """The text with the few expressions that the action and the workflows use put in; KeyError for any other."""
    return EXPRESSION.sub(lambda found: known[found[1]], str(text))


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def load_tool(name):
    """A file of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_script(text, env, cwd, files):
    """Exit code, log and {name: text} of a script as the runner starts it; `files` are {name: where it says things}."""
    assert "${{" not in text, "an expression in a script is how code gets in"
    for path in files.values():
        path.touch()
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text], check=False, cwd=cwd, timeout=600,
        env=env | {name: str(path) for name, path in files.items()}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL)  # fmt: skip
    log = done.stdout.decode("utf-8", "replace")
    return done.returncode, log, {name: path.read_text(encoding="utf-8") for name, path in files.items()}


def read_outputs(text):
    """GITHUB_OUTPUT in both forms that the runner takes."""
    lines, found = iter(text.split("\n")), {}
    for line in lines:
        if "<<" in line:
            name, _, mark = line.partition("<<")
            value = []
            for inner in lines:
                if inner == mark:
                    break
                value.append(inner)
            else:
                raise AssertionError(f"no end of {name}")
            found[name] = "\n".join(value)
        elif "=" in line:
            name, _, found[name] = line.partition("=")
    return found


def read_annotations(log):
    """Workflow commands as the runner obeys them: none between stop-commands and its end."""
    found, guard = [], None
    for line in log.split("\n"):
        command = COMMAND.fullmatch(line.strip())
        if command is None:
            continue
        if guard is not None:
            guard = None if command[1] == guard else guard
        elif command[1] == "stop-commands":
            guard = command[3]
        else:
            properties = dict(pair.split("=", 1) for pair in (command[2] or "").split(",") if pair)
            found.append((command[1], unescape(properties.get("title", "")), unescape(command[3])))
    assert guard is None, "commands stay stopped"
    return found


def unescape(words):
    for code, sign in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        words = words.replace(code, sign)
    return words


class Runner:
    """One job with a fake `pipeprof`; `plan` says what each of its verbs does."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        self.temp = folder / "temp"
        self.work = folder / "work"
        self.cache = folder.parent / "cache"  # of all jobs: to put the script of charts together takes longest
        for each in (self.bin, self.temp, self.work):
            each.mkdir()
        executable(self.bin / "pipeprof", SHEBANG + FAKE.read_text(encoding="utf-8"))
        self.plan = {}
        self.event = {"pull_request": {"number": 7, "base": {"sha": "b" * 40}, "head": {"sha": "a" * 40}}}
        self.secrets = {}

    def calls(self):
        path = self.bin / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def artifact(self, name):
        return self.temp / "pipeprof-gate" / name

    def run(self, **inputs):
        """All steps, until one fails. Names of inputs have _ for -."""
        (self.bin / "plan.json").write_text(json.dumps(self.plan))
        (self.folder / "event.json").write_text(json.dumps(self.event))
        content = action()
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        defaults = {"python": sys.executable, "install": "no", "command": "python train.py"}
        known = {"github.action_path": str(ROOT / "ci")}
        for name, about in content["inputs"].items():
            known[f"inputs.{name}"] = given.pop(name, defaults.get(name, about.get("default", "")))
        assert not given, f"not inputs: {given}"
        outcome, steps = Outcome(0, ""), {}
        for number, step in enumerate(content["runs"]["steps"]):
            code, files = self._step(step, known, number, outcome)
            steps[step.get("id")] = read_outputs(files["GITHUB_OUTPUT"])
            outcome.summary += files["GITHUB_STEP_SUMMARY"]
            assert files["GITHUB_ENV"] == files["GITHUB_PATH"] == files["GITHUB_STATE"] == ""
            if code:
                outcome.exit_code = code
                break
        for name, about in content["outputs"].items():
            step_id, _, output = EXPRESSION.fullmatch(about["value"])[1].removeprefix("steps.").partition(".outputs.")
            outcome.outputs[name] = steps.get(step_id, {}).get(output, "")
        outcome.annotations = read_annotations(outcome.log)
        return outcome

    def _step(self, step, known, number, outcome):
        assert step["shell"] == "bash"
        env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.folder), "LANG": "C.UTF-8",
               "XDG_CACHE_HOME": str(self.cache), "GITHUB_ACTIONS": "true",
               "GITHUB_EVENT_PATH": str(self.folder / "event.json"), "GITHUB_WORKSPACE": str(self.work),
               "RUNNER_TEMP": str(self.temp), **self.secrets}  # fmt: skip
        env |= {name: evaluate(value, known) for name, value in step.get("env", {}).items()}
        files = {name: self.temp / f"{name.lower()}{number}" for name in FILES}
        code, log, said = run_script(step["run"], env, self.work, files)
        outcome.log += log
        return code, said
