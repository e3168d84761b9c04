"""Programs that profile themselves. Each prints one line, `truth` and JSON: what it did and what it was given."""

import json
import sys
import threading
import time
import warnings
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import GeneratorDataset
from mindspore.train import Callback, Model

import pipeprof

OUT = Path(sys.argv[2])
FACTS = {}


class Rows:
    def __init__(self, count=512):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return np.full((1, 16, 16), index % 7, np.float32), np.array(index % 2, np.int32)


def parts():
    net = nn.SequentialCell(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 64, 2))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9)


def dataset(steps):
    return GeneratorDataset(Rows(steps * 8), ["x", "y"], shuffle=False).batch(8)


def trainer():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net, loss, optimizer = parts()
    gradients = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    def train(x, y):
        value, grads = gradients(x, y)
        optimizer(grads)
        return value

    return train


def seen(p):
    """What a callback can know about the run it is given."""
    spans = p.run.span
    return {
        "step_num": p.step_num,
        "path": str(p.path),
        "state": p.run.manifest.state,
        "named": spans[spans.category == "step"].name.tolist(),
        "kinds": p.run.step.kind.tolist(),
        "op_steps": {str(int(step)): int(n) for step, n in p.run.op.groupby("step").size().items()},
        "op_times": [p.run.op.start_ns.min().item(), (p.run.op.start_ns + p.run.op.dur_ns).max().item()],
        "zero": p.run.manifest.reps[0].zero_monotonic_ns,
        "fetches": len(p.run.fetch),
        "cells": steps_of_cells(p.run),
        "queues": p.run.pipeline.queues.tolist(),
        "samples": len(p.run.queue),
        "user": {row.name: row.count for row in p.key_averages() if row.category == "user"},
    }


def steps_of_cells(run):
    """Steps (by place in the run, from 1) in which calls of cells were recorded."""
    begins = run.span[run.span.category == "cell"].start_ns
    return [at for at, step in enumerate(run.step.itertuples(), 1) if begins.between(step.start_ns, step.end_ns).any()]


def scheduled():
    train = trainer()
    FACTS["ready"], times = [], []
    schedule = pipeprof.schedule(skip_first=10, wait=5, warmup=1, active=3, repeat=2)
    with pipeprof.profile(
        out=OUT, schedule=schedule, on_trace_ready=lambda p: FACTS["ready"].append(seen(p)), queue_interval_ms=5
    ) as p:
        for x, y in dataset(32).create_tuple_iterator(num_epochs=1):
            begin = time.monotonic_ns()
            with pipeprof.record_function("one step"):
                train(x, y)
            FACTS.setdefault("numbers", []).append(p.step_num)
            p.step()
            times.append([begin, time.monotonic_ns()])
    FACTS["times"], FACTS["left"] = times, p.step_num
    FACTS["paths"] = [str(path) for path in p.paths]


