"""Would fewer repetitions do? What each way to reduce the spread between repetitions of identical code brings.

python lab/gate/variance_reduction.py            the table, from the recorded repetitions
python lab/gate/variance_reduction.py --record FILE --reps 24    record repetitions with covariates on this machine

The repetitions of a side that give the same power go with the variance of what is compared, so each way is scored by its
variance over the plain one's. Slopes of covariates are fitted without the repetition that they are used for.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import gate_measured
import numpy as np

HERE = Path(__file__).resolve().parent
RECORDED = HERE.parents[1] / "tests" / "gate" / "repetitions.csv"
TRAININGS = {"waits": ("real_training.py", "4.0")}
TRIMS = (0.25, 0.5)  # of the steps, left out at the start


@dataclass
class Source:
    """Repetitions in their order: `plain` is the logarithm of the median step; the others one number for each."""

    name: str
    plain: np.ndarray
    covariates: dict[str, np.ndarray] = field(default_factory=dict)
    instead: dict[str, np.ndarray] = field(default_factory=dict)  # measured in place of the median step
    own_share: float | None = None  # of the variance, that is the process's own: what half of its steps say of the rest
    jobs: list[str] = field(default_factory=list)  # of each repetition, whose level is taken out; one when empty


def spread(source):
    """Variance between the repetitions of one job."""
    free = len(source.plain) - len(set(source.jobs) or {""})
    return float(((source.plain - source.plain.mean()) ** 2).sum() / free)


def score_pairs(source):
    """Variance of one repetition that is left when neighbours of one job are subtracted, over that without."""
    jobs = source.jobs or [""] * len(source.plain)
    same = [one == other for one, other in itertools.pairwise(jobs)]
    return float(np.mean(np.diff(source.plain)[same] ** 2) / 2 / spread(source))


def score_covariates(values, columns):
    """Variance left by a linear fit, each repetition predicted by the others, over that left by their mean alone."""

    def left(table):
        hat = table @ np.linalg.pinv(table)
        return float(np.mean(((values - hat @ values) / (1 - np.diag(hat))) ** 2))

    ones = np.ones((len(values), 1))
    scaled = [(one - one.mean()) / (one.std() or 1.0) for one in columns]
    return left(np.column_stack([ones, *scaled])) / left(ones)


def scores(source):
    """Way -> variance over the plain one's."""
    found = {"pairs, back to back": score_pairs(source)}
    found |= {name: float(one.var(ddof=1) / source.plain.var(ddof=1)) for name, one in source.instead.items()}
    found |= {name: score_covariates(source.plain, [one]) for name, one in source.covariates.items()}
    if len(source.covariates) > 1:
        found["all covariates together"] = score_covariates(source.plain, list(source.covariates.values()))
    return found


def own_share(steps):
    """Correlation of the medians of odd and even tens of steps, stepped up to all of them (Spearman and Brown)."""
    tens = np.arange(steps.shape[1]) // 10
    halves = [np.median(np.log(steps[:, tens % 2 == part]), axis=1) for part in (0, 1)]
    r = float(np.corrcoef(halves)[0, 1])
    return 2 * r / (1 + r)


def trimmed(steps):
    last = steps.shape[1]
    return {
        f"first {trim:.0%} of the steps left out": np.log(np.median(steps[:, int(trim * last) :], axis=1))
        for trim in TRIMS
    }


def of_processes():
    wall, data, first = gate_measured.step_table(False)
    after = np.median(np.log(gate_measured.op_table(False)), axis=(1, 2))
    return Source(
        "19 processes, overloaded", np.log(np.median(wall, axis=1)),
        {"time of the first step": np.log(first), "operators timed behind the loop": after,
         "common mode: wait for data": np.log(np.median(data, axis=1))},
        trimmed(wall), own_share(wall),
    )  # fmt: skip


def of_baseline(name):
    """Repetitions of a stored baseline, three in each job, of which the level is taken out: a session is one job."""
    found = next((HERE.parents[1] / "baselines" / name).glob("*/measures.parquet"))
    rows = duckdb.sql(f'SELECT metric, "order", job, value FROM \'{found}\' ORDER BY metric, "order"').fetchall()  # noqa: S608
    jobs = [job for metric, _, job, _ in rows if metric == "step_time_median"]

    def column(metric):
        logs = np.log([value for one, _, _, value in rows if one == metric])
        levels = {job: logs[[at for at, other in enumerate(jobs) if other == job]].mean() for job in jobs}
        return logs - np.array([levels[job] for job in jobs])

    covariates = {"time of the first step": "first_step_time", "common mode: wait for data": "phase/data_wait"}
    columns = {say: column(one) for say, one in covariates.items()}
    return Source(f"baseline {name}", column("step_time_median"), columns, jobs=jobs)


def of_recorded(training, part):
    """Half of the repetitions of a training that were recorded with covariates."""
    with RECORDED.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["training"] == training]
    half = len(rows) // 2
    rows = rows[:half] if part == "first" else rows[half:]
    steps = np.array([json.loads(row["steps_us"]) for row in rows], dtype=float)
    names = [name for name in rows[0] if name not in ("training", "steps_us")]
    table = {name: np.array([float(row[name]) for row in rows]) for name in names}
    varies = {name.replace("_", " "): one for name, one in table.items() if one.std() > 0}
    return Source(
        f"{training}, {part} half", np.log(np.median(steps, axis=1)), varies, trimmed(steps), own_share(steps)
    )


