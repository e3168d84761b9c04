"""CPU time of verbs on a small run, in times of that of `import duckdb`, and of a list of many runs.

python lab/benchmarks/verb_cost.py

The run is a recorded training of this repository, converted and summed up as `collect` does. Commands take turns; each
is a process of its own, and the median counts. `from the tables` is the same report without the kept answers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pipeprof.cli.messages import sum_up
from pipeprof.read.spool.finish import open_run
from pipeprof.record.run import load
from pipeprof.report import kept

CAPTURE = Path(__file__).resolve().parents[2] / "tests" / "real" / "captures" / "2.10-graph"
PIPEPROF = [sys.executable, "-m", "pipeprof"]


def used_by(words: list[str]) -> float:
    """CPU seconds of a command."""
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{words} ended with {child.returncode}")
    return used.ru_utime + used.ru_stime


def make_run(path: Path) -> None:
    """The recorded training with its tables, answers and rollup."""
    shutil.copytree(CAPTURE, path)
    open_run(path)
    shutil.rmtree(path / "spool", ignore_errors=True)
    run = load(path)
    run.manifest.state = "complete"
    run.save()
    sum_up(run, quiet=True)


def without_answers(run: Path, path: Path) -> None:
    """A copy of a run that has no answers, as those of an older pipeprof."""
    shutil.copytree(run, path)
    shutil.rmtree(path / kept.TABLE)
    changed = load(path)
    changed.manifest.tables.pop(kept.TABLE)
    changed.manifest.parts = {
        name: part for name, part in (changed.manifest.parts or {}).items() if not name.startswith(kept.TABLE)
    }
    changed.save()


def main() -> None:
    """Print a line for each command."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--times", type=int, default=7)
    asked.add_argument("--runs", type=int, default=340, help="in the list")
    asked.add_argument("--measured", type=int, default=40, help="of these, those of the history")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_CACHE_HOME"] = f"{place}/cache"
        run, older, many = Path(place, "run"), Path(place, "older"), Path(place, "many")
        make_run(run)
        without_answers(run, older)
        commands = {
            "import duckdb": [sys.executable, "-c", "import duckdb"],
            "report": [*PIPEPROF, "report", str(run)],
            "report, from the tables": [*PIPEPROF, "report", str(older)],
            "report --section steps": [*PIPEPROF, "report", str(run), "--section", "steps"],
            "ops": [*PIPEPROF, "ops", str(run)],
        }
        used: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(given.times):
            for name, words in commands.items():
                used[name].append(used_by(words))
        base = statistics.median(used["import duckdb"])
        for name, values in used.items():
            median = statistics.median(values)
            print(f"{name:<24} {median:6.3f} CPU s  x{median / base:.2f} [{min(values):.3f}, {max(values):.3f}]")
        for number in range(given.runs):
            shutil.copytree(run, many / f"run{number}", copy_function=shutil.copy)  # of other times, so other runs
        few, some = Path(place, "few"), Path(place, "some")
        shutil.copytree(run, few / "run", copy_function=shutil.copy)
        some.mkdir()
        for number in range(given.measured):
            many.joinpath(f"run{number}").rename(some / f"run{number}")
        for verb, folder, count in (("runs", many, given.runs - given.measured), ("history", some, given.measured)):
            start = statistics.median(used_by([*PIPEPROF, verb, str(few)]) for _ in range(3))
            for what, times in (("first", 1), ("later", 3)):
                more = statistics.median(used_by([*PIPEPROF, verb, str(folder)]) for _ in range(times)) - start
                print(f"{verb} on {count} runs, {what}: {more / count * 1e3:.2f} CPU ms a run")


if __name__ == "__main__":
    main()
