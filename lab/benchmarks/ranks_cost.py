"""What a report on many ranks costs, as they were recorded and compacted: CPU seconds, peak memory, files.

python lab/benchmarks/ranks_cost.py --ranks 64 256 1024
python lab/benchmarks/ranks_cost.py --ranks 64 256 1024 4096 16384 --steps 1000 --events 0 --compacted

Each report is a process of its own; the runs are those of rank_runs.py. Compacting a run of many steps also writes
the answers that its report asks, which the next report reads. With `--compacted` there is no report before that.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from rank_runs import EVENTS, STEPS, make_run
from run_files import cost, sealed


def files(run):
    """How many Parquet files a run has, and their bytes."""
    found = [path.stat().st_size for path in run.rglob("*.parquet")]
    return len(found), sum(found)


def line(what, ranks, used, run):
    """Print one line of the cost curve."""
    count, size = files(run)
    print(f"{ranks:6,} ranks  {what:<18} {used[0]:7.1f} CPU s {used[1]:7.0f} MiB {count:7,} files {size:12,} bytes")


def main():
    """Make runs of each size, and print what their reports and compactions cost."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--ranks", type=int, nargs="+", default=[64, 256, 1024])
    asked.add_argument("--steps", type=int, default=STEPS)
    asked.add_argument("--events", type=int, default=EVENTS)
    asked.add_argument("--compacted", action="store_true")
    given = asked.parse_args()
    for ranks in given.ranks:
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            began = time.process_time()
            sealed(make_run(run, ranks, given.steps, given.events))
            line("made", ranks, (time.process_time() - began, 0), run)
            if not given.compacted:
                line("report", ranks, cost("report", run), run)
            line("compact", ranks, cost("compact", run), run)
            line("report, compacted", ranks, cost("report", run), run)


if __name__ == "__main__":
    main()
