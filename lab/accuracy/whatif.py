"""How good the predictions of `pipeprof whatif` are: predicted from a recording, measured by running, case by case.

python lab/accuracy/whatif.py --measure              runs every case: about 45 s each, on a quiet machine
python lab/accuracy/whatif.py --measure map_wait+2   these
python lab/accuracy/whatif.py                        the table, from the stored recordings and measurements
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from archive import pack, unpack
from capture import HERE, TRIES, OddError, ops_of
from designed import designed
from drawn import drawn
from labels import label
from pipelines import Pipeline, to_json
from quiet import wait_until_quiet

from pipeprof.experiment.stages import training_pipelines
from pipeprof.query.engine import Engine
from pipeprof.record.run import load
from pipeprof.report.words.speedup import sentence
from pipeprof.verdict.capacity import Change
from pipeprof.verdict.loop import loop_of
from pipeprof.verdict.predict import predict

STORED = HERE.parents[1] / "tests" / "accuracy" / "whatif"
PAIRS = 2
SEED, DRAWN = 20261121, 48
CORES = 2.0  # of the machine that the cases were measured on
WAITS = ("wait", "poll")
COMPUTES = ("cpu", "gil")
TWO, ONE, PROCESSES = "+2", "+1", "+p"
WORTH = 1.02  # a smaller predicted gain is not suggested
LOSS = 0.97
CHANGES = {TWO: ["--workers", "2"], ONE: ["--workers", "1"], PROCESSES: ["--workers", "2", "--processes"]}
DESIGNED = (
    "map_wait+2 map_wait_two+1 map_text+2 map_slices+2 map_tiny_queue+2 map_row_by_row+2 map_wide_batch+2 "
    "map_before_filter+2 map_after_poll+2 map_dict+2 map_fresh_epochs+2 maps_first+2 maps_three+2 batch_wait+2 "
    "batch_wait_two+1 source_wait+2 source_threads+1 source_poll+1 source_poll_map+1 source_shuffled+2 zip_after+2 "
    "zip_first_source+2 apart_maps+2 apart_source+2 map_burst+2 "
    "map_np+2 map_np_two+1 map_vision+2 map_py+2 map_py_two+1 map_py_process+2 map_py+p source_np+2 batch_np+2 "
    "maps_second+2 zip_first_map+2 map_repeat+2"
)


@dataclass(frozen=True)
class Case:
    """One change of the stage that limits one pipeline."""

    pipeline: Pipeline
    change: str

    @property
    def name(self) -> str:
        """Pipeline and change, such as `map_wait+2`."""
        return self.pipeline.name + self.change


def cases() -> list[Case]:
    """The designed ones, and for every drawn pipeline whose operators limit: the other number of workers."""
    known = {one.name: one for one in designed()}
    found = [Case(known[text[:-2]], text[-2:]) for text in DESIGNED.split()]
    for pipeline in drawn(SEED, DRAWN):
        workers = workers_of(pipeline, label(pipeline).bottleneck)
        if workers is not None:
            found.append(Case(pipeline, TWO if workers == 1 else ONE))
    return found


def workers_of(pipeline: Pipeline, stage: str) -> int | None:
    """Workers of a stage that can have more or fewer; None for other stages, and sources that take no notice."""
    for branch in pipeline.branches:
        if branch.source.name == stage:
            return branch.source.workers if branch.source.form == "random" else None
    named = {one.name: one.workers for one in pipeline.all_maps} | {"batch": pipeline.batch.workers}
    return named.get(stage)


def measure(case: Case) -> dict[str, Any] | None:
    """Record the pipeline, run both sides in turn, and keep the recording and the rates; None when it failed."""
    argument = to_json(case.pipeline)
    command = [sys.executable, str(HERE / "workload.py"), argument]
    for _ in range(TRIES):
        quiet = wait_until_quiet()
        with tempfile.TemporaryDirectory(prefix="whatif-") as folder:
            run, out = Path(folder) / "run", Path(folder) / "out"
            done = subprocess.run(
                ["pipeprof", "collect", "-q", "-o", run, "--", *command], capture_output=True, check=False
            )
            try:
                op_id = (
                    ops_of(load(run), case.pipeline)[label(case.pipeline).bottleneck] if not done.returncode else None
                )
            except OddError as reason:
                print(f"{case.name}: {reason}", file=sys.stderr)
                continue
            words = ["whatif", run, "--op", str(op_id), *CHANGES[case.change], "--pairs", str(PAIRS), "-o", out]
            words += ["--max-pairs", str(PAIRS)]
            done = subprocess.run(
                ["pipeprof", *words, "--format", "json", "--", *command], capture_output=True, check=False
            )
            if done.returncode:
                print(f"{case.name}: {done.stderr.decode()[-500:]}", file=sys.stderr)
                continue
            found = json.loads(done.stdout)
            pack(run, STORED / f"{case.name}.tar.xz")
        rates = {side: [one["steps_per_second"] for one in found["runs"] if one["side"] == side] for side in "ab"}
        return {"op_id": op_id, "kind": label(case.pipeline).kind, "drawn": case.pipeline.name.startswith("drawn"),
                **{side: [round(rate, 3) for rate in values] for side, values in rates.items()},
                "load_average": round(quiet[0], 2),
                "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}  # fmt: skip
    return None


@dataclass(frozen=True)
class Scored:
    """One case: what was predicted from its recording, and what running it showed (medians and extremes of pairs)."""

    name: str
    kind: str
    drawn: bool
    predicted: float | None
    low: float | None
    high: float | None
    reason: str | None
    measured: float
    lowest: float
    highest: float

    @property
    def error(self) -> float | None:
        """Predicted / measured - 1."""
        return None if self.predicted is None else self.predicted / self.measured - 1

    @property
    def covered(self) -> bool | None:
        """Whether the measured ratio lies in the predicted interval; None without one."""
        return None if self.low is None or self.high is None else self.low <= self.measured <= self.high

    @property
    def width(self) -> float | None:
        """Of the interval: high / low."""
        return None if not self.low or self.high is None else self.high / self.low


def score(stored: Path = STORED) -> list[Scored]:
    """Every stored case, in the order of their names."""
    entries = json.loads((stored / "measured.json").read_text(encoding="utf-8"))
    return [score_one(stored, name, entry) for name, entry in sorted(entries.items())]


def score_one(stored: Path, name: str, entry: dict[str, Any]) -> Scored:
    """Predict one case again from its recording."""
    with tempfile.TemporaryDirectory(prefix="whatif-") as folder:
        unpack(stored / f"{name}.tar.xz", Path(folder))
        with Engine.open(load(folder)) as engine:
            pipelines = training_pipelines(engine)
    pipeline = next(one for one in pipelines if any(op["op_id"] == entry["op_id"] for op in one.ops))
    words = CHANGES[name[-2:]]
    change = Change(entry["op_id"], int(words[1]), processes=True if "--processes" in words else None)
    found = predict(loop_of(pipeline.load, CORES), change)
    ratios = [b / a for a, b in zip(entry["a"], entry["b"], strict=True)]
    return Scored(
        name, entry["kind"], entry["drawn"], found.ratio, found.low, found.high,
        sentence(found.reason) if found.reason else None, median(ratios), min(ratios), max(ratios),
    )  # fmt: skip


def summary(rows: list[Scored]) -> dict[str, Any]:
    """Errors of the waiting operators, coverage and width of the computing ones' intervals, predictions refused."""
    waiting = sorted(abs(row.error) for row in rows if row.kind in WAITS and row.error is not None)
    intervals = [row for row in rows if row.kind in COMPUTES and row.covered is not None and row.predicted is not None]
    promised = [row for row in rows if row.predicted is not None and (row.low or 0) >= 1.0 and row.predicted >= WORTH]
    return {
        "cases": len(rows),
        "refused": sum(row.predicted is None for row in rows),
        "waiting": len(waiting),
        "median_error": median(waiting) if waiting else None,
        "p90_error": waiting[min(len(waiting) - 1, int(0.9 * len(waiting)))] if waiting else None,
        "intervals": len(intervals),
        "covered": sum(bool(row.covered) for row in intervals),
        "widest": max((row.width or 0.0 for row in intervals), default=None),
        "promised": len(promised),
        "losses": [row.name for row in promised if row.measured < LOSS],
    }


