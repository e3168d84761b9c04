"""Noisy bisection, simulated with the library's functions beside plain `git bisect`: python lab/gate/bisect_simulation.py

A good commit, 64 after it, one of them +5 %. Every repetition is the next one of a job: synthetic, or a measured process.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import gate_measured
import gate_noise
import numpy as np

from pipeprof.verdict.gate.bisection import next_commit, posterior, settled

COMMITS, STEP, MOST_RUNS = 64, 0.05, 150
PLAIN_RUNS = 1  # repetitions of each commit, and of the good one
SEED = 20261123


@dataclass(frozen=True)
class Result:
    """Shares (0..1) of trials that name the right commit or a wrong one; the others end with a range."""

    right: float
    wrong: float
    range_holds: float
    runs: float
    most: float


def streams(trials, seed):
    """Source -> (trials, runs): step times of one job after another, in the order in which they were measured."""
    half = MOST_RUNS // 2 + 1
    found = {
        one.name: gate_noise.repetitions(one, trials, half, seed) for one in (gate_noise.QUIET, gate_noise.SAMEJOB)
    }
    if gate_measured.available():
        found["scaled"] = gate_measured.repetitions(True, trials, half, seed)
    joined = {name: np.moveaxis(table[:, :, 0], 1, 2).reshape(trials, -1) for name, table in found.items()}
    return joined | busy(trials, seed)


def busy(trials, seed):
    """What a busy machine does to processes that vary by 1 %: it drifts, it changes its speed, it disturbs some."""
    random, shape = np.random.default_rng([seed, 7]), (trials, MOST_RUNS + 2)
    noise = random.standard_normal(shape)
    walk = np.cumsum(random.standard_normal(shape), axis=1)
    turned = np.cumsum(random.random(shape) < 1 / 15, axis=1) % 2  # for 15 runs on average
    tails = 0.01 * random.standard_t(3, shape) + (random.random(shape) < 0.05) * random.exponential(0.2, shape)
    return {
        "drift": np.exp(0.01 * noise + 0.003 * walk),
        "slow stretches": np.exp(0.01 * noise + 0.03 * turned),
        "tails": np.exp(tails),
        "two levels": np.exp(0.007 * noise + 0.05 * (random.random(shape) < 0.3)),
    }


def bisect(stream, slow, commits=COMMITS, most=MOST_RUNS):
    """(the commit that is named, or None; the range; runs)."""
    measured, counts, measurable = [], [0] * (commits + 1), range(commits + 1)
    while True:
        now = posterior(measured, commits) if measured else None
        at = 0 if now is None else next_commit(now, counts, measurable, measured[-1][0])
        if min(counts[0], counts[-1]) and settled(now, counts, measurable):
            return now.likeliest(measurable)[0][0], None, len(measured)
        if len(measured) == most:
            return None, now.interval(0.95), len(measured)
        measured.append((at, stream[len(measured)] * (1 + STEP * (at >= slow))))
        counts[at] += 1


def plain(stream, slow, threshold=0.05, runs=PLAIN_RUNS, commits=COMMITS):
    """`git bisect` with a script that calls a commit bad above `threshold`: half of the change would be better."""
    used = iter(stream)
    draw = lambda at: np.median([next(used) * (1 + STEP * (at >= slow)) for _ in range(runs)])  # noqa: E731
    good, low, high, made = draw(0), 0, commits, runs
    while high - low > 1:
        middle, made = (low + high) // 2, made + runs
        low, high = (low, middle) if draw(middle) / good > 1 + threshold else (middle, high)
    return high, None, made


def rates(stream, find, seed=SEED):
    random, ends = np.random.default_rng(seed), []
    for one in stream:
        slow = int(random.integers(1, COMMITS + 1))
        named, around, runs = find(one, slow)
        ends.append((named == slow, named not in (None, slow), around is not None and slow in around, runs))
    table = np.array(ends, dtype=float)
    ranges = table[(table[:, 0] + table[:, 1]) == 0, 2]
    return Result(
        table[:, 0].mean(), table[:, 1].mean(), ranges.mean() if len(ranges) else float("nan"), np.median(table[:, 3]),
        table[:, 3].max(),
    )  # fmt: skip


FINDS = {
    "pipeprof bisect": bisect,
    "git bisect, 5 %, 1 run": plain,
    "git bisect, 2.5 %, 1 run": lambda stream, slow: plain(stream, slow, 0.025),
    "git bisect, 2.5 %, median of 9": lambda stream, slow: plain(stream, slow, 0.025, 9),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=SEED)
    wish = parser.parse_args()
    print(
        "| repetitions | rule | right commit | wrong commit | a range instead (holds the commit) | runs: median, most |"
    )
    print("|---|---|---|---|---|---|")
    for source, stream in streams(wish.trials, wish.seed).items():
        for name, find in FINDS.items():
            one = rates(stream, find, wish.seed)
            rest = f"{1 - one.right - one.wrong:.1%}" + (
                f" ({one.range_holds:.0%})" if one.range_holds == one.range_holds else ""
            )
            print(
                f"| {source} | {name} | {one.right:.1%} | {one.wrong:.1%} | {rest} | {one.runs:.0f}, {one.most:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
