"""What every workload is made of: a small network, small datasets, and the truth about the steps that it made."""

from __future__ import annotations

import json
import time

import mindspore as ms
import numpy as np
from mindspore import dataset as ds
from mindspore import nn

BATCH = 4
TRUTH: list[tuple[str, int | None, int]] = []


def mark(kind="train", epoch=None):
    """Called inside a step: after its batch was fetched, before its update is over."""
    TRUTH.append((kind, epoch, time.monotonic_ns()))


def tell():
    print("truth " + json.dumps(TRUTH), flush=True)


class Rows:
    """A source of labelled rows."""

    def __init__(self, steps, delay=0.0):
        self.steps = steps
        self.delay = delay

    def __len__(self):
        return self.steps * BATCH

    def __getitem__(self, index):
        if self.delay:
            time.sleep(self.delay / BATCH)
        return np.full(8, index % 5, np.float32), np.array(index % 2, np.int32)


def rows(steps, delay=0.0, **options):
    return ds.GeneratorDataset(Rows(steps, delay), ["x", "y"], shuffle=False, **options).batch(BATCH)


def network():
    return nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 2))


def loss_function():
    return nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


class Trainer:
    """Forward, gradients and optimizer, to be called by a loop of one's own."""

    def __init__(self, optimizer=nn.Momentum):
        self.net = network()
        self.loss = loss_function()
        options = {"learning_rate": 0.01} | ({"momentum": 0.9} if optimizer is nn.Momentum else {})
        self.optimizer = optimizer(self.net.trainable_params(), **options)
        self.gradients = ms.value_and_grad(self.forward, None, self.optimizer.parameters)

    def forward(self, x, y):
        return self.loss(self.net(x), y)

    def step(self, x, y):
        loss, gradients = self.gradients(x, y)
        self.optimizer(gradients)
        return loss


def pynative():
    ms.set_context(mode=ms.PYNATIVE_MODE)


def graph():
    ms.set_context(mode=ms.GRAPH_MODE)
