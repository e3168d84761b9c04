"""Trainings with a data pipeline of known speed: `python bound.py KIND STEPS [EPOCHS]`."""

from __future__ import annotations

import sys
import time

import numpy as np
import parts
from mindspore import dataset as ds
from mindspore import nn
from mindspore.train import Callback, Model

KIND = sys.argv[1]
STEPS = int(sys.argv[2])
EPOCHS = int(sys.argv[3]) if len(sys.argv) > 3 else 1
ROWS = 4


class Source:
    def __init__(self, steps):
        self.steps = steps

    def __len__(self):
        return self.steps * ROWS

    def __getitem__(self, index):
        return np.full(8, index % 5, np.float32), np.array(index % 2, np.int32)


def wait_60_ms(x):
    time.sleep(0.06)
    return x


def pipeline(steps=STEPS, *, slow=True):
    """Queues of one batch, so that what is made in advance during a long first step is soon used up."""
    ds.config.set_prefetch_size(1)
    data = ds.GeneratorDataset(Source(steps), ["x", "y"], shuffle=False, python_multiprocessing=False)
    if slow:
        data = data.map(wait_60_ms, ["x"], num_parallel_workers=1)
    return data.batch(ROWS, num_parallel_workers=1)


def loop():
    """Epochs in turn with tuples and with dictionaries."""
    parts.pynative()
    trainer, data, check = parts.Trainer(), pipeline(), pipeline(4, slow=False)
    for epoch in range(EPOCHS):
        make = data.create_dict_iterator if epoch % 2 else data.create_tuple_iterator
        for row in make(num_epochs=1):
            parts.mark("train", epoch)
            trainer.step(*(row.values() if epoch % 2 else row))
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


{"loop": loop, "model": model}[KIND]()
parts.tell()
