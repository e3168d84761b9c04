"""What `pipeprof.profile` costs a training: while it waits, and while it records. Ratios with 95 % intervals.

python lab/benchmarks/inprocess.py [--kinds steps cycles same wait record] [--check]

One process trains, and what is compared lies as near to each other in time as can be:

steps   waiting: of three neighbouring runs of 8 steps one has the waiting profiler's hooks and `step()`, two have neither
        (see `run_by_run`). The two show what the machine itself adds. `--triples` such runs.
cycles  recording: steps in which operators, dataset and host are recorded, beside the waiting steps before them (see
        `cycle_by_cycle`). `--pairs` cycles.
wait, record, same  blocks of `--steps` steps, with an iterator of their own: one without the profiler and one that
        waits, that records, or that is without it, too, in an order that alternates. `--pairs` such pairs.

A schedule that never gets to its first active step is what waits. `--check`: exit with 1 unless the interval of `steps`
includes 1 and lies within 0.5 % of it.
"""

import argparse
import contextlib
import itertools
import json
import math
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import GeneratorDataset

import pipeprof
from pipeprof.collect.probe import imports
from pipeprof.collect.probe import inprocess as probe

T95 = {4: 2.78, 5: 2.57, 7: 2.36, 9: 2.26, 11: 2.20, 14: 2.14, 19: 2.09, 24: 2.06, 29: 2.05, 39: 2.02, 59: 2.0}
SKIP = 10
ALLOWED = 0.5  # %
KINDS = ["steps", "cycles", "same", "wait", "record"]
NEVER = pipeprof.schedule(wait=10**9, active=1)


class Rows:
    def __init__(self, count, pixels):
        self.count = count
        self.picture = np.random.default_rng(0).random((1, pixels, pixels), dtype=np.float32)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.picture, np.array(index % 2, np.int32)


class Hooks:
    """All that the probe has replaced in MindSpore, to take it out and put it back."""

    def __init__(self):
        probe.wait({}, waiting=False)
        self.places = []
        for name in imports.HOOKS:
            for owner in vars(sys.modules.get(name, object)).values():
                if isinstance(owner, type):
                    self.places += [
                        (owner, attribute, value)
                        for attribute, value in vars(owner).items()
                        if hasattr(value, "__wrapped__")
                        and (
                            type(value).__module__ == "_hooks"
                            or ".probe." in getattr(value, "__globals__", {}).get("__name__", "")
                        )
                    ]

    @contextlib.contextmanager
    def out(self):
        for owner, attribute, value in self.places:
            setattr(owner, attribute, value.__wrapped__)
        try:
            yield
        finally:
            for owner, attribute, value in self.places:
                setattr(owner, attribute, value)


