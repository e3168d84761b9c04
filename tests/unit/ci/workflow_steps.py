"""Runs the jobs of examples/github as a runner would, in a fresh repository, with `pipeprof` as shim_pipeprof.py has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from action_steps import ROOT, action, evaluate, executable, read_annotations, read_outputs, run_script
from git_repository import FIXED, GitRepository
from once import keep_bundle

WORKFLOWS = ROOT / "examples" / "github"
TESTS = ROOT / "tests"
FILES = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH")
WANTED = "needs.gate.outputs.confirm == 'wanted'"
OF_A_FORK = "github.event.pull_request.head.repo.full_name != github.repository"
TRAINING = "COMPUTE_MS = {compute}\nDECODE_MS = {decode}\nraise SystemExit('not for running')\n"


@dataclass
class Job:
    """What is left of one job."""

    green: bool = True
    log: str = ""
    summary: str = ""
    artifacts: dict = field(default_factory=dict)
    steps: dict = field(default_factory=dict)
    outputs: dict = field(default_factory=dict)
    before: Job | None = None  # the job that this one needs

    @property
    def annotations(self):
        return read_annotations(self.log)

    def comment(self):
        return (next(iter(self.artifacts.values())) / "comment.md").read_text(encoding="utf-8")


def training(begin="", **times):
    """The file of a training whose steps take so long."""
    return {"train.py": begin + TRAINING.format(**({"compute": 10.0, "decode": 10.0} | times))}


class Forge:
    """A repository on a host of workflows, and its runners."""

    def __init__(self, folder):
        self.folder, self.runs, self.env, self.is_fork = folder, 0, {}, False
        self.origin = GitRepository(folder / "origin")
        self.main = self.origin.commit(training() | {"requirements.txt": ""}, "first")
        self.bin = folder / "bin"
        keep_bundle(folder / ".cache")
        self._program("pipeprof", f'exec "{sys.executable}" "{TESTS / "unit/ci/shim_pipeprof.py"}" "$@"')
        self._program("python", f'case "$*" in *"-m pip"*) exit 0 ;; esac\nexec "{sys.executable}" "$@"')
        venv = f'case "$*" in "-m venv"*) mkdir -p "${{!#}}/bin"; cp "{self.bin}/python" "${{!#}}/bin/" ;; esac'
        self._program("python3", venv)

    def _program(self, name, text):
        executable(self.bin / name, f"#!/bin/bash\n{text}\n")

    def change(self, **times):
        """A pull request's head with other times; main stays."""
        self.origin.git("checkout", "--quiet", "-B", "change", "main")
        head = self.origin.commit(training("# a comment\n", **times))
        self.origin.git("checkout", "--quiet", "main")
        return head

    def pull_request(self, workflow, head):
        """The job of a pull request from `head` into main."""
        event = {"number": 7, "base": {"sha": self.main}, "head": {"sha": head}}
        return self.run(workflow, head, {"pull_request": event})

    def merge(self, message, **times):
        """A change of main."""
        self.main = self.origin.commit(training(**times), message)

    def push(self, workflow):
        """The job of a push to main, or one that was started by hand."""
        return self.run(workflow, self.main, {"before": "0" * 40})

    def run(self, workflow, commit, event):
        """The last job of a workflow that was run: the only one, or the one that confirms it."""
        (self.folder / "event.json").write_text(json.dumps(event))
        (name, first), *others = yaml.safe_load((WORKFLOWS / workflow).read_text(encoding="utf-8"))["jobs"].items()
        assert "if" not in first, "a job that is skipped counts as passed"
        job = self._job(name, first, commit, Job())
        for other, spec in others:
            assert (spec["needs"], spec["if"]) == (name, WANTED)
            if job.green and job.outputs["confirm"] == "wanted":
                return self._job(other, spec, commit, Job(before=job))
        return job

    def _job(self, name, spec, commit, job):
        self.runs += 1
        self.temp = self.folder / "temp"  # of a machine of one's own: it outlives the job
        self.temp.mkdir(exist_ok=True)
        self.work = self.folder / f"work{self.runs}"
        self.work.mkdir()
        path = [str(self.bin)]
        known = {"runner.temp": str(self.temp), "github.token": "t0ken", "github.action_path": str(ROOT / "ci")}
        base = {name: evaluate(value, known) for name, value in (spec.get("env") or {}).items()}
        base |= {"GITHUB_SHA": commit, "GITHUB_RUN_ID": str(self.runs), "GITHUB_JOB": name, **self.env}
        for number, step in enumerate(spec["steps"]):
            assert step.get("if", "always()") in ("always()", OF_A_FORK)
            if (not job.green and step.get("if") != "always()") or (step.get("if") == OF_A_FORK and not self.is_fork):
                continue
            here = known | {
                f"steps.{name}.{key}": value for name, found in job.steps.items() for key, value in found.items()
            }
            ok, outputs = self._step(step, commit, here, base, path, job, number)
            if step.get("id"):
                found = {"outcome": "success" if ok else "failure"}
                job.steps[step["id"]] = found | {f"outputs.{name}": value for name, value in outputs.items()}
            job.green &= ok or step.get("continue-on-error", False)
        reached = {f"steps.{step}.{key}": value for step, found in job.steps.items() for key, value in found.items()}
        job.outputs = {key: evaluate(value, reached) for key, value in spec.get("outputs", {}).items()}
        return job

    def _step(self, step, commit, known, env, path, job, number):
        uses = step.get("uses", "").partition("@")[0]
        given = {name: evaluate(value, known) for name, value in (step.get("with") or {}).items()}
        if uses == "actions/checkout":
            self._checkout(given, commit)
        elif uses == "actions/upload-artifact":
            kept = self.folder / f"artifact{self.runs}"
            place = Path(given["path"])
            if place.is_dir():
                shutil.copytree(place, kept)
            elif place.is_file():
                kept.mkdir()
                shutil.copy(place, kept)
            if place.exists():
                job.artifacts[given["name"]] = kept
        elif uses == "actions/download-artifact":
            shutil.copytree(job.before.artifacts[given["name"]], given["path"], dirs_exist_ok=True)
        elif uses == "OWNER/pipeprof/ci":
            return self._action(given, known, env, path, job, number)
        elif uses == "":
            own = {name: evaluate(value, known) for name, value in (step.get("env") or {}).items()}
            return self._bash(step["run"], env | own, path, job, str(number))
        else:
            assert uses == "actions/setup-python"
        return True, {}

    def _checkout(self, given, commit):
        if "repository" in given:
            assert given["repository"] == "OWNER/pipeprof"
            (self.work / given["path"]).symlink_to(ROOT)
            return
        subprocess.run(["git", "clone", "--quiet", str(self.origin.root), str(self.work)], check=True)
        subprocess.run(["git", "-C", str(self.work), "checkout", "--quiet", "--detach", commit], check=True)
        if "path" in given:
            raise AssertionError(given)

    def _action(self, given, known, env, path, job, number):
        content = action()
        here = dict(known)
        assert set(given) <= set(content["inputs"])
        for name, about in content["inputs"].items():
            here[f"inputs.{name}"] = given.get(name, about.get("default", ""))
        outputs, ok = {}, True
        for at, step in enumerate(content["runs"]["steps"]):
            own = {name: evaluate(value, here) for name, value in step.get("env", {}).items()}
            ok, found = self._bash(step["run"], env | own, path, job, f"{number}-{at}")
            outputs |= found
            if not ok:
                break
        return ok, outputs

    def _bash(self, text, env, path, job, name):
        whole = {
            "PATH": ":".join([*path, os.environ["PATH"]]), "HOME": str(self.folder), "LANG": "C.UTF-8",
            "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "some-one/training", "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"), "RUNNER_TEMP": str(self.temp),
            "SHIM_TESTS": str(TESTS), "PYTHONPATH": f"{ROOT}:{TESTS}", **FIXED, **env,
        }  # fmt: skip
        files = {each: self.temp / f"{each.lower()}-{self.runs}-{name}" for each in FILES}
        code, log, said = run_script(text, whole, self.work, files)
        job.log += log
        job.summary += said["GITHUB_STEP_SUMMARY"]
        path[:0] = said["GITHUB_PATH"].split()
        return code == 0, read_outputs(said["GITHUB_OUTPUT"])
