"""The training behind the captures: `python train.py graph|pynative|jit|ranks`. 2 epochs of 8 batches, one evaluation."""

from __future__ import annotations

import sys
import time

import mindspore as ms
import numpy as np
from mindspore import dataset as ds
from mindspore import nn, ops
from mindspore.communication import init
from mindspore.train import Accuracy, Model

EPOCHS, BATCHES, BATCH = 2, 8, 4


class Source:
    """Labelled rows, 3 ms each: the pipeline is slower than the network."""

    def __init__(self, batches):
        self.batches = batches

    def __len__(self):
        return self.batches * BATCH

    def __getitem__(self, index):
        time.sleep(0.003)
        return np.full(8, index % 5, np.float32), np.array(index % 2, np.int32)


def halve(row):
    return row / np.float32(2)


def rows(batches):
    data = ds.GeneratorDataset(Source(batches), ["x", "y"], shuffle=False)
    return data.map(halve, ["x"]).batch(BATCH)


def network():
    return nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 2))


def graph():
    ms.set_context(mode=ms.GRAPH_MODE)
    net = network()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    model = Model(net, loss, optimizer, metrics={"accuracy": Accuracy()})
    model.train(EPOCHS, rows(BATCHES), dataset_sink_mode=False)
    model.eval(rows(3), dataset_sink_mode=False)


def loop(*, compiled=False, ranks=False):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    if ranks:
        ms.set_context(device_target="CPU")
        init()
        reduce = ops.AllReduce()
    net = network()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)

    def forward(x, y):
        return loss(net(x), y)

    gradients = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x, y):
        value, found = gradients(x, y)
        if ranks:
            found = tuple(reduce(gradient) for gradient in found)
        optimizer(found)
        return value

    if compiled:
        step = ms.jit(step)
    data, check = rows(BATCHES), rows(3)
    for _ in range(EPOCHS):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            step(x, y)
    for x, _ in check.create_tuple_iterator(num_epochs=1):
        net(x)


if __name__ == "__main__":
    style = sys.argv[1]
    graph() if style == "graph" else loop(compiled=style == "jit", ranks=style == "ranks")