def network(width, pixels):
    net = nn.SequentialCell(
        nn.Conv2d(1, width, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Dense(width * (pixels // 2) ** 2, 2)
    )
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    train = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.01, 0.9))
    train.set_train()
    return train


def loop(train, data, after):
    """Median step, ns, and CPU time per step, ns."""
    times = []
    cpu = last = 0
    for number, (x, y) in enumerate(data.create_tuple_iterator(num_epochs=1)):
        train(x, y)
        after()
        now = time.perf_counter_ns()
        if number >= SKIP:
            times.append(now - last)
        else:
            cpu = time.process_time_ns()
        last = now
    return statistics.median(times), (time.process_time_ns() - cpu) / len(times)


def block(kind, hooks, train, data, folder):
    if kind == "without":
        with hooks.out():
            return loop(train, data, lambda: None)
    path = Path(folder, "run")
    shutil.rmtree(path, ignore_errors=True)
    with pipeprof.profile(out=path, schedule=NEVER if kind == "wait" else None) as profile:
        return loop(train, data, profile.step)


def interval(ratios):
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    freedom = len(logs) - 1
    quantile = T95[max(known for known in T95 if known <= max(freedom, 4))]
    half = quantile * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def measure(kind, options, hooks, train, data):
    medians, cpu, plain = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        block("without", hooks, train, data, folder)
        for number in range(options.pairs):
            names = ("without", "without" if kind == "same" else kind)
            order = (0, 1) if number % 2 == 0 else (1, 0)
            found = {index: block(names[index], hooks, train, data, folder) for index in order}
            medians.append(found[1][0] / found[0][0])
            cpu.append(found[1][1] / found[0][1])
            plain.append(found[0][0])
    return {
        "kind": kind, "pairs": options.pairs, "step_ms": statistics.median(plain) / 1e6,
        "median_step": interval(medians), "cpu_per_step": interval(cpu),
    }  # fmt: skip


ARMS = ("out", "in", "again")  # again: out, too
RUN, FORGOTTEN = 8, 2  # steps of a run; of these, before Python knows the classes again


def run_by_run(options, hooks, train, data):
    """Three neighbouring runs of steps: one with the waiting profiler's hooks and `step()`, two without, in every order.

    Changing a class's functions makes Python forget what it knew of the class, so the first steps after that are slower,
    whichever arm it is: they are left out. The median of the differences, and its interval by the ranks of the
    differences (distribution-free): on a busy machine neighbours have most in common, and a few very late steps move
    neither.
    """
    found = {name: [] for name in ARMS}
    orders = list(itertools.permutations(ARMS))
    length = RUN * len(ARMS)
    with tempfile.TemporaryDirectory() as folder, pipeprof.profile(out=Path(folder, "run"), schedule=NEVER) as profile:
        while len(found["out"]) < options.triples:
            rows = data.create_tuple_iterator(num_epochs=1)
            for number in range(options.steps // length):
                times = {}
                for name in orders[len(found["out"]) % len(orders)]:
                    with contextlib.nullcontext() if name == "in" else hooks.out():
                        after = profile.step if name == "in" else None
                        steps = [one_step(rows, train, after) for _ in range(RUN)][FORGOTTEN:]
                    times[name] = [statistics.median(step[index] for step in steps) for index in (0, 1)]
                if number:
                    for name in ARMS:
                        found[name].append(times[name])
            rows.stop()
    plain = [statistics.median(one[index] for one in found["out"]) for index in (0, 1)]

    def ratio(arm, index, others):
        differences = [
            here[index] - statistics.fmean(one[index] for one in beside)
            for here, *beside in zip(found[arm], *(found[name] for name in others), strict=True)
        ]
        return [value / plain[index] + 1 for value in median_interval(differences)]

    return {
        "kind": "wait, run by run", "triples": len(found["out"]), "step_ms": plain[0] / 1e6, "main_thread_ms": plain[1] / 1e6,
        "median_step": ratio("in", 0, ("out", "again")), "main_thread_cpu": ratio("in", 1, ("out", "again")),
        "noise_step": ratio("again", 0, ("out",)), "noise_cpu": ratio("again", 1, ("out",)),
    }  # fmt: skip


def cycle_by_cycle(options, train, data):
    """Recorded steps beside the waiting steps before them, cycle by cycle: ratio of the medians, and its interval.

    Also what beginning and ending a cycle takes (inside `step()`), ms; the runs' tables are made after the block.
    """
    plan = pipeprof.schedule(wait=9, warmup=1, active=10)
    ratios, edges, waiting = [], [], []
    with tempfile.TemporaryDirectory() as folder, pipeprof.profile(out=Path(folder, "run"), schedule=plan) as profile:
        while len(ratios) < options.pairs:
            rows = data.create_tuple_iterator(num_epochs=1)
            for _ in range(options.steps // 20):
                steps = []
                for _ in range(20):
                    wall, _ = one_step(rows, train, None)
                    begin = time.perf_counter_ns()
                    profile.step()
                    steps.append((wall, time.perf_counter_ns() - begin))
                ratios.append(statistics.median(wall for wall, _ in steps[10:]) / median_of(steps[:9]))
                waiting.append(median_of(steps[:9]))
                edges.append(sum(sorted(took for _, took in steps)[-2:]) / 1e6)
            rows.stop()
    return {
        "kind": "record, cycle by cycle", "pairs": len(ratios), "step_ms": statistics.median(waiting) / 1e6,
        "median_step": median_interval(ratios), "edges_ms": statistics.median(edges),
    }  # fmt: skip


def median_of(steps):
    return statistics.median(wall for wall, _ in steps)


def one_step(rows, train, after):
    begin, spent = time.perf_counter_ns(), time.thread_time_ns()
    train(*next(rows))
    if after is not None:
        after()
    return time.perf_counter_ns() - begin, time.thread_time_ns() - spent


def median_interval(values):
    """Median and its 95 % interval, by order statistics."""
    ordered, count = sorted(values), len(values)
    half = 1.96 * math.sqrt(count) / 2
    low, high = max(0, int(count / 2 - half)), min(count - 1, math.ceil(count / 2 + half))
    return statistics.median(ordered), ordered[low], ordered[high]


def hook_time():
    """ns of `step()` while waiting."""
    with tempfile.TemporaryDirectory() as folder, pipeprof.profile(out=Path(folder, "run"), schedule=NEVER) as profile:
        begin = time.perf_counter_ns()
        for _ in range(20_000):
            profile.step()
        return (time.perf_counter_ns() - begin) / 20_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--triples", type=int, default=1500)
    parser.add_argument("--check", action="store_true", help="fail unless waiting costs nothing that can be seen")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--pixels", type=int, default=32)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    options = parser.parse_args()
    if options.pairs < 5:
        parser.error("an interval needs at least 5 pairs")
    ms.set_context(mode=ms.GRAPH_MODE)
    train = network(options.width, options.pixels)
    data = GeneratorDataset(Rows(options.steps * 16, options.pixels), ["x", "y"], shuffle=False).batch(16)
    hooks = Hooks()
    print(f"{len(hooks.places)} hooks; step() while waiting takes {hook_time():.0f} ns")
    done = {}
    for kind in options.kinds:
        if kind == "steps":
            row = run_by_run(options, hooks, train, data)
        elif kind == "cycles":
            row = cycle_by_cycle(options, train, data)
        else:
            row = measure(kind, options, hooks, train, data)
        done[kind] = row
        for name in [name for name in row if isinstance(row[name], (list, tuple))]:
            middle, low, high = row[name]
            print(f"{kind:<7} {name:<15} x{middle:.4f}  [{low:.4f}, {high:.4f}]  of a step of {row['step_ms']:.2f} ms")
        print(json.dumps(row), flush=True)
    held = summary(done)
    sys.exit(1 if options.check and not held else 0)


def summary(done):
    """Print what was asked of the profiler, in words; whether waiting costs nothing that can be seen."""
    held = False
    if "steps" in done:
        middle, low, high = (100 * (value - 1) for value in done["steps"]["median_step"])
        held = -ALLOWED <= low <= 0 <= high <= ALLOWED
        zero = "includes" if low <= 0 <= high else "leaves out"
        within = "lies" if max(-low, high) <= ALLOWED else "does not lie"
        print(f"waiting: {middle:+.2f} % of a step, 95 % interval {low:+.2f} to {high:+.2f} %:", end=" ")
        print(f"it {zero} 0 and {within} within {ALLOWED} % of it")
    for kind in [kind for kind in ("cycles", "record") if kind in done]:
        middle, low, high = (100 * (value - 1) for value in done[kind]["median_step"])
        print(
            f"recording everything ({kind}): {middle:+.1f} % of a step of {done[kind]['step_ms']:.1f} ms, "
            f"95 % interval {low:+.1f} to {high:+.1f} %; MegEngine's documentation says about 8 % of its profiler"
        )
    return held


if __name__ == "__main__":
    main()
