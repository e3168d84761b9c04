"""What counting costs a dataset's worker process: CPU time per row, in turn with an empty loop.

    python lab/benchmarks/worker_rows.py [--rows 200000] [--rounds 5]

Every row is timed up to 200 rows a second and operator; of faster ones only some are, the others are counted.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module, util
from pathlib import Path
from types import SimpleNamespace

import pipeprof.collect

PROBE = Path(pipeprof.collect.__file__).parent / "probe"


def load_probe():
    """The probe's module of worker processes, with a recorder that records nothing."""
    spec = util.spec_from_file_location(
        "_pipeprof_probe", PROBE / "__init__.py", submodule_search_locations=[str(PROBE)]
    )
    package = sys.modules["_pipeprof_probe"] = util.module_from_spec(spec)
    spec.loader.exec_module(package)
    return import_module("_pipeprof_probe.workers")


class Messages:
    """As MindSpore's, without the messages."""

    def msg_rcv(self, kind):
        """A row arrives."""

    def msg_snd(self, kind, number, size):
        """A row leaves."""


def cpu_per_row(queue, rows):
    """ns of CPU time per row of a loop that receives and sends."""
    begin = time.process_time_ns()
    for _ in range(rows):
        queue.msg_rcv(1)
        queue.msg_snd(1, 2, 3)
    return (time.process_time_ns() - begin) / rows


def main():
    """Print the least of the rounds, for rows that are all timed and rows of which one in 1597 is."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    workers = load_probe()
    hooked = type("Hooked", (Messages,), dict(vars(Messages)))
    workers.install_datasets(SimpleNamespace(cde=SimpleNamespace(MessageQueue=hooked)))
    pool = workers.Pool(1)
    workers.SLOT = workers.Slot(None, pool.memory, 0)
    for name, every in (("timed", 1), ("counted", 1597)):
        pool._order(every)
        costs = [
            cpu_per_row(hooked(), options.rows) - cpu_per_row(Messages(), options.rows) for _ in range(options.rounds)
        ]
        print(f"{name}: {min(costs) / 1000:.2f} us of CPU time per row")


if __name__ == "__main__":
    main()
