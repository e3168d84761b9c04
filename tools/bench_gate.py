"""Judges our own benchmarks: another revision's and this one's in turn, on this machine, through `pipeprof compare`.

    python tools/bench_gate.py --base origin/main --times 5 -o .benchmarks/gate

The exit code is that of the comparison: 0 nothing worse, 1 regressed, 3 could not be judged, 4 inconclusive; 5 when a
benchmark failed. Each side runs its own benchmarks on its own code: FOLDER/base and FOLDER/new hold what they said.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTEST = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--benchmark-enable"]
FAILED = 5


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="origin/main", help="revision that this tree is compared with")
    parser.add_argument("--times", type=int, default=5, help="repetitions of each side")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / ".benchmarks" / "gate")
    parser.add_argument("words", nargs="*", default=["tests/benchmarks"], help="what pytest runs")
    wishes = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        tree, figures = Path(temporary, "tree"), Path(temporary, "figures")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), wishes.base], check=True)
        try:
            whole = measure({"base": tree, "new": ROOT}, wishes.times, wishes.words, figures)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
        code = judge(figures, wishes.base) if whole else FAILED
        shutil.rmtree(wishes.output, ignore_errors=True)
        shutil.copytree(figures, wishes.output)
    return code


def judge(figures: Path, base: str) -> int:
    """The exit code of the comparison, by the settings of the base.

    The sides lie outside of the repository: within it `compare` would look for the base's side in that revision.
    """
    compare = [
        sys.executable,
        "-m",
        "pipeprof",
        "compare",
        "--base-ref",
        base,
        str(figures / "base"),
        str(figures / "new"),
    ]
    with (figures / "summary.md").open("wb") as summary:
        subprocess.run([*compare, "--format", "markdown"], cwd=ROOT, stdout=summary, check=False)
    return subprocess.run(compare, cwd=ROOT, check=False).returncode


def measure(trees: dict[str, Path], times: int, words: list[str], folder: Path) -> bool:
    """Whether every execution succeeded. The sides take turns in going first: machines drift."""
    for number in range(times):
        for side in sorted(trees, reverse=bool(number % 2)):
            out = folder / side / f"{number}.json"
            out.parent.mkdir(parents=True, exist_ok=True)
            environment = os.environ | {"PYTHONPATH": str(trees[side])}
            command = [sys.executable, *PYTEST, f"--benchmark-json={out}", *words]
            if subprocess.run(command, cwd=trees[side], env=environment, check=False).returncode:
                return False
    return True


if __name__ == "__main__":
    sys.exit(main())
