"""`pipeprof tune` on many built pipelines, each held against the grid of its settings; goes on where it was.

python lab/accuracy/tune_bench.py FOLDER --pipelines 10              so many, drawn the same way each time
python lab/accuracy/tune_bench.py FOLDER --pipelines map_wait,map_np  these, or drawn ones such as drawn_20261128_05

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
MOST = 0.95  # share of the pipelines that are to be as fast


def drawn(number):
    """Names of so many pipelines, so that more of them begin with fewer."""
    names = [one.name for one in designed()]
    random.Random(1).shuffle(names)  # noqa: S311 - reproducible on purpose
    return names[:number]


def measured(names, folder, rounds, most):
    """The line of each pipeline; those that are not there yet are measured."""
    folder.mkdir(parents=True, exist_ok=True)
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
    return finished(names, folder)


def finished(names, folder):
    """The lines of those that are done."""
    paths = [folder / f"{name}.json" for name in names]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def table(lines, names=()):
    """The pipelines as Markdown, whether they reach what is asked of a tuning, and which of `names` are not done."""
    rows = [
        "| pipeline | verdict | accepted steps | tuned, best, AutoTune / original | tuned / best | grid | time / grid's |",
        "|---|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {one['pipeline']} | {one['verdict'].replace('_', ' ')} | {one['accepted']} | {one['tuned_over_original']:.2f}, "
        f"{one['best_over_original']:.2f}, {_times(one['autotune_over_original'])} | {one['tuned_over_best']:.2f} | "
        f"{one['grid_run']} of {one['grid']} | {one['tune_s'] / one['grid_s']:.2f} |"
        for one in lines
    ]
    return "\n".join([*rows, "", *goals(lines), *unfinished(lines, names)])


def _times(ratio):
    return "fails" if ratio is None else f"{ratio:.2f}"


def goals(lines):
    """What is asked of a tuning, in how many of the pipelines that are done it holds, and whether that is enough."""
    harmful = [one for one in lines if one["verdict"] == "proven" and one["tuned_over_original"] < LOSS]
    asked = [
        (f"at least {AS_FAST:.0%} of the best speed", MOST, lambda one: one["tuned_over_best"] >= AS_FAST),
        (
            f"at least {AS_FAST:.0%} of the speed under AutoTune",
            MOST,
            lambda one: one["tuned_over_original"] >= AS_FAST * (one["autotune_over_original"] or 0.0),
        ),
        (f"at most {STEPS} accepted steps", 1.0, lambda one: one["accepted"] <= STEPS),
        (f"at most {TENTH} of the grid's time", 1.0, lambda one: one["tune_s"] <= TENTH * one["grid_s"]),
        (f"not recommended below x{LOSS} of the original", 1.0, lambda one: one not in harmful),
    ]
    rows = ["| goal | asked of | holds in | reached |", "|---|---|---|---|"]
    for what, share, holds in asked:
        number = sum(map(holds, lines))
        reached = "-" if not lines else "yes" if number >= share * len(lines) else "no"
        rows.append(f"| {what} | {share:.0%} | {number} of {len(lines)} | {reached} |")
    return rows


def unfinished(lines, names):
    """The pipelines without a line, and those whose grid was not run whole: of these nothing is known for sure."""
    done = {one["pipeline"] for one in lines}
    missing = [name for name in names if name not in done]
    part = [one["pipeline"] for one in lines if one["grid_run"] < one["grid"]]
    found = [("not finished", missing), ("a part of the grid only, so its best may be better", part)]
    return [f"\n{what}: {', '.join(some)}" for what, some in found if some]


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
    try:
        measured(names, options.folder, options.rounds, options.most)
    finally:  # also of an interrupted one: what is done so far, and what is not
        print(table(finished(names, options.folder), names))


if __name__ == "__main__":
    main()
