"""Runs with steps of a chosen length, and verbs called as from a shell."""

import io
import json
import sys

import pytest
from git_repository import GitRepository

from pipeprof import cli
from pipeprof.record.run import Rep

SPREAD = (1.0, 1.004, 0.997, 1.002, 0.999, 1.001)


def steps(rep, dur_us):
    rows = []
    for step in range(12):
        times = {"start_ns": step * dur_us * 1000, "end_ns": (step + 1) * dur_us * 1000}
        rows.append({"rep": rep, "step": step, "kind": "train", "kind_step": step, "in_window": False, **times})
    return rows


@pytest.fixture
def recorded(make_run):
    def make(dur_us=10_000, cpu="A", spread=SPREAD, command=("python", "train.py")):
        rows = [row for rep, factor in enumerate(spread) for row in steps(rep, round(dur_us * factor))]
        run = make_run({"step": rows})
        manifest = run.manifest
        manifest.state, manifest.job, manifest.command = "complete", "boot:1", list(command)
        manifest.fingerprint = {"cpu_model": cpu, "cpu_cores": 2}
        manifest.reps = [
            Rep(rep=rep, zero_realtime_ns=rep, zero_monotonic_ns=0, exit_code=0) for rep in range(len(spread))
        ]
        run.save()
        return str(run.path)

    return make


@pytest.fixture
def call(monkeypatch, capfd):
    """`call(*words)` is the installed program: (exit code, stdout, stderr)."""

    def run_main(*words, stdin=""):
        monkeypatch.setattr(sys, "argv", ["pipeprof", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capfd.readouterr()
        return ended.value.code, captured.out, captured.err

    return run_main


@pytest.fixture
def verb(call, monkeypatch, tmp_path):
    """The same in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return call


@pytest.fixture
def repository(tmp_path, recorded, verb, monkeypatch):
    """A project with a baseline of 10 ms on main; a change begins on a branch of it. We stand in its root."""
    made = GitRepository(tmp_path / "project")
    monkeypatch.chdir(made.root)
    assert verb("baseline", "write", recorded(), "--workload", "mnist", "--root", "baselines")[0] == 0
    made.base = made.commit(
        {
            "train.py": "fast()\n",
            ".github/workflows/gate.yml": "run: python train.py\n",
            "pyproject.toml": "[project]\n",
        }
    )
    made.git("checkout", "--quiet", "-b", "change")
    return made


@pytest.fixture
def judge(repository, recorded, verb):
    """`judge()` compares a run of the change, twice as slow as the baseline, by the rules of main."""

    def call(*words, dur_us=20_000, command=("python", "train.py"), base="baselines/mnist"):
        code, out, err = verb("compare", base, recorded(dur_us, command=command), "--format", "json", *words)
        return code, json.loads(out) if out else {}, err

    return call
