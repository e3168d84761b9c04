"""PyNative loops that time their own sections: `python sections.py` runs each, and ends with one line of the times.

The truth is a list of [loop, nanoseconds by section of each step]. The sections are waited for, so that what PyNative
launches in one has finished in it.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict

import mindspore as ms
import numpy as np
import parts
from mindspore import Tensor, nn, ops
from mindspore import dataset as ds
from mindspore.common.api import _pynative_executor

BATCH, WIDTH, STEPS = 256, 384, 8
SMALL, LARGE = Tensor(0.001, ms.float32), Tensor(0.999, ms.float32)
TRUTH = {}
LOOPS = []


def loop(function):
    LOOPS.append(function)
    return function


class Clock:
    """Adds up the time since it was last asked, section by section, of each step."""

    def __init__(self, name):
        self.steps = TRUTH[name] = []
        self.last = time.monotonic_ns()

    def begin(self):
        """A batch was fetched."""
        _pynative_executor.sync()
        self.steps.append(defaultdict(int))
        self.last = time.monotonic_ns()

    def end(self, section):
        _pynative_executor.sync()
        now = time.monotonic_ns()
        self.steps[-1][section] += now - self.last
        self.last = now


class Network(nn.Cell):
    def __init__(self, layers=3):
        super().__init__()
        self.layers = nn.CellList([nn.Dense(WIDTH, WIDTH, activation="relu") for _ in range(layers)])
        self.head = nn.Dense(WIDTH, 4)

    def construct(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Discriminator(Network):
    pass


def batches():
    source = ds.NumpySlicesDataset({"x": np.ones((STEPS * BATCH, WIDTH), np.float32)}, shuffle=False)
    for (x,) in source.batch(BATCH).create_tuple_iterator(num_epochs=1):
        yield x


class Trainer:
    def __init__(self, clock, network, optimizer=nn.Adam):
        self.clock, self.network = clock, network
        self.optimizer = optimizer(network.trainable_params(), 0.001)
        self.gradients = ms.value_and_grad(self.forward, None, self.optimizer.parameters)

    def forward(self, x):
        loss = ops.square(self.network(x)).mean()
        self.clock.end("forward")
        return loss

    def backward(self, x):
        gradients = self.gradients(x)[1]
        self.clock.end("backward")
        return gradients

    def update(self, gradients):
        self.optimizer(gradients)
        self.clock.end("optimizer")


def average(network, weights, times=1):
    for _ in range(times):
        for parameter, weight in zip(network.trainable_params(), weights, strict=True):
            weight.set_data(ops.add(ops.mul(weight, LARGE), ops.mul(parameter, SMALL)))


def copies(network):
    return [ms.Parameter(parameter.copy(), name=f"{parameter.name}.mean") for parameter in network.trainable_params()]


@loop
def plain(clock):
    trainer = Trainer(clock, Network())
    for x in batches():
        clock.begin()
        trainer.update(trainer.backward(x))


@loop
def weights_averaged(clock):
    """As plain, and an average of the weights behind the update; the network runs again on it for a metric."""
    trainer = Trainer(clock, Network())
    weights, judge = copies(trainer.network), Network()
    for x in batches():
        clock.begin()
        mixed = ops.add(ops.mul(x, LARGE), ops.mul(ops.flip(x, (0,)), SMALL))
        trainer.update(trainer.backward(mixed))
        average(trainer.network, weights)
        judge(x)
        trainer.network(x)
        clock.end("after")


@loop
def clipped(clock):
    trainer = Trainer(clock, Network())
    for x in batches():
        clock.begin()
        gradients = trainer.backward(x)
        for _ in range(2):
            norm = ops.sqrt(sum(ops.square(gradient).sum() for gradient in gradients))
            gradients = [ops.div(gradient, ops.maximum(norm, LARGE)) for gradient in gradients]
        clock.end("gradients")
        trainer.update(tuple(gradients))


@loop
def accumulated(clock):
    trainer = Trainer(clock, Network())
    for x in batches():
        clock.begin()
        total = None
        for part in ops.split(x, BATCH // 2):
            gradients = trainer.backward(part)
            total = gradients if total is None else [ops.add(a, b) for a, b in zip(total, gradients, strict=True)]
            clock.end("gradients")
        trainer.update(tuple(total))


@loop
def two_networks(clock):
    generator, critic = Network(1), Discriminator(2)
    real = Trainer(clock, critic)

    class Judged(Trainer):
        def forward(self, x):
            loss = ops.square(critic(ops.concat((self.network(x), x), 1)[:, :WIDTH])).mean()
            clock.end("forward")
            return loss

    fake = Judged(clock, generator)
    for x in batches():
        clock.begin()
        real.update(real.backward(ops.relu(x)))
        fake.update(fake.backward(x))


def main():
    parts.pynative()
    for function in LOOPS:
        function(Clock(function.__name__))
    print("truth " + json.dumps(list(TRUTH.items())), flush=True)


if __name__ == "__main__":
    main()
