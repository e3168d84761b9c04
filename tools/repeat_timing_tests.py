"""Runs the tests that compare times of real trainings many times in a row, beside busy loops.

    python tools/repeat_timing_tests.py --times 20 --busy 2

One line for each run; exit code 1 when a test failed in any of them. Nothing is tried again.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab" / "accuracy"))

from quiet import busy_loops

TWO = ["-n", "2", "--dist", "worksteal"]  # as in `make slow-measures`
PYTEST = [sys.executable, "-m", "pytest", "-m", "measures", "-q", "-p", "no:cacheprovider", *TWO, "tests/e2e"]
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def run_once(number: int, words: list[str]) -> list[str]:
    """The tests that failed in one run; what pytest said is shown when there are any."""
    began = time.monotonic()
    done = subprocess.run([*PYTEST, *words], stdout=subprocess.PIPE, text=True, check=False)
    failed = FAILED.findall(done.stdout)
    if done.returncode and not failed:
        failed = [f"pytest ended with exit code {done.returncode}"]
    last = done.stdout.strip().splitlines()[-1]
    say(f"run {number}: {last} ({time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f})")
    if failed:
        say(done.stdout)
    return failed


def say(text: str) -> None:
    """At once: a run takes minutes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--busy", type=int, default=0, help="busy loops beside the tests")
    parser.add_argument("words", nargs="*", help="for pytest, after --")
    wishes = parser.parse_args()
    failures: Counter[str] = Counter()
    with busy_loops(wishes.busy):
        for number in range(1, wishes.times + 1):
            failures.update(run_once(number, wishes.words))
    say(f"{wishes.times} runs, {failures.total()} failures")
    for name, count in failures.most_common():
        say(f"  {count} x {name}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
