"""What `pipeprof tune` finds, against every combination of the settings of a pipeline, run one after the other.

python lab/accuracy/tuned.py tune map_wait FOLDER    tunes it; at most 9 minutes
python lab/accuracy/tuned.py grid map_wait FOLDER    then runs its grid, and prints what came out as a line of JSON
    (tune --seconds 60 --steps 100, grid --seconds 60: a longer training of which each run of the tuning is a part)
python lab/accuracy/tuned.py recorded               what would be tried first in the stored recordings of whatif.py
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
from drawn import named
from pipelines import to_json
from whatif import CHANGES, CORES, STORED

from pipeprof.experiment.stages import training_pipelines
from pipeprof.experiment.tune.bench import TuneBench
from pipeprof.query.engine import Engine
from pipeprof.record.run import load
from pipeprof.record.settings_file import Settings
from pipeprof.verdict.loop import loop_of
from pipeprof.verdict.tuning import candidates, worth_trying

BUDGET, SECONDS = "9m", 2.5
SPARE = ("--spare", "4")  # the fastest settings do not run out of rows
BESIDE = 6  # turns of original, tuned and best: single runs differ by up to a tenth
AUTOTUNE_SECONDS = 10.0  # it changes one thing after the other; the second half counts
GAIN, LOSS = 1.05, 0.98
PREFETCH = (2, 16)


def grid(pipeline):
    """Every combination of queues of 2 or 16, 1 or 2 workers and, for what runs Python, of threads and processes."""
    return [
        replace(changed, prefetch=size, name=f"{pipeline.name} {number}")
        for number, (changed, size) in enumerate(itertools.product(_branches(pipeline), PREFETCH))
    ]


def _branches(pipeline):
    """The pipeline with each combination of its sources and maps."""
    parts = [[replace(one, source=source, maps=maps) for source in _sources(one.source) for maps in _maps(one.maps)]
             for one in pipeline.branches]  # fmt: skip
    for *branches, maps in itertools.product(*parts, _maps(pipeline.maps)):
        yield replace(pipeline, branches=tuple(branches), maps=maps)


def _sources(source):
    if source.form != "random":
        return [source]
    return [replace(source, workers=workers, processes=processes)
            for workers, processes in ((1, False), (2, False), (2, True))]  # fmt: skip


def _maps(maps):
    choices = [
        [replace(one, workers=workers, processes=processes) for workers in (1, 2)
         for processes in ((False,) if one.work.how == "vision" else (False, True))]
        for one in maps
    ]  # fmt: skip
    return list(itertools.product(*choices))


def settings_of(pipeline):
    """Its queues, and workers of each source and map: `{"prefetch": 2, "left": "2 processes", "slow": "1 thread"}`."""
    parts = [one.source for one in pipeline.branches]
    parts += [one for maps in (*(one.maps for one in pipeline.branches), pipeline.maps) for one in maps]
    kinds = {True: "processes", False: "threads"}
    return {"prefetch": pipeline.prefetch} | {one.name: f"{one.workers} {kinds[one.processes]}" for one in parts}


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
    """Whether a candidate has the change that was measured: that number of workers for that operator, in processes or not."""
    changes = () if first is None else first.changes
    _, workers, *to_processes = CHANGES[name[-2:]]
    wanted = (op_id, int(workers), bool(to_processes) or None)
    return any((one.op_id, one.workers, one.processes) == wanted for one in changes)


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


def rates_of(pipelines, rounds, words=SPARE):
    """Steps/s of each pipeline in each round, all in one process: one that cannot be run has 0."""
    command, rates = list(map(to_json, pipelines)), {one.name: [] for one in pipelines}
    for number in range(rounds):
        turn = command if number % 2 == 0 else command[::-1]
        done = subprocess.run(workload(*words, *turn), check=True, stdout=subprocess.PIPE, text=True)
        for line in done.stdout.splitlines():
            if line.startswith('{"name"'):
                said = json.loads(line)
                rates[said["name"]].append(said.get("steps_per_s", 0.0))
    return rates


def workload(*words):
    """The command that runs pipelines."""
    return [sys.executable, str(HERE / "workload.py"), *words]


def command_of(pipeline):
    """Its training."""
    return workload(*SPARE, to_json(pipeline))


def training(name, seconds=SECONDS):
    """The pipeline, designed or drawn, trained for so long."""
    return replace(named(name) if name.startswith("drawn_") else find(name), seconds=seconds)


def by_autotune(pipeline, rounds):
    """How many times as fast the pipeline becomes under MindSpore's AutoTune, the later half of longer runs in turn.

    None where it does not run: AutoTune of MindSpore 2.10 ends some pipelines with worker processes by a segfault.
    """
    words = [*SPARE, "--skip", "0.5", "--seconds", str(AUTOTUNE_SECONDS)]
    try:
        with tempfile.TemporaryDirectory(prefix="autotune-") as folder:
            turns = [
                [rates_of([pipeline], 1, [*words, *more])[pipeline.name][0] for more in ([], ["--autotune", folder])]
                for _ in range(rounds)
            ]
    except subprocess.CalledProcessError:
        return None
    return median(tuned / usual for usual, tuned in turns)


def tune(name, folder, seconds=SECONDS, steps=None):
    """Tune one pipeline, each run after so many steps ended; 0 when that gave an answer."""
    words = [sys.executable, "-m", "pipeprof", "tune", "--budget", BUDGET, "-o", str(folder / name)]
    words += [*(["--steps", str(steps)] if steps else []), "--", *command_of(training(name, seconds))]
    return subprocess.run(words, check=False, stdout=subprocess.DEVNULL).returncode


def against_grid(name, folder, rounds, most, seconds=SECONDS):
    """What tuning found, and the speeds of the grid or as much of it as is to be run, each setting in turn.

    `grid_s`: what the whole grid takes, one run of the training for each setting. The settings that were found are
    run beside the original, each run a process of its own, and so is the fastest of the grid, which is chosen by runs
    one after the other in one process.
    """
    found = json.loads((folder / name / "tune.json").read_text(encoding="utf-8"))
    pipeline = training(name, seconds)
    whole = grid(pipeline)
    chosen = some_of(whole, most)
    usual = {key: median(rates) for key, rates in rates_of([pipeline, *chosen], rounds).items()}
    fastest = max([pipeline, *chosen], key=lambda one: usual[one.name])
    tuned, best, over_best, run_s = beside_original(pipeline, found["settings"], fastest, folder)
    return {
        "pipeline": name, "verdict": found["verdict"], "ended": found["ended"],
        "trials": [[one["key"], one["verdict"], one["ratio"], one["prediction"]["low"], one["prediction"]["high"],
                    one["predicted_wrong"]] for one in found["trials"]],
        "proven": found["final"] and [found["final"][key] for key in ("ratio", "low", "high")],
        "tune_s": found["spent_s"], "grid": len(whole), "grid_run": len(chosen),
        "grid_s": len(whole) * run_s, "accepted": sum(one["verdict"] == "accepted" for one in found["trials"]),
        "best": settings_of(fastest), "best_in_grid": usual[fastest.name] / usual[name],
        "best_over_original": best, "tuned_over_original": tuned, "tuned_over_best": over_best,
        "autotune_over_original": by_autotune(pipeline, rounds),
    }  # fmt: skip


def beside_original(pipeline, settings, fastest, folder):
    """How many times as fast the pipeline is with settings, and `fastest` is; the first over the second; mean run, s.

    Runs in turn; medians over turns of what is compared within each of them.
    """
    original = TuneBench(command_of(pipeline))
    sides = [(original, Settings())]
    if settings:
        sides.append((original, msgspec.convert(settings, Settings)))
    sides.append((TuneBench(command_of(fastest)), Settings()))
    turns = []
    for number in range(BESIDE):
        ran = {
            side: sides[side][0].run(sides[side][1], folder / f"{pipeline.name}-beside-{side}", ("a", number), None)
            for side in (range(len(sides)) if number % 2 == 0 else reversed(range(len(sides))))
        }
        turns.append([ran[side] for side in range(len(sides))])
    tuned, best = (median(turn[side].rate / turn[0].rate for turn in turns) for side in (-2, -1))
    over_best = median(turn[-2].rate / turn[-1].rate for turn in turns)
    return tuned, best, over_best, mean(one.seconds for turn in turns for one in turn)


def main():
    """Tune a pipeline, or measure its grid."""
    parser = argparse.ArgumentParser(description="What tune finds, against the whole grid.")
    parser.add_argument("action", choices=["tune", "grid", "recorded"])
    parser.add_argument("name", nargs="?")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("tuned"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each training")
    parser.add_argument("--steps", type=int, help="of each run of the tuning")
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
        sys.exit(tune(options.name, options.folder, options.seconds, options.steps))
    found = against_grid(options.name, options.folder, options.rounds, options.most, options.seconds)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
