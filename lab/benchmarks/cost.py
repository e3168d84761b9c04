"""What `pipeprof collect` costs, by CPU clocks of threads, which a busy machine does not disturb as it does wall time.

python lab/benchmarks/cost.py [--kinds pynative graph workers] [--rates 20 200 1000] [--quadruples 200] [--control]

Each row is one training (cost_training.py) whose hooks are taken out and put back block by block. `hooks`: CPU time that they
add to the training's thread in the middle step of a block, the median of quadruples of blocks (in, out, out, in) and its 95 % interval;
then as a share of the step without them. `threads`: what the recorder's thread and MindSpore's sampler of queues run beside it,
`launcher`: the launcher; shares of one core. `live`: CPU time of writing, once a second, where the process is.
`--top` leaves the hooks in and looks at the run beside it, as `pipeprof top` does, in their place: the ratio of the CPU time of the
training's thread, per step, with and without it, of blocks of 3 s; one row.
Operators are recorded in no step (`--ops off`): what windows cost is bounded by their schedule (`pipeprof.collect.probe.windows`).
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pipeprof.record.run import load
from pipeprof.report.top import EVERY_S, Watch

TRAINING = Path(__file__).with_name("cost_training.py")
KINDS = ("pynative", "graph", "workers")
WIDTHS = {1000: 16, 200: 512, 20: 2048}  # of the layers, for about so many steps per second
BLOCK_S = 0.02  # short, so that what changes on the machine falls on neighbours
WATCHED_S = 3.0  # blocks in which somebody looks once a second
RECORDER = "pipeprof"


def trained(kind, rate, options):
    """What the training tells of its blocks, and the launcher's share of a core."""
    steps = max(4, round(rate * (WATCHED_S if options.top else BLOCK_S)))
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        train = [
            sys.executable, str(TRAINING), "--kind", kind, "--width", str(WIDTHS[rate]), "--steps", str(steps),
            "--blocks", str(4 * options.quadruples), "--seconds", str(options.seconds),
        ]  # fmt: skip
        collect = [sys.executable, "-m", "pipeprof", "collect", "-q", "--keep-spool", "--ops", "off", "-o", str(run)]
        extra = options.collect_options.split()
        train += ["--control"] if options.control else []
        gate = Path(folder, "gate")
        train += ["--watcher", str(gate)] if options.top else []
        with subprocess.Popen([*collect, *extra, "--", *train], stdout=subprocess.PIPE, text=True, cwd=folder) as child:
            looks = watched(run, gate, child) if options.top else 0
            said, _ = child.communicate()
        facts = json.loads(said.strip().splitlines()[-1]) | {"looks": looks}
        spool = run / "spool" / "rep=0"
        ended = json.loads(spool.joinpath("exit.json").read_text())
        began = json.loads(spool.joinpath("launch.json").read_text())
        facts["launcher"] = ended["launcher_cpu_s"] / ((ended["monotonic"] - began["monotonic"]) / 1e9)
    return facts


def watched(run, gate, child):
    """Look at the run as `pipeprof top` does: once, which makes the gate, then each second while its text is 1.

    Returns how often it was looked.
    """
    while not (run / "run.json").exists() and child.poll() is None:
        time.sleep(EVERY_S)
    watch, looks = Watch(load(run)), 0
    while child.poll() is None:
        if not looks or gate.read_text() == "1":
            seen = next(watch.looks())["ranks"]
            if seen and not looks:
                gate.write_text("0")
            looks += bool(seen)
        time.sleep(EVERY_S)
    return looks


def interval(values):
    """Median and the bounds of its 95 % interval, by order: what bursts of other programs add does not move them."""
    ordered = sorted(values)
    count = len(ordered)
    low = max(0, math.floor((count - 1.96 * math.sqrt(count)) / 2) - 1)
    return statistics.median(ordered), ordered[low], ordered[count - 1 - low]


def added(blocks):
    """CPU time per step that hooks add to the training's thread, ns, one value for each quadruple of blocks."""
    times = [block[1] for block in blocks]
    whole = len(times) - len(times) % 4
    return [(times[at] - times[at + 1] - times[at + 2] + times[at + 3]) / 2 for at in range(0, whole, 4)]


def measure(kind, rate, options):
    """Print one row."""
    facts = trained(kind, rate, options)
    blocks = facts["blocks"]
    without = [block[0] for number, block in enumerate(blocks) if number % 4 in (1, 2)]
    step = statistics.median(without)
    mean, low, high = interval(added(blocks))
    beside = {name: ran / facts["wall_ns"] for name, ran in facts["threads"].items()}
    recorder = sum(share for name, share in beside.items() if name.startswith(RECORDER))
    print(
        f"| {kind} | {1e9 / step:.0f} ({len(blocks) // 4}) | {mean / 1e3:.2f} [{low / 1e3:.2f}, {high / 1e3:.2f}] us "
        f"| {mean / step:.2%} [{low / step:.2%}, {high / step:.2%}] | {recorder:.2%} | {facts['launcher']:.2%} "
        f"| {facts.get('live_ns', 0) / 1e6:.2f} ms |",
        flush=True,
    )
    return facts


def measure_watched(kind, rate, options):
    """Print what somebody who looks costs the training's thread: one value for each quadruple of blocks."""
    facts = trained(kind, rate, options)
    ran = [block[2] for block in facts["blocks"]]
    ratios = [(ran[at] + ran[at + 3]) / (ran[at + 1] + ran[at + 2]) for at in range(0, len(ran) - 3, 4)]
    mean, low, high = interval(ratios)
    print(
        f"| {kind} | {rate} ({len(ratios)}) | {facts['looks']} looks | x{mean:.4f} [{low:.4f}, {high:.4f}] |",
        flush=True,
    )


def main():
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rates", nargs="*", type=int, choices=list(WIDTHS), default=list(WIDTHS))
    parser.add_argument("--quadruples", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60, help="after which a training begins no further block")
    parser.add_argument("--control", action="store_true", help="leave the hooks in: what is seen then is no cost")
    parser.add_argument(
        "--top", action="store_true", help="look at the run in place of the hooks: the first kind and rate"
    )
    parser.add_argument("--threads", action="store_true", help="also all threads of the training, with their shares")
    parser.add_argument("--collect-options", default="", help="options for `pipeprof collect`, such as '--no-service'")
    options = parser.parse_args()
    if options.top:
        measure_watched(options.kinds[0], options.rates[0], options)
        return
    print(
        "| training | steps/s (quadruples) | hooks, per step | of the step | recorder's thread | launcher | live record |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for kind in options.kinds:
        for rate in options.rates:
            facts = measure(kind, rate, options)
            if options.threads:
                shares = sorted(
                    ((ran / facts["wall_ns"], name) for name, ran in facts["threads"].items()), reverse=True
                )
                print("   ", ", ".join(f"{name} {share:.2%}" for share, name in shares if share > 1e-4), flush=True)


if __name__ == "__main__":
    main()
