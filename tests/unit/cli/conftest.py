"""Runs with steps of a chosen length, and verbs called as from a shell."""

import io
import json
import sys

import pytest
from git_repository import GitRepository
from table_rows import steps

from pipeprof import cli
from pipeprof.record.run import Rep

SPREAD = (1.0, 1.004, 0.997, 1.002, 0.999, 1.001)


@pytest.fixture
def recorded(make_run):
    def make(dur_us=10_000, cpu="A", spread=SPREAD, command=("python", "train.py")):
        lengths = [round(dur_us * factor) * 1000 for factor in spread]
        rows = [row for rep, ns in enumerate(lengths) for row in steps(*["train"] * 12, length=ns, rep=rep)]
        facts = {"state": "complete", "job": "boot:1", "command": list(command)}
        facts["fingerprint"] = {"cpu_model": cpu, "cpu_cores": 2}
        reps = [Rep(rep=rep, zero_realtime_ns=rep, zero_monotonic_ns=0, exit_code=0) for rep in range(len(spread))]
        return str(make_run({"step": rows}, reps=reps, **facts).path)

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
