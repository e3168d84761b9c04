"""A small CNN in PyNative: `python cnn.py OPTIMIZER LAYOUT AMP STEPS`; tells when the gradients of each step were there.

LAYOUT: `one` line for gradients and update, `two`, or a `function` that does both. With `one` it tells no times.
"""

from __future__ import annotations

import json
import sys
import time

import mindspore as ms
import numpy as np
from mindspore import amp, nn
from mindspore import dataset as ds
from mindspore.common.api import _pynative_executor

OPTIMIZER, LAYOUT, AMP, STEPS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
OPTIMIZERS = {
    "Momentum": lambda weights: nn.Momentum(weights, 0.01, 0.9),
    "Adam": lambda weights: nn.Adam(weights, 1e-3),
    "RMSProp": lambda weights: nn.RMSProp(weights, 1e-3),
    "SGD": lambda weights: nn.SGD(weights, 0.01),
    "AdamWeightDecay": lambda weights: nn.AdamWeightDecay(weights, 1e-3),
}
TRUTH = []


class Pictures:
    def __len__(self):
        return 4 * STEPS

    def __getitem__(self, index):
        return np.full((3, 16, 16), index % 7, np.float32), np.int32(index % 4)


class Block(nn.Cell):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv, self.norm, self.relu = nn.Conv2d(inputs, outputs, 3), nn.BatchNorm2d(outputs), nn.ReLU()

    def construct(self, x):
        return self.relu(self.norm(self.conv(x)))


class Net(nn.Cell):
    """Its second and third block run operators of the same shapes."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = Block(3, 8), Block(8, 8), Block(8, 8)
        self.pool, self.flat, self.head = nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(8 * 64, 4)

    def construct(self, x):
        x = self.first(x)
        x = self.second(x)
        x = self.third(x)
        return self.head(self.flat(self.pool(x)))


def told():
    """Wait for the gradients, and keep when they were there."""
    _pynative_executor.sync()
    TRUTH.append(time.monotonic_ns())


def main():
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    net = amp.auto_mixed_precision(Net(), AMP)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = OPTIMIZERS[OPTIMIZER](net.trainable_params())

    def forward(x, y):
        return loss(net(x).astype(ms.float32), y)

    gradients = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x, y):
        _, grads = gradients(x, y)
        told()
        optimizer(grads)

    net.set_train()
    for x, y in ds.GeneratorDataset(Pictures(), ["x", "y"], shuffle=False).batch(4).create_tuple_iterator(num_epochs=1):
        if LAYOUT == "one":
            optimizer(gradients(x, y)[1])
        elif LAYOUT == "two":
            _, grads = gradients(x, y)
            told()
            optimizer(grads)
        else:
            step(x, y)
    print("ends", json.dumps(TRUTH))


main()