def table(rows: list[Scored]) -> str:
    """For docs/accuracy.md and the terminal."""
    lines = [
        "| change | kind | predicted | interval | measured (pairs) | error |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        said = f"x{row.predicted:.2f}" if row.predicted is not None else "-"
        between = f"{row.low:.2f} to {row.high:.2f}" if row.low is not None and row.high is not None else "-"
        error = f"{row.error * 100:+.1f} %" if row.error is not None else (row.reason or "-")
        found = f"x{row.measured:.2f} ({row.lowest:.2f} to {row.highest:.2f})"
        lines.append(f"| {row.name} | {row.kind} | {said} | {between} | {found} | {error} |")
    return "\n".join(lines)


def main() -> None:
    """Measure cases, or print what the stored ones show."""
    parser = argparse.ArgumentParser(description="How good the predictions of `pipeprof whatif` are.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--missing", action="store_true", help="with --measure: only cases that are not stored")
    options = parser.parse_args()
    path = STORED / "measured.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if not options.measure:
        rows = score()
        print(table(rows), json.dumps(summary(rows), indent=1), sep="\n")
        return
    STORED.mkdir(exist_ok=True)
    for case in cases():
        if (options.names and case.name not in options.names) or (options.missing and case.name in known):
            continue
        entry = measure(case)
        if entry is None:
            print(f"{case.name}: failed", flush=True)
            continue
        known[case.name] = entry
        path.write_text(
            "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known)) + "\n}\n"
        )
        row = score_one(STORED, case.name, entry)
        print(table([row]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