def sources():
    found = [of_baseline("demo"), of_baseline("two-ranks")]
    if gate_measured.available():
        found.insert(0, of_processes())
    return [*found, *(of_recorded(training, part) for training in TRAININGS for part in ("first", "second"))]


def table(found):
    """Markdown: a row for each way, a column for each source."""
    scored = [scores(one) for one in found]
    ways = sorted({way for one in scored for way in one}, key=lambda way: (way.startswith("all"), way))
    head = ["way", *(one.name for one in found)]
    rows = [["repetitions", *(str(len(one.plain)) for one in found)]]
    rows += [["spread between them", *(f"{spread(one) ** 0.5:.1%}" for one in found)]]
    rows += [
        [
            "the process's own share of the variance",
            *("-" if one.own_share is None else f"{one.own_share:.2f}" for one in found),
        ]
    ]
    rows += [[way, *(f"{one[way]:.2f}" if way in one else "-" for one in scored)] for way in ways]
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


SECTION = """## Fewer repetitions by less variance

`python lab/gate/variance_reduction.py`: what each way leaves of the variance between repetitions of identical code, which is
also what it leaves of the repetitions for the same power (degrees of freedom not counted, which pairs halve). A covariate's slope
is fitted without the repetition that it is used for. *19 processes* are those of `real`; the baselines are those of this repository,
three repetitions in each of eight jobs whose level is taken out; *waits* was recorded with covariates on a busy machine with 2 cores
(2026-11-25, load 10 to 23, `--record`; `tests/gate/repetitions.csv`): what looks good in its first half is to be so in the second.

{table}

**Nothing reaches 0.6 on data that it was not chosen on, so nothing was added to the gate.** Pairs and the load do in the second half of `waits`, where the
load of the machine changed, and not in its first half nor anywhere else. The wait for data takes 2 to 14 % away, but a change of it would be taken away with it.
With some 20 repetitions a ratio has a 95 % interval of about 0.4 to 2.6 times itself (F), so small gains are not excluded. What bounds it: of the
variance between processes 45 to 86 % is the process's own - odd and even tens of its steps agree on it - and none of calibration, load,
steal, neighbours and the first step says in both halves, or both baselines, how large it is. More steps can take only the rest away.

Tried before: making repetitions again whose CPU was taken is kept, 10 % of the variance is left for 18 % more repetitions where a hypervisor takes CPU (1.2 % instead of 3.8 % spread in 65 repetitions,
decision 41; not confirmed since, for in the 40 sessions recorded afterwards 1 of 241 was made again);
pairs, a lower quantile of the steps and steal as a covariate were not (same place). The share of each operator (common mode over operators) is kept for parts of a step.
"""


def section():
    """What lab/notes/gate.md says about it."""
    return SECTION.format(table="\n".join(table(sources())))


def record(target, reps):
    """`reps` repetitions of each training in turn, with what the machine did meanwhile."""
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = None
        for training in [training for _ in range(reps) for training in TRAININGS]:
            row = _repetition(training)
            writer = writer or csv.DictWriter(file, list(row))
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow(row)
            file.flush()


def _repetition(training):
    script, amount = TRAININGS[training]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        before, machine, own, began = _calibrated(), _machine(), _own(), time.monotonic()
        command = ["pipeprof", "collect", "-o", str(run), "--", sys.executable, str(HERE / script), amount]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        seconds, deltas = (
            time.monotonic() - began,
            [end - start for start, end in zip(machine, _machine(), strict=True)],
        )
        used, after = _own() - own, _calibrated()
        query = "SELECT (end_ns - start_ns) // 1000 AS us FROM step ORDER BY step"
        said = subprocess.run(["pipeprof", "sql", str(run), query, "--format", "json"], check=True, capture_output=True)
    return {
        "training": training, "calibration_before": before, "calibration_after": after, "CPU_of_neighbours": (deltas[0] - used) / seconds,
        "steal": deltas[1] / seconds, "waiting_for_a_core": deltas[2] / seconds, "load": os.getloadavg()[0],
        "steps_us": json.dumps([row["us"] for row in json.loads(said.stdout)][1:]),
    }  # fmt: skip


def _calibrated():
    """Logarithm of the seconds that a fixed loop takes."""
    numbers, began = np.random.default_rng(0).random((200, 200)), time.perf_counter()
    for _ in range(60):
        np.sqrt(numbers @ numbers + 1)
    return float(np.log(time.perf_counter() - began))


def _machine():
    """Seconds of CPU that the machine used, that its hypervisor took, and that something waited for a core."""
    user, nice, system, _, _, irq, soft, steal = (int(one) for one in Path("/proc/stat").read_text().split()[1:9])
    ticks, pressure = os.sysconf("SC_CLK_TCK"), Path("/proc/pressure/cpu")
    waited = int(pressure.read_text().splitlines()[0].partition("total=")[2]) / 1e6 if pressure.exists() else 0.0
    return (user + nice + system + irq + soft) / ticks, steal / ticks, waited


def _own():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path, metavar="FILE")
    parser.add_argument("--reps", type=int, default=24)
    wish = parser.parse_args()
    if wish.record:
        record(wish.record, wish.reps)
    else:
        print(section())


if __name__ == "__main__":
    main()
