"""Runs the installed `pipeprof` as a user does, on scripts in `workloads/`, and opens what it recorded."""

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from pipeprof.query.engine import Engine
from pipeprof.read.spool.finish import open_run
from pipeprof.record import store

PYTHON = os.environ.get("PIPEPROF_E2E_PYTHON", sys.executable)
WORKLOADS = Path(__file__).parent / "workloads"
LIMIT_S = 1800  # for what hangs


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.timeout(2 * LIMIT_S))  # a busy machine takes longer: only what hangs is a failure
        marked = {mark.name for mark in item.iter_markers()} & {"alone", "measures", "slow"}
        run = marked in ({"alone"}, {"slow"}, {"measures", "slow"}, set())
        assert run, f"{item.nodeid}: no part of `make test` and `make test-slow` would run it"


def clean_environment(**extra):
    """The environment without what could steer the collector or the training, and with the tested Python first."""
    hidden = ("PIPEPROF_", "FP_POINT", "BP_POINT", "PROFILING_", "VLOG_v", "GLOG_v", "MS_PROFILER_OPTIONS", "RANK_ID")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    kept["PATH"] = f"{Path(PYTHON).parent}{os.pathsep}{kept['PATH']}"
    return kept | extra


class Recording:
    """One recorded command: how it ended, what it printed, and its run."""

    def __init__(self, path, done):
        self.path = path
        self.done = done

    @property
    def run(self):
        return open_run(self.path)

    @property
    def manifest(self):
        return self.run.manifest

    def rows(self, table):
        return store.read(self.run, table).to_pylist()

    def sql(self, text):
        with Engine.open(self.run) as engine:
            return engine.sql(text).to_pylist()

    def training(self, rank=0):
        """Training steps of a rank in order, warm-up included."""
        return [row for row in self.rows("step") if row["kind"] != "eval" and row["rank"] == rank]

    def evaluation(self):
        return [row for row in self.rows("step") if row["kind"] == "eval"]

    def warned(self):
        return {warning.code: warning.message for warning in self.manifest.warnings}

    def clock(self, monotonic_ns):
        """A time of the script's monotonic clock in the run's time."""
        return monotonic_ns - self.manifest.reps[0].zero_monotonic_ns

    def truth(self):
        """(kind, epoch, time) of every step, as the script itself told them in its output."""
        text = self.done.stdout
        text = text if isinstance(text, str) else text.decode()
        line = next(line for line in text.splitlines() if line.startswith("truth "))
        return [(kind, epoch, self.clock(at)) for kind, epoch, at in json.loads(line.removeprefix("truth "))]


def words(*options, out, command):
    return [PYTHON, "-m", "pipeprof", "collect", "-o", str(out), *options, "--", *command]


def script(name, *args):
    return [PYTHON, str(WORKLOADS / name), *args]


class Pipeprof:
    """Starts `pipeprof` in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.numbers = count()

    def out(self):
        return self.folder / f"run{next(self.numbers)}"

    def collect(self, command, *options, out=None, env=None, cwd=None, **how):
        """Record a command to its end."""
        out = out or self.out()
        how = {"capture_output": True, "text": True, "timeout": LIMIT_S, "check": False} | how
        if how["text"]:
            how["errors"] = "backslashreplace"  # a library may print bytes that are no text
        done = subprocess.run(
            words(*options, out=out, command=command), env=env or clean_environment(), cwd=cwd or self.folder, **how
        )
        return Recording(out, done)

    def start(self, command, *options, out=None, env=None, **how):
        """Record a command in the background; returns the launcher and where the run will be."""
        out = out or self.out()
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
        launcher = subprocess.Popen(
            words(*options, out=out, command=command), env=env or clean_environment(), cwd=self.folder, **how
        )
        return launcher, out

    def run(self, *words, **how):
        """Any other verb."""
        how = {"capture_output": True, "text": True, "timeout": LIMIT_S, "check": False, "cwd": self.folder} | how
        return subprocess.run([PYTHON, "-m", "pipeprof", *words], env=clean_environment(), **how)

    @staticmethod
    def plain(command, **how):
        """The command without pipeprof."""
        how = {
            "capture_output": True,
            "text": True,
            "timeout": LIMIT_S,
            "check": False,
            "env": clean_environment(),
        } | how
        return subprocess.run(command, **how)

    script = staticmethod(script)
    python = PYTHON
    environment = staticmethod(clean_environment)


@pytest.fixture
def pipeprof(tmp_path):
    return Pipeprof(tmp_path)


@pytest.fixture(scope="session")
def pipeprof_in(tmp_path_factory):
    """`pipeprof_in(name)` works in a folder that lives as long as the session."""
    return lambda name: Pipeprof(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """`recorded("loops.py", "gan")`: one recording per workload, shared by all tests that only look at it."""
    session = Pipeprof(tmp_path_factory.mktemp("recorded"))
    known = {}

    def record(name, *args, options=()):
        key = (name, *args, *options)
        if key not in known:
            known[key] = session.collect(script(name, *args), *options)
        assert known[key].done.returncode == 0, known[key].done.stderr
        return known[key]

    return record
