"""What `pipeprof tune` finds, against every combination of the settings of a pipeline, run one after the other.

python tests/accuracy/tuned.py tune map_wait FOLDER    tunes it; at most 9 minutes
python tests/accuracy/tuned.py grid map_wait FOLDER    then runs its grid, and prints what came out as a line of JSON
python tests/accuracy/tuned.py recorded               what would be tried first in the stored recordings of whatif.py
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import mean, median

import msgspec
from archive import unpack
from capture import HERE
from designed import find
from pipelines import to_json
from whatif import CHANGES, CORES, STORED

from pipeprof.errors import MeasureError, WorkloadError
from pipeprof.experiment.stages import training_pipelines
from pipeprof.experiment.tune.bench import Ran, TuneBench
from pipeprof.query.engine import Engine
from pipeprof.record.run import load
from pipeprof.record.settings_file import OperatorSetting, Settings
from pipeprof.verdict.loop import loop_of
from pipeprof.verdict.tuning import candidates, worth_trying

BUDGET, SECONDS = "9m", 2.5
GAIN, LOSS = 1.05, 0.98
CHANGED = ("MapOp", "GeneratorOp")


PREFETCH = (2, 16)


def grid(seen):
    """Every combination of queues of 2 or 16, 1 or 2 workers and, for maps that run Python, of threads and processes."""
    ops = [op for op in seen["operators"] if op["op_type"] in CHANGED]
    choices = []
    for op in ops:
        forms = [(workers, processes) for workers in (1, 2) for processes in (False, True)]
        if op["op_type"] == "GeneratorOp":
            forms = [(1, False), (2, False), (2, True)]
        choices.append([
            OperatorSetting(node=op["node"], op_type=op["op_type"], workers=workers, processes=processes)
            for workers, processes in forms
        ])  # fmt: skip
    return [
        Settings(site=seen["site"], operators=chosen, prefetch=size)
        for *chosen, size in itertools.product(*choices, PREFETCH)
    ]


def some_of(settings, most):
    """So many of them, drawn the same way each time."""
    drawn = random.Random(1).sample(settings, min(most, len(settings)))  # noqa: S311 - reproducible on purpose
    return [one for one in settings if one in drawn]


def first_tried(path, op_id):
    """The candidate that would be tried first on a stored recording, None for none, and how many may pay."""
    with tempfile.TemporaryDirectory(prefix="tuned-") as folder:
        unpack(path, Path(folder))
        with Engine.open(load(folder)) as engine:
            pipelines = training_pipelines(engine)
    chosen = next(one for one in pipelines if any(op["op_id"] == op_id for op in one.ops))
    found = list(worth_trying(candidates(loop_of(chosen.load, CORES), {}), ()))
    return (found[0] if found else None), len(found)


def recorded():
    """Rows of (case, measured speed-up of its change, its operator, the first candidate, how many there are)."""
    known = json.loads((STORED / "measured.json").read_text(encoding="utf-8"))
    rows = []
    for name, entry in sorted(known.items()):
        ratio = median(b / a for a, b in zip(entry["a"], entry["b"], strict=True))
        first, number = first_tried(STORED / f"{name}.tar.xz", entry["op_id"])
        rows.append((name, ratio, entry["op_id"], first, number))
    return rows


def has_change(name, op_id, first):
    """Whether a candidate has the change that was measured: that number of workers for that operator."""
    if first is None:
        return False
    return any(one.op_id == op_id and one.workers == int(CHANGES[name[-2:]][1]) for one in first.changes)


def on_recordings(rows):
    """How often the first candidate is a change that was measured as a gain, and how often as a loss."""
    gains = [row for row in rows if row[1] >= GAIN]
    losses = [row for row in rows if row[1] < LOSS]
    return {
        "cases": len(rows), "gains": len(gains),
        "gains_first": sum(has_change(name, op_id, first) for name, _, op_id, first, _ in gains),
        "gains_same_operator": sum(
            first is not None and any(one.op_id == op_id for one in first.changes) for _, _, op_id, first, _ in gains),
        "losses": len(losses),
        "losses_first": sum(has_change(name, op_id, first) for name, _, op_id, first, _ in losses),
        "candidates_usual": median(row[4] for row in rows), "candidates_most": max(row[4] for row in rows),
    }  # fmt: skip


def command_of(name):
    """The training of a pipeline."""
    return [sys.executable, str(HERE / "workload.py"), to_json(replace(find(name), seconds=SECONDS))]


def tune(name, folder):
    """Tune one pipeline; 0 when that gave an answer."""
    words = ["pipeprof", "tune", "--budget", BUDGET, "-o", str(folder / name), "--", *command_of(name)]
    return subprocess.run(words, check=False, stdout=subprocess.DEVNULL).returncode


def against_grid(name, folder, rounds, most):
    """What tuning found, and the speeds of the grid or as much of it as is to be run, each setting in turn.

    `grid_s`: what the whole grid takes, one run of each setting.
    """
    found = json.loads((folder / name / "tune.json").read_text(encoding="utf-8"))
    bench = TuneBench(command_of(name))
    whole = grid(found["seen"][0])
    settings = [Settings(), *some_of(whole, most)]
    if found["settings"]:
        settings.append(msgspec.convert(found["settings"], Settings))
    rates, seconds = [[] for _ in settings], []
    for number in range(rounds):
        for place, one in enumerate(settings):
            try:
                ran = bench.run(one, folder / f"{name}-grid-{place}", ("a", number), None)
            except (MeasureError, WorkloadError) as error:  # a setting that cannot be run is none to be found
                print(f"{name}, setting {place}: {error.message}", file=sys.stderr)
                ran = Ran(0.0, 0.0)
            rates[place].append(ran.rate)
            seconds.append(ran.seconds)
    usual = [median(one) for one in rates]
    chosen = usual[-1] if found["settings"] else usual[0]
    return {
        "pipeline": name, "verdict": found["verdict"], "ended": found["ended"],
        "trials": [[one["key"], one["verdict"], one["ratio"], one["prediction"]["low"], one["prediction"]["high"],
                    one["predicted_wrong"]] for one in found["trials"]],
        "proven": found["final"] and [found["final"][key] for key in ("ratio", "low", "high")],
        "tune_s": found["spent_s"], "grid": len(whole), "grid_run": len(settings),
        "grid_s": len(whole) * mean(seconds), "accepted": sum(one["verdict"] == "accepted" for one in found["trials"]),
        "best_over_original": max(usual) / usual[0],
        "tuned_over_original": chosen / usual[0], "tuned_over_best": chosen / max(usual),
    }  # fmt: skip


def main():
    """Tune a pipeline, or measure its grid."""
    parser = argparse.ArgumentParser(description="What tune finds, against the whole grid.")
    parser.add_argument("action", choices=["tune", "grid", "recorded"])
    parser.add_argument("name", nargs="?")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("tuned"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--most", type=int, default=12, help="settings of the grid at most")
    options = parser.parse_args()
    if options.action == "recorded":
        rows = recorded()
        for name, ratio, _, first, number in rows:
            print(f"{name}: measured x{ratio:.2f}; first {first.key if first else 'none'} of {number}")
        print(json.dumps(on_recordings(rows), indent=1))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.action == "tune":
        sys.exit(tune(options.name, options.folder))
    print(json.dumps(against_grid(options.name, options.folder, options.rounds, options.most)), flush=True)


if __name__ == "__main__":
    main()
