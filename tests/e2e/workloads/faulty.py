"""A small training of a kind that prints its rows and losses: `python faulty.py graph | pynative | processes`."""

from __future__ import annotations

import sys
import time

import mindspore as ms
import numpy as np
import parts
from mindspore import dataset as ds
from mindspore.train import Callback, Model

KIND = sys.argv[1]
EPOCHS, STEPS = 2, 12


class Losses(Callback):
    def on_train_step_end(self, run_context):
        print("loss", run_context.original_args().net_outputs.asnumpy().tobytes().hex(), flush=True)


def seen(x):
    time.sleep(0.005)
    return x * np.float32(2)


def rows():
    source = ds.GeneratorDataset(parts.Rows(STEPS, 0.02), ["x", "y"], shuffle=False)
    processes = KIND == "processes"
    return source.map(seen, ["x"], num_parallel_workers=2, python_multiprocessing=processes).batch(parts.BATCH)


def generated():
    for index in range(STEPS):
        yield (np.full(8, index % 5, np.float32),)


def evaluated(data):
    """Rows of a source that can only be iterated, and of the training's data."""
    for (x,) in ds.GeneratorDataset(generated, ["x"]).create_tuple_iterator(num_epochs=1, output_numpy=True):
        print("row", x.tobytes().hex())
    for x, _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        print("row", x.tobytes().hex())


def train():
    ms.set_seed(1)
    if KIND == "graph":
        parts.graph()
        net = parts.network()
        optimizer = ms.nn.Momentum(net.trainable_params(), 0.01, 0.9)
        data = rows()
        Model(net, parts.loss_function(), optimizer).train(EPOCHS, data, callbacks=[Losses()], dataset_sink_mode=False)
        evaluated(data)
        return
    parts.pynative()
    trainer, data = parts.Trainer(), rows()
    for _ in range(EPOCHS):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            print("loss", trainer.step(x, y).asnumpy().tobytes().hex(), flush=True)
    evaluated(data)


train()
sys.stdout.write("trained\n")
sys.exit(3)  # so that a training that ended early does not look like one that ended well
