"""What `pipeprof.profile` costs a training: while it waits, and while it records. Ratios with 95 % intervals.

python tests/benchmarks/inprocess.py [--pairs 30] [--steps 150] [--width 8] [--kinds steps cycles same wait record]

One process trains in blocks of `--steps` steps, each with an iterator of its own. A pair is a block without the
profiler (its hooks taken out again) and one with it, in an order that alternates. `wait`: a schedule that never gets
to its first active step, `step()` called after every step. `same`: without it twice, the noise of the machine.
`steps`: waiting, too, but alternating from step to step (see `step_by_step`), for a machine that is busy.
`cycles`: recorded steps beside the waiting steps before them (see `cycle_by_cycle`). `record`: operators, dataset and host recorded in every step. Compared is the median step of a block, and the CPU time
of the process per step.
"""

import argparse
import contextlib
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
                        and ".probe." in getattr(value, "__globals__", {}).get("__name__", "")
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


def step_by_step(options, hooks, train, data):
    """Pairs of neighbouring steps, one with the waiting profiler's hooks and `step()`, one without either.

    The median of the differences, and its interval by the ranks of the differences (distribution-free): on a busy
    machine neighbours have most in common, and a few very late steps move neither.
    """
    wall, cpu, plain = [], [], []
    with tempfile.TemporaryDirectory() as folder, pipeprof.profile(out=Path(folder, "run"), schedule=NEVER) as profile:
        while len(wall) < options.step_pairs:
            rows = data.create_tuple_iterator(num_epochs=1)
            for number in range(options.steps // 2):
                found = {}
                for kind in (("out", "in"), ("in", "out"))[number % 2]:
                    with hooks.out() if kind == "out" else contextlib.nullcontext():
                        found[kind] = one_step(rows, train, profile.step if kind == "in" else None)
                if number >= SKIP:
                    wall.append(found["in"][0] - found["out"][0])
                    cpu.append(found["in"][1] - found["out"][1])
                    plain.append(found["out"])
            rows.stop()
    steps = [statistics.median(one[index] for one in plain) for index in (0, 1)]
    return {
        "kind": "wait, step by step", "pairs": len(wall), "step_ms": steps[0] / 1e6, "main_thread_ms": steps[1] / 1e6,
        "median_step": [value / steps[0] + 1 for value in median_interval(wall)],
        "main_thread_cpu": [value / steps[1] + 1 for value in median_interval(cpu)],
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
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--step-pairs", type=int, default=3000)
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
    for kind in options.kinds:
        if kind == "steps":
            row = step_by_step(options, hooks, train, data)
        elif kind == "cycles":
            row = cycle_by_cycle(options, train, data)
        else:
            row = measure(kind, options, hooks, train, data)
        for name in [name for name in row if isinstance(row[name], (list, tuple))]:
            middle, low, high = row[name]
            print(f"{kind:<7} {name:<15} x{middle:.4f}  [{low:.4f}, {high:.4f}]  of a step of {row['step_ms']:.2f} ms")
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
