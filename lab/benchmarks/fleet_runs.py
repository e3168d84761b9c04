"""Runs of a fleet whose truth is known: who waits how long, because of what, on which hosts, and slower since when.

python lab/benchmarks/fleet_runs.py FOLDER --runs 10000

Each run has the step table and the rollup that a recording of such a training would have; a few are damaged, cut off, or
have none. The numbers are drawn from a seed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from pipeprof.record import checksums, compact, store
from pipeprof.record.machine import host_name
from pipeprof.record.note import note
from pipeprof.record.run import Manifest, Rank, Rep, Run
from pipeprof.report import rollup
from pipeprof.report.kept import of_rollup

MS = 1_000_000
STEPS = 12
BEGAN = dt.datetime(2026, 1, 5, tzinfo=dt.timezone.utc)  # a Monday
WEEKS = 26
HOSTS, SLOW_HOSTS, SLOW = 12, ("host-03", "host-07"), 1.15
REGRESSED, SLOWER = 1.12, (1, 4)  # workloads by number modulo 5
CAUSES = {
    0: ("MapOp", "decode", "images.py:12", "cpu", 1.6), 1: ("MapOp", "decode", "images.py:12", "cpu", 1.4),
    2: ("SourceOp", "read", "storage.py:40", "wait", 1.25),
}  # fmt: skip
FINGERPRINT = {
    "cpu_model": "Test CPU",
    "cpu_cores": 8,
    "memory_bytes": 64 << 30,
    "device": "Ascend",
    "mindspore": "2.9.0",
}


@dataclass
class Truth:
    """What a report must find."""

    states: dict[str, int] = field(default_factory=dict)
    rank_hours: dict[str, float] = field(default_factory=dict)
    wait_hours: dict[str, float] = field(default_factory=dict)
    causes: dict[str, int] = field(default_factory=dict)  # input-bound runs by file:line
    saved_hours: float = 0.0
    slower: dict[str, str] = field(default_factory=dict)  # workload -> Monday of the first slow week

    def add(self, workload: str, trained_ns: int, waited_ns: int, cause: tuple[str, float] | None) -> None:
        """Count a run that is whole."""
        hours = trained_ns / 3.6e12
        self.rank_hours[workload] = self.rank_hours.get(workload, 0.0) + hours
        self.wait_hours[workload] = self.wait_hours.get(workload, 0.0) + waited_ns / 3.6e12
        if cause is not None:
            code, gain = cause
            self.causes[code] = self.causes.get(code, 0) + 1
            self.saved_hours += hours * (1 - 1 / gain)


def make_fleet(folder: Path, runs: int, workloads: int = 40, seed: int = 1) -> Truth:
    """Write so many runs, evenly over workloads and weeks, and say what is true of them."""
    chance, truth = random.Random(seed), Truth()  # noqa: S311 - test data
    for number in range(runs):
        workload, turn = number % workloads, number // workloads
        of = max(1, (runs + workloads - 1) // workloads)
        began = BEGAN + dt.timedelta(weeks=WEEKS) * turn / of
        place = folder / f"team-{workload % 4}" / f"{number:06}"
        place.mkdir(parents=True)
        state = "damaged" if number % 200 == 77 else "failed" if number % 100 == 33 else "complete"
        state = "running" if number % 500 == 123 else state
        truth.states[state] = truth.states.get(state, 0) + 1
        _write_run(place, number, workload, began, state, chance, truth)
    return truth


def _write_run(
    place: Path, number: int, workload: int, began: dt.datetime, state: str, chance: random.Random, truth: Truth
) -> None:
    name, cause = f"train_{workload:02}", CAUSES.get(workload % 5)
    host, late = f"host-{chance.randrange(HOSTS):02}", began >= BEGAN + dt.timedelta(weeks=WEEKS // 2)
    slower = workload % 5 in SLOWER
    if slower and late and state == "complete":
        monday = (began - dt.timedelta(days=began.weekday())).date().isoformat()
        truth.slower[name] = min(monday, truth.slower.get(name, "9999"))
    step_ms = 40 + workload
    step_ms *= (SLOW if host in SLOW_HOSTS else 1.0) * (REGRESSED if slower and late else 1.0)
    ranks = 1 + workload % 3
    manifest = Manifest(
        run_id=f"{began:%Y%m%dT%H%M%S}-{number:06x}", started_at=began.isoformat(), pipeprof_version="0", state=state,
        command=["python", f"{name}.py"], fingerprint=FINGERPRINT | {"host": host_name()},
        git={"revision": f"{number:040x}"}, reason_facts=note("exit_code", exit_code=1) if state == "failed" else None,
        reps=[Rep(rep=0, zero_realtime_ns=0, zero_monotonic_ns=0, exit_code=int(state == "failed"), ranks=[
            Rank(rank=at, pid=at, host=host, mindspore="2.9.0", zero_realtime_ns=0, zero_monotonic_ns=0)
            for at in range(ranks)
        ])],
    )  # fmt: skip
    run = Run(place, manifest)
    if state == "running":
        manifest.launcher_pid, manifest.launcher_start = 1, 0.0
        run.save()
        return
    steps = [_write_steps(run, rank, step_ms, cause, chance) for rank in range(ranks)]
    manifest.tables["step"] = STEPS * ranks
    checksums.seal(run)
    if state == "complete":
        run.save()
        compact.put(place, rollup.TABLE, _rollup(run, steps, cause))
        gain = (cause[2], cause[4]) if cause else None
        truth.add(name, sum(map(_trained, steps)), sum(map(_waited, steps)), gain)
        return
    run.save()
    if state == "damaged":
        place.joinpath("run.json").write_bytes(b'{"schema_version": 1')
    else:
        truth.add(name, sum(map(_trained, steps)), sum(map(_waited, steps)), None)


def _write_steps(run, rank, step_ms, cause, chance):
    """(start, end, wait) of each step of a rank, all of kind train."""
    at, steps = 0, []
    for _ in range(STEPS):
        length = round(step_ms * MS * (1 + chance.gauss(0, 0.01)))
        steps.append((at, at + length, length // 2 if cause else length // 50))
        at += length
    columns = store.BY_NAME["step"].column_names
    rows = [
        {"step": place, "kind_step": place, "kind": "train", "start_ns": one[0], "end_ns": one[1], "fetch_wait_ns": one[2],
         "in_window": False}
        for place, one in enumerate(steps)
    ]  # fmt: skip
    store.write(run, "step", 0, rank, [[row.get(column) for column in columns] for row in rows])
    return steps


def _trained(steps):
    return sum(end - start for start, end, _ in steps)


def _waited(steps):
    return sum(wait for _, _, wait in steps)


def _rollup(run, steps, cause):
    """As a recording would leave it: times from the steps, the verdict from what was planted."""
    rows = []
    for rank, own in enumerate(steps):
        lengths = sorted(end - start for start, end, _ in own)
        middle = (lengths[STEPS // 2 - 1] + lengths[STEPS // 2]) / 2
        times = {
            "rep": 0, "rank": rank, "made_of": of_rollup(run), "kind": "train", "steps": STEPS,
            "timed_steps": STEPS, "median_ns": middle, "training_ns": _trained(own), "wait_ns": _waited(own),
            "data_wait_share": _waited(own) / _trained(own), "verdict": "input_bound" if cause else "consumer_bound",
            "cause": "input_bound" if cause else "compute",
            "causes": json.dumps({"causes": [{"code": "input_bound" if cause else "compute"}]}),
        }  # fmt: skip
        if cause:
            times |= dict(zip(("op_type", "op_name", "code", "op_kind", "gain"), cause, strict=True))
            times |= {"advice": "workers", "parameter": "num_parallel_workers", "gain_low": 1.0, "gain_high": 2.0}
        rows.append(times)
    return pa.Table.from_pylist(rows, schema=compact.schema_of(rollup.TABLE))


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("folder", type=Path)
    asked.add_argument("--runs", type=int, default=10_000)
    given = asked.parse_args()
    make_fleet(given.folder, given.runs)
