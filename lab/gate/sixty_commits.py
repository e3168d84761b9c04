"""A repository of 60 commits, 6 of them slower by 2 to 20 %, run by the shipped workflows on a faked runner: which alerts?

    python lab/gate/sixty_commits.py [--seed N]

Each commit is measured by `examples/github/gate-baseline.yml`, every tenth one `gate-alerts.yml` looks, against a fake of
GitHub's interface. The instructions of the functions are counted for real, the times are drawn (counted_runner.py). The
other commits edit documents, rename, add types and comments, test, change a setting, make one stage faster, and move
less than half a percent. The exit code is 0 when there are 6 alerts with the right commit and file, and no other, and
acknowledged ones stay silent.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "unit" / "ci"))
import fake_github
import workflow_steps

COMMITS, LEAST_APART, EVERY, FASTER = 60, 7, 10, 6
SIZES = (0.02, 0.03, 0.05, 0.08, 0.12, 0.20)  # of the work of all stages for a row
STAGES = ("decode", "crop", "label", "tokenize")
POLICY = '[metrics]\ninstructions = "decides"\nstep_time_median = "informs"\ndata_wait = "informs"\n'
OWNERS = "/stages/crop.py @pictures\n/stages/tokenize.py @words\n"
TRAIN = """from stages.crop import crop
from stages.decode import decode
from stages.label import label
from stages.tokenize import tokenize

STAGES = [decode, crop, label, tokenize]


def source(number):
    return number
"""
STAGE = '''{head}def {name}(row):{types}
    """One row."""
    {total} = 0
    for each in range({rounds}):
        {total} += each * 3 % 7
    return row
'''


# The command `pipeprof` of the runner: what it is asked goes to `counted_runner.py`, with where its output goes.
ASK = """import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as peer:
    peer.connect(sys.argv[1])
    asked = {"words": sys.argv[2:], "env": dict(os.environ), "folder": os.getcwd()}
    socket.send_fds(peer, [json.dumps(asked).encode()], [1, 2])
    sys.exit(int(peer.recv(9) or 70))
