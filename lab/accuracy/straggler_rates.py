"""How often the verdict on ranks names a rank: false alarms where all are alike, and how often a slow one is found.

python lab/accuracy/straggler_rates.py                 200 runs of each kind, number of ranks and number of steps
python lab/accuracy/straggler_rates.py --runs 1000

Prints the tables of lab/notes/ranks.md. Times are drawn: 100 ms and noise.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "unit" / "verdict"))

from rank_rows import rows_of, stragglers
from test_straggler_noise import NOISE, correlated, named

RANKS, STEPS = (2, 4, 8, 16, 64), (3, 5, 10, 20, 40, 100)
SHARED, SHARED_RANKS, SHARED_STEPS = (0.5, 0.7), (2, 8, 64), (5, 10, 20, 40, 100)
SLOW = (2.5, 3, 5, 10)  # % of a step
CASES = ((5, 2), (5, 8), (10, 2), (10, 8), (20, 8), (50, 2))  # steps, ranks
SLOW_NOISE = 1.0  # % of a step


def false_alarms(runs: int, chance: np.random.Generator) -> None:
    """A rank named in runs in which none is slow."""
    wrong = [
        sum(named(kind, steps, ranks, chance) for _ in range(runs))
        for kind in NOISE
        for ranks in RANKS
        for steps in STEPS
    ]
    total = len(wrong) * runs
    print(
        f"alike: {sum(wrong)} of {total} ({sum(wrong) / total:.2%}); the worst of {len(wrong)}: {max(wrong)} of {runs}"
    )
    for share in SHARED:
        rates = {
            (steps, ranks): sum(_named(100 + correlated(chance, steps, ranks, share)) for _ in range(runs)) / runs
            for ranks in SHARED_RANKS
            for steps in SHARED_STEPS
        }
        few, many = (
            max(rate for (steps, _), rate in rates.items() if (steps < 40) is early) for early in (True, False)
        )
        print(f"correlated by {share}: at most {few:.1%} with fewer than 40 steps, {many:.1%} with more")


def detection(runs: int, chance: np.random.Generator) -> None:
    """The last rank is slower, and it alone is named."""
    print(
        "| steps | ranks | " + " | ".join(f"{slow:g} %" for slow in SLOW) + " |\n" + "| ---: " * (2 + len(SLOW)) + "|"
    )
    for steps, ranks in CASES:
        found = []
        for slow in SLOW:
            times = 100 + chance.normal(0, SLOW_NOISE, (runs, steps, ranks))
            times[:, :, -1] += slow
            names = [[item["rank"] for item in stragglers(rows_of(one))["found"]] for one in times]
            found.append(sum(name == [ranks - 1] for name in names) / runs)
        print(f"| {steps} | {ranks} | " + " | ".join(f"{share:.0%}" for share in found) + " |")


def _named(times: np.ndarray) -> bool:
    return bool(stragglers(rows_of(times))["found"])


def main() -> None:
    """Both tables, from a fixed seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20261126)
    asked = parser.parse_args()
    chance = np.random.default_rng(asked.seed)
    false_alarms(asked.runs, chance)
    detection(asked.runs, chance)


if __name__ == "__main__":
    main()
