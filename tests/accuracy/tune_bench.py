"""`pipeprof tune` on many built pipelines, each held against the grid of its settings; goes on where it was.

python tests/accuracy/tune_bench.py FOLDER --pipelines 10              so many, drawn the same way each time
python tests/accuracy/tune_bench.py FOLDER --pipelines map_wait,map_np  these

FOLDER/NAME.json is the line of a pipeline that is done. With other arguments, or for a new version, take another folder.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

from designed import designed
from tuned import LOSS, against_grid, tune

AS_FAST, STEPS, TENTH = 0.95, 3, 0.1  # what is asked of a tuning: share of the best speed, steps, time of the grid


def drawn(number):
    """Names of so many pipelines, so that more of them begin with fewer."""
    names = [one.name for one in designed()]
    random.Random(1).shuffle(names)  # noqa: S311 - reproducible on purpose
    return names[:number]


def measured(names, folder, rounds, most):
    """The line of each pipeline; those that are not there yet are measured."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name in names:
        path = folder / f"{name}.json"
        if not path.exists():
            print(f"{name}: tuning, then its grid", file=sys.stderr, flush=True)
            code = tune(name, folder)
            if not (folder / name / "tune.json").exists():
                sys.exit(f"{name}: the tuning gave no answer (exit code {code}); the same command goes on from here")
            line = json.dumps(against_grid(name, folder, rounds, most))
            path.with_suffix(".part").write_text(f"{line}\n", encoding="utf-8")
            path.with_suffix(".part").replace(path)
        lines.append(json.loads(path.read_text(encoding="utf-8")))
    return lines


def table(lines):
    """The pipelines as Markdown, and in how many of them holds what is asked of a tuning."""
    rows = [
        "| pipeline | verdict | accepted steps | tuned / original, best / original | tuned / best | grid | time / grid's |",
        "|---|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {one['pipeline']} | {one['verdict'].replace('_', ' ')} | {one['accepted']} | {one['tuned_over_original']:.2f}, "
        f"{one['best_over_original']:.2f} | {one['tuned_over_best']:.2f} | {one['grid_run']} of {one['grid']} | "
        f"{one['tune_s'] / one['grid_s']:.2f} |"
        for one in lines
    ]
    holds = {
        f"at least {AS_FAST:.0%} of the best speed": lambda one: one["tuned_over_best"] >= AS_FAST,
        f"at most {STEPS} accepted steps": lambda one: one["accepted"] <= STEPS,
        f"at most {TENTH} of the grid's time": lambda one: one["tune_s"] <= TENTH * one["grid_s"],
        f"recommended, and slower than x{LOSS} of the original": lambda one: (
            one["verdict"] == "proven" and one["tuned_over_original"] < LOSS
        ),
    }
    counts = [f"{what}: {sum(map(holding, lines))} of {len(lines)}" for what, holding in holds.items()]
    return "\n".join([*rows, "", *counts])


def main():
    """Measure what is not done yet, and print the table."""
    parser = argparse.ArgumentParser(description="`pipeprof tune` against the grid of settings of built pipelines.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pipelines", default="10", help="how many, or their names with commas")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each setting")
    parser.add_argument("--most", type=int, default=1000, help="settings of each grid at most, drawn from all")
    options = parser.parse_args()
    chosen = options.pipelines
    names = drawn(int(chosen)) if chosen.isdigit() else chosen.split(",")
    print(table(measured(names, options.folder, options.rounds, options.most)))


if __name__ == "__main__":
    main()
