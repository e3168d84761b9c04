"""What questions over many runs cost: CPU seconds, peak memory, and what is asked of the file system.

python lab/benchmarks/fleet_cost.py --runs 10000

Makes runs of known truth (fleet_runs.py), gathers them once, and asks; each question is a process of its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

from fleet_runs import make_fleet
from ranks_cost import cost

SQL = "SELECT workload, sum(wait_hours) AS hours FROM fleet_run GROUP BY ALL ORDER BY hours DESC"
WITHOUT = 100  # runs whose rollups are taken away


def line(what: str, used: tuple[float, float], took: float) -> None:
    """Print what one command cost."""
    print(f"{what:<34} {used[0]:7.2f} CPU s {took:7.2f} s {used[1]:6.0f} MiB", flush=True)


def measured(what: str, *words: object) -> None:
    """Run a pipeprof command, and print what it cost."""
    began = time.monotonic()
    used = cost(*words)
    line(what, used, time.monotonic() - began)


def main() -> None:
    """Make the runs, or take those that are there, and print a line for each question."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--runs", type=int, default=10_000)
    asked.add_argument("--folder", type=Path, help="Runs that fleet_runs.py made.")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_CACHE_HOME"] = f"{place}/cache"
        folder = given.folder or Path(place) / "fleet"
        if given.folder is None:
            make_fleet(folder, given.runs)
        measured("first report, rollups read", "fleet", folder)
        for number in range(3):
            measured(f"report {number + 2}", "fleet", folder)
            measured(f"SQL {number + 1}", "fleet", folder, "--sql", SQL)
        (index,) = Path(os.environ["XDG_CACHE_HOME"], "pipeprof", "fleet").iterdir()
        print(f"index: {index.stat().st_size:,} bytes")
        few = Path(place) / "few"
        make_fleet(few, WITHOUT)
        for path in few.rglob("rollup"):
            shutil.rmtree(path)
        for path in few.rglob("run.json"):
            forget_rollup(path.parent)
        measured(f"{WITHOUT} runs without rollups", "fleet", few)


def forget_rollup(path: Path) -> None:
    """As an older pipeprof would have left the run."""
    from pipeprof.errors import RunError
    from pipeprof.record.run import load

    try:
        run = load(path)
    except RunError:
        return  # planted
    if run.manifest.tables.pop("rollup", None) is not None and run.manifest.parts is not None:
        del run.manifest.parts["rollup/rows.parquet"]
        run.save()


if __name__ == "__main__":
    main()
