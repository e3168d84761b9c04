"""A real Dask cluster on this machine: a scheduler, and nodes that can be killed or come late. And tasks for them."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from free_port import free_port

TESTS = Path(__file__).resolve().parent
SETTINGS = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1", "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical"}


class Nodes:
    """The scheduler's `url`, and its nodes by the order in which they were added."""

    def __init__(self, folder):
        port = free_port()
        self.url = f"tcp://127.0.0.1:{port}"
        self._folder = folder
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", str(port))
        self.nodes = []

    def add(self, memory="0"):
        """One more node, a process with one worker in it that it starts again when it is ended."""
        self.nodes.append(
            self._start(
                "worker", self.url, "--nthreads", "1", "--memory-limit", memory, "--local-directory", self._folder
            )
        )

    def _start(self, kind, *words):
        path = os.pathsep.join([str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")])
        with self._folder.joinpath(f"{kind}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *map(str, words), "--no-dashboard"],
                env=os.environ | SETTINGS | {"PYTHONPATH": path}, cwd=self._folder, start_new_session=True,
                stdout=subprocess.DEVNULL, stderr=log,
            )  # fmt: skip


def kill(process):
    """End a node, or the scheduler, as a power cut does: itself and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def cluster_of(folder, nodes=2, memory="0"):
    """A cluster with so many nodes, for as long as the context."""
    cluster = Nodes(folder)
    try:
        for _ in range(nodes):
            cluster.add(memory)
        yield cluster
    finally:
        for process in [*cluster.nodes, cluster.scheduler]:
            kill(process)


def where(number):
    """The part itself and the process that was asked, after a while."""
    time.sleep(0.1)
    return number, os.getpid()


def fill(number):
    """The part; of the negative one never, since it takes all memory there is."""
    kept = []
    while number < 0:
        kept.append(bytearray(os.urandom(1 << 20) * 32))
        time.sleep(0.05)
    return number, len(kept)


def end(number):
    """The part; of the negative one never: the process is gone."""
    if number < 0:
        os._exit(1)
    return number, 0
