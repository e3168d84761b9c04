"""Spools made by hand: what the launcher and the probe would have left, on a clock that starts at 1000."""

import json
import struct

import pytest
from kineto_files import imported, write_trace

from pipeprof import processes
from pipeprof.read.spool.marks import Kind
from pipeprof.read.tables import ranks
from pipeprof.record.run import Manifest, Run

MARK = struct.Struct("<BBIIqq")
ZERO = 1_000
REAL = 1_700_000_000_000_000_000  # wall clock at ZERO


@pytest.fixture
def several(monkeypatch):
    """`several(n)`: n processes, however small the files are."""

    def choose(count):
        monkeypatch.setattr(ranks, "WORTH_BYTES", 0)
        monkeypatch.setenv(ranks.VARIABLE, str(count))

    return choose


@pytest.fixture
def killed(monkeypatch):
    """Each process that shares the work is killed when it was asked for something."""
    ask = processes._Process.ask

    def asked(process, number, task):
        ask(process, number, task)
        process._process.kill()

    monkeypatch.setattr(processes._Process, "ask", asked)


def loop(start, steps):
    """Marks of a hand-written loop: each step fetches for 20 and updates from 30 to 90 of its 100."""
    marks = []
    for number in range(steps):
        at = start + 100 * number
        marks.append((Kind.FETCH, 0, 0, number, at, at + 20))
        if not number:
            marks.append((Kind.COMPILE, 0, 0, 0, at + 30, at + 40))
        marks.append((Kind.UPDATE, 0, 2, 0, at + 30, at + 90))
    return marks


class HandMade:
    """A run folder that was never finished. `rep` and `process` add to its spool."""

    loop = staticmethod(loop)

    def __init__(self, path):
        path.mkdir()
        self.run = Run(
            path, Manifest(run_id="20260101T000000-abcdef", started_at="2026-01-01T00:00:00Z", pipeprof_version="0")
        )
        self.run.save()

    def rep(self, number=0, status=0, end=10_000):
        folder = self.run.spool / f"rep={number}"
        folder.mkdir(parents=True)
        self._json(folder / "launch.json", {"monotonic": ZERO, "realtime": REAL, "pid": 1})
        if status is not None:
            self._json(folder / "exit.json", {"status": status, "monotonic": ZERO + end, "realtime": REAL + end})
        folder.joinpath("hello.jsonl").write_text('{"pid": 1}\n', encoding="utf-8")
        return folder

    def trained(self, rep=0, *, status=0, end=10_000, **process):
        """A repetition with one process that trained, see `process`."""
        self.rep(rep, status, end)
        return self.process(rep=rep, **process)

    def process(
        self, *, rep=0, pid=4_000_001, started=1_100, rank=None, steps=3, bye=True, events=(), marks=None, run_id=None
    ):
        """A process that trained: `steps` of a loop, 100 each, from 200 after its start; the first compiles."""
        folder = self.run.spool / f"rep={rep}" / f"proc-{pid}-{started}"
        folder.mkdir()
        clock = {"started": started, "monotonic": started + 50, "realtime": REAL + started + 50 - ZERO}
        about = {
            "e": "process",
            "t": started + 50,
            "pid": pid,
            "host": "machine",
            "python": "3.11",
            "hooks": "compiled",
        }
        about |= {"rank": rank, "run_id": run_id} | clock
        made = {"e": "import", "t": started + 60, "begin": started + 10, "end": started + 150, "version": "2.10.0"}
        iterator = {
            "e": "iterator", "t": started + 160, "number": 0, "begin": started + 155, "end": started + 160,
            "hidden": False, "site": "train.py:7", "epochs": 1, "queues": "not_recorded: queue sampling is off",
            "graph": {"type": "BatchOp", "workers": 1, "name": "", "python": False, "processes": False, "batch": 4, "children": []},
        }  # fmt: skip
        lines = [about, made, iterator, *events]
        if bye:
            lines.append({"e": "bye", "t": started + 200 + 100 * steps + 5})
        folder.joinpath("events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        self.marks(folder, loop(started + 200, steps) if marks is None else marks)
        return folder

    def host(self, samples, text=""):
        """The launcher's samples in repetition 0."""
        lines = "".join(json.dumps(sample) + "\n" for sample in samples) + text
        self.run.spool.joinpath("rep=0", "host.jsonl").write_text(lines, encoding="utf-8")

    @staticmethod
    def marks(folder, marks):
        folder.joinpath("marks.bin").write_bytes(b"".join(MARK.pack(*mark) for mark in marks))

    @staticmethod
    def window(folder, begin, end, executions, number=1, **opening):
        """An op window with a clock that is REAL at ZERO; `executions` are (name, start, ns), on the monotonic clock."""
        place = folder / f"window-{number}"
        place.mkdir()
        text = "".join(f"{name};HostCpuOps;{REAL - ZERO + at},{ns / 1e6:.6f},0\n" for name, at, ns in executions)
        place.joinpath("cpu_op_execute_timestamp_0.txt").write_text(text, encoding="utf-8")
        opened = {"e": "window_open", "t": begin, "number": number, "warmup": 0, "begin": begin, "began": begin}
        opened |= opening
        closed = {"e": "window", "t": end, "number": number, "ticks": [begin], "begin": begin, "end": end,
                  "executions": len(executions), "monotonic": ZERO, "realtime": REAL}  # fmt: skip
        with folder.joinpath("events.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(opened) + "\n" + json.dumps(closed) + "\n")

    @staticmethod
    def _json(path, facts):
        path.write_text(json.dumps(facts), encoding="utf-8")


@pytest.fixture
def spooled(tmp_path):
    """A run folder with a spool of one's own making."""
    return HandMade(tmp_path / "run")


@pytest.fixture
def read(tmp_path):
    """`read(events, **header)`: the run of a chrome trace."""
    return lambda events, **how: imported(tmp_path / "run", write_trace(tmp_path / "x.pt.trace.json", events, **how))
