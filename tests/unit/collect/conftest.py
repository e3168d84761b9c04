"""The probe, loaded as it is in a recorded process, with a recorder that has no thread and a clock of its own."""

import _thread
import json
import os
import subprocess
import sys
import threading
from importlib import import_module, util
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import pipeprof.collect
from pipeprof.collect import launch

PROBE = Path(pipeprof.collect.__file__).parent / "probe"
NAME = "_pipeprof_probe"
MODULES = (
    "files", "recorder", "windows", "steps", "describe", "swap", "service", "dataset", "profiler_guard", "imports", "sections",
    "lines", "live", "stacks", "graphs", "operands", "cells", "loop", "trains", "trees", "iterables", "loaders", "dataloader", "hooks",
    "marks", "around", "where", "torch_ops",
)  # fmt: skip


class Probe(SimpleNamespace):
    """Modules of the probe by their names; one that is not in MODULES is loaded when it is asked for."""

    def __getattr__(self, name):
        if not (PROBE / f"{name}.py").exists():
            raise AttributeError(name)
        return import_module(f"{NAME}.{name}")


class NoThread:
    def __init__(self, **_options):
        pass

    def start(self):
        pass


@pytest.fixture(params=[*(["compiled"] if list(PROBE.glob("_hooks*.so")) else []), "python"])
def probe(request, monkeypatch):
    """The probe's modules, fresh for each test: with its hooks in C, and in Python."""
    monkeypatch.setenv("PIPEPROF_NO_COMPILED", str(int(request.param == "python")))
    spec = util.spec_from_file_location(NAME, PROBE / "__init__.py", submodule_search_locations=[str(PROBE)])
    package = util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)
    hooks = import_module(f"{NAME}.hooks")
    assert (hooks.COMPILED is None) == (request.param == "python")  # a file of an older source is to be compiled anew
    yield Probe(package=package, **{name: import_module(f"{NAME}.{name}") for name in MODULES})
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


@pytest.fixture
def rec(probe, tmp_path, monkeypatch):
    """The recorder of this process, writing below tmp_path; every look at the clock is 1 us later than the one before."""
    ticks = count(1_000_000, 1_000)
    monkeypatch.setattr(probe.recorder, "now", lambda: next(ticks))
    monkeypatch.setattr(threading, "Thread", NoThread)
    made = probe.recorder.Recorder(str(tmp_path), "{}")
    probe.recorder.use(made)
    yield made
    made.off = True


@pytest.fixture
def told(rec):
    """`told(name)`: the events of this name that the recorder wrote, and `told()` all of them."""

    def of(name=None):
        lines = Path(rec.folder, "events.jsonl").read_text(encoding="utf-8").splitlines() if rec.folder else []
        return [event for event in map(json.loads, lines) if name in (None, event["e"])]

    return of


@pytest.fixture
def said(rec, monkeypatch):
    """In place of files: (name, fields) of each event and line, and (code, words) of each warning."""
    found = []
    monkeypatch.setattr(rec, "event", lambda name, **fields: found.append((name, fields)))
    monkeypatch.setattr(rec, "line", rec.event)
    monkeypatch.setattr(rec, "warn", lambda code, words: found.append((code, words)))
    return found


@pytest.fixture
def failures(rec, monkeypatch):
    """Where the probe failed: the places that it would warn of."""
    found = []
    monkeypatch.setattr(rec, "failed", found.append)
    return found


@pytest.fixture
def mindspore(monkeypatch, tmp_path):
    """A package `mindspore` that has a folder, and nothing in it."""
    package = ModuleType("mindspore")
    package.__file__ = str(tmp_path / "mindspore" / "__init__.py")
    monkeypatch.setitem(sys.modules, "mindspore", package)
    return package


def in_thread(call, *args):
    """What a call gives in a thread of its own, to its end; the threads of the fixtures do nothing."""
    found, over = [], threading.Event()

    def run():
        found.append(call(*args))
        over.set()

    _thread.start_new_thread(run, ())
    assert over.wait(10)
    return found[0]


def operator(kind, *children, base=object, **facts):
    """An operator of a dataset: of a class named as MindSpore's is for this kind."""
    made = type(f"{kind.removesuffix('Op')}Dataset", (base,), {})()
    vars(made).update(facts, children=list(children))
    return made


@pytest.fixture
def has_few_own_frames(probe):
    """Whether few frames of a traceback are of the probe: 3.10 puts that of each hook back."""
    folder, most = str(Path(probe.recorder.__file__).parent), 1 if sys.version_info >= (3, 11) else 2
    return lambda caught: sum(str(entry.path).startswith(folder) for entry in caught.traceback) <= most


@pytest.fixture
def spool(tmp_path):
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


def python(*words, spool=None, path=(), watched=True, **variables):
    """How a Python ends that the probe enters, or not; `path` are the user's own folders with modules."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIPEPROF_", "PYTHON"))}
    folders = [launch.PROBE, *path] if watched else path
    own = {"PYTHONPATH": os.pathsep.join(map(str, folders))} | ({"PIPEPROF_SPOOL": str(spool)} if spool else {})
    how = {"capture_output": True, "text": True, "check": False, "timeout": 60, "env": kept | own | variables}
    return subprocess.run([sys.executable, *map(str, words)], **how)


@pytest.fixture
def script(spool):
    """Text that loads the probe in a Python of its own, with a recorder in `tmp_path/spool`."""
    return (
        "import os, sys, warnings\nwarnings.simplefilter('ignore', DeprecationWarning)  # of os.fork beside threads\n"
        "from importlib import import_module, util\n"
        f"spec = util.spec_from_file_location({NAME!r}, {str(PROBE / '__init__.py')!r}, "
        f"submodule_search_locations=[{str(PROBE)!r}])\n"
        f"probe = sys.modules[{NAME!r}] = util.module_from_spec(spec)\nspec.loader.exec_module(probe)\n"
        f"recorder = import_module({NAME + '.recorder'!r})\nREC = recorder.open_recorder({str(spool)!r}, '{{}}')\n"
    )


@pytest.fixture
def alone(script, tmp_path):
    """`alone(body)`: how a Python of its own ends that loads the probe and goes on with this text, in `tmp_path`."""

    def run(body, timeout=60):
        words, how = [sys.executable, "-c", script + body], {"text": True, "check": False, "cwd": tmp_path}
        return subprocess.run(words, capture_output=True, timeout=timeout, **how)

    return run
