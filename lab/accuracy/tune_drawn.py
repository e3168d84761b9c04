"""How `tune` uses its time, on drawn trainings whose speeds are known: nothing is run, and the clock is a fake.

python lab/accuracy/tune_drawn.py --tunings 100

Each training has a batch, a map and a source of drawn speeds, and no idle core, so that threads and cores are candidates, too. Workers
bring what is predicted, to the power of a drawn error; what nothing predicts brings a drawn factor of a few percent.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "unit" / "experiment"))
from tune_fake import FakeBench, by_workers, pipeline

from pipeprof.experiment.tune.search import TuneWish, run_tune
from pipeprof.experiment.tune.trial import is_proven
from pipeprof.record.settings_file import Settings
from pipeprof.verdict.candidate import Recorded

SCATTER = (0.02, 0.1, 0.25)  # of the speeds of runs
FIRST = 1000  # seed: those below were looked at while the rules were made
BUDGETS_S = (600.0, 1200.0, 3600.0)
NODES = (("0,1,2,3", 4), ("4,5,6,7", 4))


def bench_of(seed, noise):
    """A training: its loop, and the speed with any settings."""
    drawn = random.Random(seed)  # noqa: S311 - reproducible on purpose
    loop = pipeline(*(drawn.uniform(2, 40) for _ in range(3)), consumer=drawn.uniform(60, 300))
    loop = replace(loop, free_cores=0.1)
    right = by_workers(loop)
    errors = [drawn.lognormvariate(0, 0.3) for _ in range(3)]
    beside = {name: drawn.lognormvariate(0, 0.03) for name in ("environment", "runtime_threads", "cpus", "prefetch")}

    def truth(settings):
        rate = loop.rate * (right(settings) / loop.rate) ** mean(
            [errors[one.node] for one in settings.operators] or [1]
        )
        return rate * math.prod(factor for name, factor in beside.items() if getattr(settings, name))

    bench = FakeBench(loop, truth, noise, seed, run_s=15.0)
    seen = bench._seen
    bench._seen = lambda settings: replace(seen(settings), recorded=Recorded(nodes=NODES))
    return bench


def tuned(seed, noise, budget_s):
    """Whether a set was proven, the logarithm of what it really brings, and the seconds of trials that brought nothing."""
    bench = bench_of(seed, noise)
    with tempfile.TemporaryDirectory(prefix="tune-drawn-") as folder:
        wish = TuneWish(("python", "train.py"), Path(folder), Path(folder) / "tuned", budget_s)
        state, _ = run_tune(wish, bench, lambda _line: None)
    proven = is_proven(state)
    gain = math.log(bench.truth(state.settings) / bench.truth(Settings())) if proven else 0.0
    return proven, gain, sum(one.seconds for one in state.trials if one.verdict != "accepted"), bench.clock


def main():
    """A line of JSON for each scatter and budget."""
    parser = argparse.ArgumentParser(description="How tune uses its time on drawn trainings.")
    parser.add_argument("--tunings", type=int, default=100)
    options = parser.parse_args()
    for noise in SCATTER:
        for budget_s in BUDGETS_S:
            rows = [tuned(seed, noise, budget_s) for seed in range(FIRST, FIRST + options.tunings)]
            proven, gains, wasted, clock = zip(*rows, strict=True)
            found = {
                "scatter": noise, "budget_s": budget_s, "proven": sum(proven), "of": len(rows),
                "gain": round(math.exp(mean(gains)), 3), "harmful": sum(gain < 0 for gain in gains),
                "s": round(mean(clock)), "s_of_trials_in_vain": round(mean(wasted)),
            }  # fmt: skip
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