"""


class Repository:
    """What is committed, and what each commit meant."""

    def __init__(self, forge, seed):
        self.forge, self.random = forge, random.Random(seed)  # noqa: S311 - a drawn repository, no secret
        self.stages = {name: {"rounds": 500, "head": "", "total": "total", "types": ""} for name in STAGES}
        self.serial = 0
        spots = range(FASTER + LEAST_APART, COMMITS - LEAST_APART + 1)
        while True:
            self.places = sorted(self.random.sample(spots, len(SIZES)))
            apart = [after - before for before, after in zip(self.places, self.places[1:], strict=False)]
            if min(apart, default=LEAST_APART) >= LEAST_APART:
                break
        self.sizes = self.random.sample(SIZES, len(SIZES))
        files = {"train.py": TRAIN, "pipeprof.toml": POLICY, ".github/CODEOWNERS": OWNERS, "stages/__init__.py": ""}
        forge.main = forge.origin.commit(files | {self.path(name): self.text(name) for name in STAGES}, "the stages")

    def path(self, name):
        return f"stages/{name}.py"

    def text(self, name):
        return STAGE.format(name=name, **self.stages[name])

    def total(self):
        return sum(stage["rounds"] for stage in self.stages.values())

    def grow(self, name, share):
        """A stage whose rounds grow so that all stages together do `share` more."""
        self.stages[name]["rounds"] += round(self.total() * share)
        return {self.path(name): self.text(name)}

    def harmless(self):
        """The files of a commit that makes nothing slower, and its message."""
        self.serial += 1
        name = self.random.choice(STAGES)
        stage = self.stages[name]
        what = self.random.choice(["docs", "comment", "rename", "types", "test", "settings", "hair"])
        if what == "comment":
            stage["head"] += f"# Note {self.serial}.\n"
        elif what == "rename":
            stage["total"] = f"sum_{self.serial}"
        elif what == "types":
            stage["types"] = f"  # type: (int) -> int  # {self.serial}"
        elif what == "hair":
            return self.grow(name, self.random.uniform(-0.002, 0.002)), "a hair"
        plain = {"docs": "docs/{}.md", "test": "tests/test_{}.py", "settings": "settings/{}.toml"}
        if what in plain:
            return {plain[what].format(self.serial): f"# {self.serial}\n"}, what
        return {self.path(name): self.text(name)}, what

    def next(self, number):
        """Commits the change of this number; the planted (commit, file, share), if it is one."""
        if number in self.places:
            share = self.sizes[self.places.index(number)]
            name = self.random.choice(STAGES)
            files, message = self.grow(name, share), f"more of {name}"
        elif number == FASTER:
            share, files, message = 0.0, self.grow("label", -0.05), "label is faster"
        else:
            share, (files, message) = 0.0, self.harmless()
        self.forge.main = self.forge.origin.commit(files, message)
        return (self.forge.main, self.path(name), share) if share else None


def played(folder, seed, say):
    """(planted, issues of the fake GitHub, problems)."""
    forge, github = workflow_steps.Forge(folder), fake_github.GitHub()
    place = folder / "runner"
    runner = subprocess.Popen([sys.executable, str(Path(__file__).with_name("counted_runner.py")), str(place)])
    while not place.exists():
        time.sleep(0.1)
    forge._program("pipeprof", f'exec "{sys.executable}" -ISc \'{ASK}\' "{place}" "$@"')
    forge.env = {"GITHUB_API_URL": github.url}
    repository, planted, problems = Repository(forge, seed), [], []
    try:
        for number in range(COMMITS):
            one = repository.next(number)
            planted += [one] if one else []
            problems += ran(forge, "gate-baseline.yml", f"commit {number}")
            if number % EVERY == EVERY - 1:
                problems += ran(forge, "gate-alerts.yml", f"alerts after commit {number}")
                say(f"{number + 1} commits, {len(planted)} planted, {len(github.issues)} alerts")
        problems += silent(forge, github, planted)
    finally:
        runner.kill()
        github.close()
    return planted, github.told, problems


def ran(forge, workflow, what):
    """Plays a workflow; a problem if it is red."""
    job = forge.push(workflow)
    for work in forge.folder.glob("work*"):
        if work != forge.work:
            workflow_steps.shutil.rmtree(work)
    return [] if job.green else [f"{what}: red: {job.log[-600:]}"]


def silent(forge, github, planted):
    """What is wrong when two alerts are acknowledged: their issues are closed, and nobody is told again."""
    github.told = [dict(issue) for issue in github.issues]
    marks = {name: issue for issue in github.issues for name in [issue["body"].partition(":")[2].split()[0]]}
    chosen = sorted(marks)[:2]
    on = {"state": "acknowledged", "by": "Ann", "why": "meant", "on": "2026-01-05"}
    lines = []
    for name in chosen:
        places = marks[name]["body"].partition(" -->")[0].split()[2:]
        lines.append(json.dumps({"alert": name, "places": places} | on) + "\n")
    forge.main = forge.origin.commit({"pipeprof-alerts.jsonl": "".join(lines)}, "accepted")
    found = ran(forge, "gate-alerts.yml", "alerts after two were accepted")
    closed = [name for name, issue in marks.items() if issue["state"] == "closed"]
    found += [] if sorted(closed) == chosen else [f"closed are {closed}, accepted {chosen}"]
    github.issues.clear()
    found += ran(forge, "gate-alerts.yml", "alerts where no issue is known")
    again = sorted(issue["body"].partition(":")[2].split()[0] for issue in github.issues)
    left = sorted(set(marks) - set(chosen))
    return found + ([] if again == left else [f"told again: {again}, expected {left}"])


def main():
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=50)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sixty-") as folder:
        planted, issues, problems = played(Path(folder), options.seed, lambda line: print(line, flush=True))
    wanted = {(commit[:10], file) for commit, file, _ in planted}
    found = []
    for issue in issues:
        body = issue["body"]
        file = body.partition("- file ")[2].partition("\n")[0].partition(":")[0].strip("`")
        found.append((body.partition("commit ")[2][:10], file))
    for commit, file, share in planted:
        word = "found" if (commit[:10], file) in found else "MISSED"
        print(f"{word}: +{share:.0%} by {commit[:10]} in {file}")
    others = [one for one in found if one not in wanted]
    print(
        f"{len(set(found) & wanted)} of {len(planted)} found, {len(others)} others: {others}; {len(problems)} problems"
    )
    for problem in problems:
        print(problem)
    print(f"{time.monotonic() - began:.0f} s")
    return int(bool(problems or others or set(found) != wanted or len(found) != len(planted)))


if __name__ == "__main__":
    sys.exit(main())
