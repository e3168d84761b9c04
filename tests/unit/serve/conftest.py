"""A folder of runs that is served: its runs, the server, and one that is recorded while it is looked at."""

import contextlib
import http.client
import threading

import pytest

from pipeprof.record.run import Rep
from pipeprof.report import status
from pipeprof.serve import app as room
from pipeprof.serve.site import Site

MS = 1_000_000
TOKEN = "the-token"  # noqa: S105
LOOK = {
    "state": status.RECORDING, "run": {"path": "now"}, "machine": None, "verdict": None,
    "ranks": [{"text": "rank 0 is training <b>", "pid": 1, "queues": [{"op_type": "MapOp", "depth": 3, "capacity": 4}],
               "pace": {"steps": 7, "over_ns": 7e9, "steps_per_second": 1.0, "median_ns": 1e9}}],
}  # fmt: skip


@pytest.fixture
def recorded(make_run, tmp_path):
    """`recorded(name, minute, ms)`: a run in `runs/` that began at that minute."""

    def make(name, minute=0, ms=10, state="complete"):
        steps = [
            {"rep": rep, "step": n, "kind_step": n, "kind": "train", "start_ns": ms * n * MS, "end_ns": ms * (n + 1) * MS}
            for rep in range(3) for n in range(12)
        ]  # fmt: skip
        run = make_run({"step": steps})
        folder = tmp_path / "runs"
        folder.mkdir(exist_ok=True)
        run.path = run.path.rename(folder / name)
        run.manifest.run_id, run.manifest.state, run.manifest.command = f"run-{minute}", state, ["python", "train.py"]
        run.manifest.fingerprint = {"cpu_model": "A", "cpu_cores": 2}
        run.manifest.reps = [Rep(rep=rep, zero_realtime_ns=rep, zero_monotonic_ns=0, exit_code=0) for rep in range(3)]
        run.manifest.started_at = f"2026-01-02T03:{minute:02}:00+00:00"
        run.save()
        return run

    return make


@pytest.fixture
def served(tmp_path):
    """`served()` starts the site of `runs/` and gives `ask(path, ...)`, which answers (status, headers, text)."""
    (tmp_path / "runs").mkdir(exist_ok=True)
    with contextlib.ExitStack() as ends:

        def start():
            at = room.bound(0)
            port = at.getsockname()[1]
            server = room.server(Site(tmp_path / "runs"), at, TOKEN)
            thread = threading.Thread(target=server.run, kwargs={"sockets": [at]}, daemon=True)
            thread.start()
            ends.callback(at.close)
            ends.callback(thread.join, 30)
            ends.callback(setattr, server, "should_exit", True)

            def ask(path, host=None, cookie=f"pipeprof-{port}={TOKEN}", method="GET"):
                link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
                with contextlib.closing(link):
                    link.request(method, path, headers={"Host": host or f"127.0.0.1:{port}", "Cookie": cookie})
                    answer = link.getresponse()
                    return answer.status, dict(answer.getheaders()), answer.read().decode()

            ask.port, ask.token = port, TOKEN
            return ask

        yield start


@pytest.fixture
def a_look():
    """What is known of a run that is recorded."""
    return LOOK


@pytest.fixture
def recording(recorded, monkeypatch):
    """A run that is recorded, whose looks come from a list; after them it has ended."""
    monkeypatch.setattr("pipeprof.serve.site.is_running", lambda _run: True)
    monkeypatch.setattr("pipeprof.report.runs.is_running", lambda _run: True)
    monkeypatch.setattr("pipeprof.report.top.EVERY_S", 0.0)
    monkeypatch.setattr("pipeprof.report.top.SHARE", 1e9)
    monkeypatch.setattr("pipeprof.report.top.Watch._judged", lambda _self, _ranks: None)
    run = recorded("now", 2)
    run.manifest.state = "running"
    run.save()
    paces = iter([1.0, 2.0, 3.0])

    def look(_self):
        pace = next(paces, None)
        rank = LOOK["ranks"][0] | {"pace": LOOK["ranks"][0]["pace"] | {"steps_per_second": pace}}
        return LOOK | ({"ranks": [rank]} if pace else {"state": "complete", "ranks": []})

    monkeypatch.setattr("pipeprof.report.top.Watch.look", look)
    return run
