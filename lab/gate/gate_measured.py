"""Repetitions drawn from measured ones: processes that ran identical code, where their samples are at hand."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "gate" / "aa_mindspore"
SKIPPED_STEPS, WINDOW = 20, 100  # warm-up; steps of one draw, which starts anywhere in the rest
SKIPPED_ROUNDS, ROUNDS = 2, 18
DAMPED = 0.1  # of the log deviations is left in "scaled": a decent runner


def available():
    return (FOLDER / "steps.csv.gz").exists() and (FOLDER / "ops.csv.gz").exists()


def _rows(name):
    with gzip.open(FOLDER / name, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@lru_cache(maxsize=2)
def step_table(damped):
    """Step and data times in ns of each process, (processes, steps), and its first step, (processes,)."""
    wall, data = defaultdict(dict), defaultdict(dict)
    for row in _rows("steps.csv.gz"):
        wall[row["process"]][int(row["step"])] = float(row["wall_ms"]) * 1e6
        data[row["process"]][int(row["step"])] = float(row["data_ms"]) * 1e6
    names, last = sorted(wall), min(max(steps) for steps in wall.values())
    tables = [np.array([[part[name][at] for at in range(last + 1)] for name in names]) for part in (wall, data)]
    first = tables[0][:, 0]
    return [_quieter(table, damped) for table in (tables[0][:, SKIPPED_STEPS:], tables[1][:, SKIPPED_STEPS:], first)]


@lru_cache(maxsize=2)
def op_table(damped):
    """Operator times in us, (processes, operators, rounds)."""
    found = defaultdict(lambda: defaultdict(list))
    for row in _rows("ops.csv.gz"):
        if int(row["round"]) >= SKIPPED_ROUNDS:
            found[row["process"]][row["op"]].append(float(row["wall_us"]))
    table = np.array([[found[process][op] for op in sorted(found[process])] for process in sorted(found)])
    if not damped:
        return table
    level = np.median(np.log(table), axis=(0, 2), keepdims=True)
    return np.exp(level + DAMPED * (np.log(table) - level))


def _quieter(table, damped):
    if not damped:
        return table
    level = np.median(np.log(table))
    return np.exp(level + DAMPED * (np.log(table) - level))


def repetitions(damped, trials, reps, seed):
    """Five metrics, (trials, 2, metrics, reps): processes drawn with replacement, from each a stretch of steps.

    Peak memory was not measured in these processes: the median time of their operators stands in for it.
    """
    return _drawn(_stretches(damped), trials, reps, seed)


@lru_cache(maxsize=2)
def _stretches(damped):
    """The five metrics of each stretch of steps of each process."""
    wall, data, first = step_table(damped)
    ops = np.median(op_table(damped), axis=(1, 2)) * 1e6
    starts = wall.shape[1] - WINDOW + 1
    cells = [
        (
            np.median(part),
            np.quantile(part, 0.9),
            np.median(data[process, at : at + WINDOW]),
            first[process],
            ops[process],
        )
        for process in range(len(wall))
        for at in range(starts)
        for part in (wall[process, at : at + WINDOW],)
    ]
    return np.array(cells)


def _drawn(cells, trials, reps, seed):
    drawn = cells[np.random.default_rng(seed).integers(0, len(cells), (trials, 2, reps))]
    return np.moveaxis(drawn, -1, -2)


def steps(damped, trials, reps, seed):
    """Step times in ns, (trials, 2, reps, steps)."""
    wall, _, _ = step_table(damped)
    random = np.random.default_rng(seed)
    process = random.integers(0, len(wall), (trials, 2, reps))
    start = random.integers(0, wall.shape[1] - WINDOW + 1, (trials, 2, reps))
    return wall[process[..., None], start[..., None] + np.arange(WINDOW)]


def operators(trials, reps, seed):
    """Operators x 5 statistics in us, damped, (trials, 2, metrics, reps): the statistics of one operator lie together."""
    return _drawn(_rounds(), trials, reps, seed)


@lru_cache(maxsize=1)
def _rounds():
    """The statistics of all operators in each stretch of rounds of each process."""
    table = op_table(damped=True)
    cells = []
    for process in range(len(table)):
        for at in range(table.shape[2] - ROUNDS + 1):
            part = np.sort(table[process, :, at : at + ROUNDS], axis=-1)
            trimmed = part[:, ROUNDS // 5 : ROUNDS - ROUNDS // 5].mean(axis=-1)
            statistics = (
                np.median(part, axis=-1),
                part.mean(axis=-1),
                trimmed,
                part[:, 0],
                np.quantile(part, 0.9, axis=-1),
            )
            cells.append(np.stack(statistics, axis=-1).reshape(-1))
    return np.array(cells)
