"""Trainings with a data pipeline of known speed: `python bound.py KIND [STEPS] [EPOCHS]`."""

from __future__ import annotations

import sys
import time

import numpy as np
import parts
from mindspore import dataset as ds
from mindspore import nn
from mindspore.train import Callback, Model

KIND = sys.argv[1]
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 60
EPOCHS = int(sys.argv[3]) if len(sys.argv) > 3 else 1
ROWS = 32 if KIND == "generator" else 16


class Source:
    def __init__(self, delay=0.0, steps=STEPS):
        self.delay, self.steps = delay, steps

    def __len__(self):
        return self.steps * ROWS

    def __getitem__(self, index):
        if self.delay:
            time.sleep(self.delay)
        return np.full(8, index % 5, np.float32), np.array(index % 2, np.int32)


def wait_5_ms(x):
    time.sleep(0.005)
    return x


def pipeline(steps=STEPS, delay=0.0, slow=True):
    data = ds.GeneratorDataset(Source(delay, steps), ["x", "y"], shuffle=False, python_multiprocessing=False)
    if slow:
        data = data.map(wait_5_ms, ["x"], num_parallel_workers=1)
    return data.batch(ROWS, num_parallel_workers=1)


def loop(data, as_dict=False):
    parts.pynative()
    trainer, check = parts.Trainer(), pipeline(4, slow=False)
    make = data.create_dict_iterator if as_dict else data.create_tuple_iterator
    for epoch in range(EPOCHS):
        for row in make(num_epochs=1):
            parts.mark("train", epoch)
            trainer.step(*(row.values() if as_dict else row))
        for x, y in check.create_tuple_iterator(num_epochs=1):
            parts.mark("eval")
            trainer.forward(x, y).asnumpy()


class Marks(Callback):
    def on_train_step_begin(self, run_context):
        parts.mark("train", run_context.original_args().cur_epoch_num - 1)


def model():
    parts.graph()
    net = parts.network()
    Model(net, parts.loss_function(), nn.Momentum(net.trainable_params(), 0.01, 0.9)).train(
        EPOCHS, pipeline(), callbacks=[Marks()], dataset_sink_mode=False
    )


def failing():
    loop(pipeline())
    if "override" in __import__("os").environ.get("PIPEPROF_OPTIONS", "{}"):
        sys.exit(7)


{
    "map": lambda: loop(pipeline()),
    "dict": lambda: loop(pipeline(), as_dict=True),
    "generator": lambda: loop(pipeline(slow=False)),
    "slow_source": lambda: loop(pipeline(delay=0.008, slow=False)),
    "model": model,
    "failing": failing,
}[KIND]()
parts.tell()