def model():
    ms.set_context(mode=ms.GRAPH_MODE)
    net, loss, optimizer = parts()
    callback = pipeprof.ProfileCallback(out=OUT / "plain", profile_memory=True)
    whole = Model(net, loss, optimizer, metrics={"accuracy"})
    whole.fit(2, dataset(6), dataset(40), callbacks=[callback], dataset_sink_mode=False)
    FACTS["plain"] = seen(callback.profile)
    FACTS["epochs"] = callback.profile.run.step.epoch.tolist()
    steps = callback.profile.run.step
    FACTS["gap"] = int(steps.start_ns[6] - steps.end_ns[5])
    FACTS["memory"] = sorted(set(callback.profile.run.memory.device))
    schedule = pipeprof.schedule(wait=1, warmup=1, active=2, repeat=1)
    callback = pipeprof.ProfileCallback(out=OUT / "scheduled", schedule=schedule)

    class Fails(Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 7:
                raise RuntimeError("planted")

    net, loss, optimizer = parts()
    try:
        Model(net, loss, optimizer).train(2, dataset(6), callbacks=[callback, Fails()], dataset_sink_mode=False)
    except RuntimeError as error:
        FACTS["error"] = str(error)
    FACTS["scheduled"] = seen(callback.profile)


def forms():
    train = trainer()
    iterator = dataset(30).create_tuple_iterator(num_epochs=1)

    @pipeprof.profile(out=OUT / "called")
    def some(count):
        for _ in range(count):
            train(*next(iterator))

    some(3)
    some(2)
    FACTS["called"] = [[str(path), len(pipeprof.open(path).step)] for path in some.profile.paths]
    formats = ["chrome_timeline.json", "memory_flow.svg"]
    with pipeprof.profile(out=OUT / "outer", with_stack=True, record_shapes=True, formats=formats) as outer:
        with pipeprof.profile(out=OUT / "inner") as inner, pipeprof.record_function("named"):
            train(*next(iterator))
            inner.step()
        others = [threading.Thread(target=in_thread, args=(number,), name=f"other-{number}") for number in range(3)]
        for thread in others:
            thread.start()
        for thread in others:
            thread.join()
    FACTS["outer"] = outer.run.span[["track", "category", "name"]].to_numpy().tolist()
    FACTS["formats"] = {name: (OUT / f"outer.{name}").read_text() for name in formats}
    FACTS["warned"] = [warning.code for warning in outer.run.manifest.warnings]
    FACTS["stacks"] = outer.key_averages(group_by_stack_n=2).table()
    FACTS["sites"] = {row.name: row.stack for row in outer.key_averages(group_by_stack_n=9) if row.category == "op"}
    FACTS["shapes"] = {row.name: row.in_shapes for row in outer.key_averages(group_by_input_shape=True)}
    FACTS["memory_of_spans"] = {row.name: row.memory_bytes for row in outer.key_averages() if row.category == "user"}
    FACTS["by_memory"] = outer.key_averages().table(sort_by="cpu_memory_usage")
    FACTS["inner"] = [(OUT / "inner").exists(), len(inner.paths)]
    failing = pipeprof.profile(out=OUT / "failing")
    try:
        with failing:
            train(*next(iterator))
            raise KeyError("planted")  # noqa: TRY301 - the block is what is tried
    except KeyError as error:
        FACTS["caught"] = str(error)
    FACTS["failed"] = [failing.run.manifest.state, failing.run.manifest.reason, len(failing.run.op)]
    made = losses(train, iterator)
    FACTS["generated"] = [len(list(made(3))), made.profile.run.manifest.state, len(made.profile.run.step)]
    FACTS["pools"] = [pool_samples(train, iterator, number) for number in range(2)]
    FACTS["inferred"] = inferred()
    with pipeprof.profile(out=OUT / "cut", schedule=pipeprof.schedule(active=4)) as cut:
        for _ in range(6):
            train(*next(iterator))
            cut.step()
    states = [pipeprof.open(path).manifest for path in cut.paths]
    FACTS["cut"] = [[manifest.state, manifest.reason] for manifest in states]
    cut.export_chrome_trace(OUT / "trace.json")
    FACTS["trace"] = len(json.loads((OUT / "trace.json").read_text())["traceEvents"])


def losses(train, iterator):
    @pipeprof.profile(out=OUT / "generated")
    def each(count):
        for _ in range(count):
            yield float(train(*next(iterator)).asnumpy())

    return each


def pool_samples(train, iterator, number):
    """[samples of the pool, those of them outside of the steps]."""
    with pipeprof.profile(out=OUT / f"pool-{number}", profile_memory=True) as p:
        for _ in range(2):
            train(*next(iterator))
            p.step()
    pool, steps = p.run.memory[p.run.memory.device == "CPU"], p.run.step
    outside = (pool.t_ns < steps.start_ns.min()) | (pool.t_ns > steps.end_ns.max())
    return [len(pool), int(outside.sum())]


def inferred():
    """Memory by type of operator of two inferences, of the span around each, and of a profile without it behind that."""
    net = nn.SequentialCell(nn.Conv2d(1, 8, 3), nn.MaxPool2d(2, 2), nn.Conv2d(8, 15, 3), nn.MaxPool2d(2, 2))
    images = ms.Tensor(np.ones((32, 1, 32, 32), np.float32))
    facts = []
    for number, memory in enumerate((True, False)):
        net(images).asnumpy()
        with pipeprof.profile(out=OUT / f"inferred-{number}", profile_memory=memory) as p:
            for _ in range(2):
                with pipeprof.record_function("inference"):
                    net(images).asnumpy()
                p.step()
        facts.append({row.name: row.self_memory_bytes or row.memory_bytes for row in p.key_averages()})
    return facts


def in_thread(number):
    with pipeprof.profile(), pipeprof.record_function(f"thread {number}"):
        time.sleep(0.01)


def inside():
    train = trainer()
    with pipeprof.profile(out=OUT / "inside", schedule=pipeprof.schedule(active=2), on_trace_ready=seen) as p:
        for x, y in dataset(5).create_tuple_iterator(num_epochs=1):
            with pipeprof.record_function("one step"):
                train(x, y)
            p.step()
    FACTS["paths"], FACTS["written"] = len(p.paths), (OUT / "inside").exists()


if __name__ == "__main__":
    warnings.simplefilter("error", ResourceWarning)
    {"scheduled": scheduled, "model": model, "forms": forms, "inside": inside}[sys.argv[1]]()
    print("truth", json.dumps(FACTS))
