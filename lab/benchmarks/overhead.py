"""What `pipeprof collect` costs a training: alternating unprofiled and profiled runs, ratios with intervals.

python lab/benchmarks/overhead.py [--pairs 10] [--kinds cnn tiny input]

Each pair is an unprofiled and a profiled run one after the other, in an order that alternates, so that a drift of the
machine falls on both. The interval is Student's on the logarithms of the pairs' ratios (95 %).
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = {"cnn": 160, "tiny": 4000, "input": 240}
TRAINING = Path(__file__).with_name("training.py")
T95 = {2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 11: 2.20, 14: 2.14, 19: 2.09}


def one_run(kind, steps, profiled, extra=()):
    command = [sys.executable, str(TRAINING), "--kind", kind, "--steps", str(steps)]
    with tempfile.TemporaryDirectory() as folder:
        if profiled:
            run = f"{folder}/run"
            command = [
                sys.executable,
                "-m",
                "pipeprof",
                "collect",
                "-q",
                "--keep-spool",
                "-o",
                run,
                *extra,
                "--",
                *command,
            ]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
        facts = json.loads(done.stdout.strip().splitlines()[-1])
        if profiled:
            ended = json.loads(Path(run, "spool", "rep=0", "exit.json").read_text())
            launched = json.loads(Path(run, "spool", "rep=0", "launch.json").read_text())
            wall = (ended["monotonic"] - launched["monotonic"]) / 1e9
            facts["launcher_cores"] = ended["launcher_cpu_s"] / wall
        return facts


def interval(ratios):
    """Geometric mean and 95 % interval of ratios."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 3:
        return math.exp(mean), float("nan"), float("nan")
    quantile = T95.get(len(logs) - 1, 2.0)
    half = quantile * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def difference(values):
    mean = statistics.fmean(values)
    if len(values) < 3:
        return mean, float("nan"), float("nan")
    half = T95.get(len(values) - 1, 2.0) * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def measure(kind, pairs, extra):
    one_run(kind, STEPS[kind] // 4, profiled=False)  # warms the file cache
    medians, means, cores, launcher = [], [], [], []
    for number in range(pairs):
        order = (False, True) if number % 2 == 0 else (True, False)
        pair = {profiled: one_run(kind, STEPS[kind], profiled, extra) for profiled in order}
        medians.append(pair[True]["median_ns"] / pair[False]["median_ns"])
        means.append(pair[True]["mean_ns"] / pair[False]["mean_ns"])
        cores.append(pair[True]["cores"] - pair[False]["cores"])
        launcher.append(pair[True]["launcher_cores"])
        rate = 1e9 / pair[False]["median_ns"]
        print(
            f"  {kind} pair {number + 1}: {rate:.0f} steps/s, median x{medians[-1]:.4f}, mean x{means[-1]:.4f}",
            flush=True,
        )
    rows = {"median step": interval(medians), "mean step": interval(means)}
    print(f"{kind}: {pairs} pairs")
    for name, (middle, low, high) in rows.items():
        print(f"  {name:<22} x{middle:.4f}  [{low:.4f}, {high:.4f}]")
    middle, low, high = difference(cores)
    print(f"  training process cores {middle:+.4f}  [{low:+.4f}, {high:+.4f}]")
    print(f"  launcher cores         {statistics.median(launcher):.4f}", flush=True)


def memory(steps):
    """Growth of the peak resident set over the second half of a long run, profiled and not."""
    for profiled in (False, True):
        facts = one_run("tiny", steps, profiled)
        print(
            f"memory over {steps} steps, profiled={profiled}: half way {facts['rss_half'] / 2**20:.1f} MiB, "
            f"end {facts['rss_end'] / 2**20:.1f} MiB, grown {facts['rss_growth'] / 2**20:.1f} MiB",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--kinds", nargs="*", choices=list(STEPS), default=list(STEPS))
    parser.add_argument("--memory-steps", type=int, default=0, help="also a long run, such as 100000")
    parser.add_argument("--collect-options", default="", help="options for `pipeprof collect`, such as '--ops off'")
    options = parser.parse_args()
    for kind in options.kinds:
        measure(kind, options.pairs, options.collect_options.split())
    if options.memory_steps:
        memory(options.memory_steps)


if __name__ == "__main__":
    main()
