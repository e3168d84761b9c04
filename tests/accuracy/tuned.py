"""What `pipeprof tune` finds, against every combination of the settings of a pipeline, run one after the other.

python tests/accuracy/tuned.py tune map_wait FOLDER    tunes it; at most 4 minutes
python tests/accuracy/tuned.py grid map_wait FOLDER    then runs its grid, and prints what came out as a line of JSON
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

import msgspec
from capture import HERE
from designed import find
from pipelines import to_json

from pipeprof.experiment.tune_bench import TuneBench
from pipeprof.record.settings_file import OperatorSetting, Settings

BUDGET = "4m"
CHANGED = ("MapOp", "GeneratorOp")


def grid(seen):
    """Every combination of 1 or 2 workers and, for maps that run Python, of threads and processes."""
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
    return [Settings(site=seen["site"], operators=chosen) for chosen in itertools.product(*choices)]


def command_of(name):
    """The training of a pipeline."""
    return [sys.executable, str(HERE / "workload.py"), to_json(find(name))]


def tune(name, folder):
    """Tune one pipeline; 0 when that gave an answer."""
    words = ["pipeprof", "tune", "--budget", BUDGET, "-o", str(folder / name), "--", *command_of(name)]
    return subprocess.run(words, check=False, stdout=subprocess.DEVNULL).returncode


def against_grid(name, folder, rounds, most):
    """What tuning found, and the speeds of the whole grid, each setting in turn."""
    found = json.loads((folder / name / "tune.json").read_text(encoding="utf-8"))
    bench = TuneBench(command_of(name))
    settings = [Settings(), *grid(found["seen"][0])[:most]]
    if found["settings"]:
        settings.append(msgspec.convert(found["settings"], Settings))
    rates = [[] for _ in settings]
    for number in range(rounds):
        for place, one in enumerate(settings):
            rates[place].append(bench.run(one, folder / f"{name}-grid-{place}", ("a", number), None).rate)
    usual = [median(one) for one in rates]
    chosen = usual[-1] if found["settings"] else usual[0]
    return {
        "pipeline": name, "verdict": found["verdict"], "ended": found["ended"],
        "trials": [[one["key"], one["verdict"], one["ratio"], one["prediction"]["low"], one["prediction"]["high"],
                    one["predicted_wrong"]] for one in found["trials"]],
        "proven": found["final"] and [found["final"][key] for key in ("ratio", "low", "high")],
        "tune_s": found["spent_s"], "grid": len(settings), "best_over_original": max(usual) / usual[0],
        "tuned_over_original": chosen / usual[0], "tuned_over_best": chosen / max(usual),
    }  # fmt: skip


def main():
    """Tune a pipeline, or measure its grid."""
    parser = argparse.ArgumentParser(description="What tune finds, against the whole grid.")
    parser.add_argument("action", choices=["tune", "grid"])
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--most", type=int, default=12, help="settings of the grid at most")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.action == "tune":
        sys.exit(tune(options.name, options.folder))
    print(json.dumps(against_grid(options.name, options.folder, options.rounds, options.most)), flush=True)


if __name__ == "__main__":
    main()
