"""The three usual training loops, on a small or a large network, for a given time."""

import math
import time

import mindspore as ms
from mindspore import nn, ops
from mindspore.train import Callback, Model

EPOCHS = 1000
CLASSES = 10


class Flattened(nn.Cell):
    """Dense layers over pictures as they are: a step takes a few ms."""

    def __init__(self, shape, width):
        super().__init__()
        self.flatten = nn.Flatten()
        self.first = nn.Dense(math.prod(shape), width)
        self.relu = nn.ReLU()
        self.dense = nn.Dense(width, CLASSES)

    def construct(self, x):
        return self.dense(self.relu(self.first(self.flatten(x))))


class Convolved(nn.Cell):
    """A convolution over pictures: a step takes 25 ms and more on two cores."""

    def __init__(self, shape, width):
        super().__init__()
        self.first = nn.Conv2d(shape[0], width, 3, stride=2)
        self.relu = nn.ReLU()
        self.dense = nn.Dense(width, CLASSES)

    def construct(self, x):
        return self.dense(self.relu(self.first(x)).mean((2, 3)))


class Vectors(nn.Cell):
    """Dense layers over vectors of `length`."""

    def __init__(self, length, width, depth):
        super().__init__()
        self.first = nn.Dense(length, width)
        self.rest = nn.SequentialCell([nn.Dense(width, width) for _ in range(depth)])
        self.relu = nn.ReLU()
        self.dense = nn.Dense(width, CLASSES)

    def construct(self, x):
        return self.dense(self.rest(self.relu(self.first(x))))


class Tokens(nn.Cell):
    """Embeddings of numbered words, and dense layers over their mean."""

    def __init__(self, words, width, depth):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.rest = nn.SequentialCell([nn.Dense(width, width) for _ in range(depth)])
        self.dense = nn.Dense(width, CLASSES)

    def construct(self, x):
        return self.dense(self.rest(self.embedding(x)).mean(1))


def network(kind, size, *, heavy):
    """`kind`: pictures, vectors or tokens; `size`: (channels, height, width), length or number of words."""
    if kind == "pictures":
        return Convolved(size, 8) if heavy else Flattened(size, 32)
    if kind == "vectors":
        return Vectors(size, *((1024, 3) if heavy else (64, 1)))
    return Tokens(size, *((256, 4) if heavy else (32, 1)))


class Deadline(Callback):
    """Ends the training when its time is over, counted from the first step on."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
        self.until = None
        self.steps = 0

    def over(self):
        self.steps += 1
        self.until = self.until or time.monotonic() + self.seconds
        return time.monotonic() > self.until

    def on_train_step_end(self, run_context):
        if self.over():
            run_context.request_stop()


def run(loop, net, data, seconds, *, soft):
    """Train; returns the number of steps."""
    ms.set_context(mode=ms.GRAPH_MODE if loop == "model" else ms.PYNATIVE_MODE)
    loss = nn.CrossEntropyLoss() if soft else nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.001, 0.9)
    deadline = Deadline(seconds)
    if loop == "model":
        Model(net, loss, optimizer).train(EPOCHS, data, callbacks=[deadline], dataset_sink_mode=False)
    else:
        by_hand(step_of(net, loss, optimizer, compiled=loop == "jit"), data, deadline)
    return deadline.steps


def step_of(net, loss, optimizer, *, compiled):
    """One training step as a function, compiled or not."""

    def forward(x, y):
        return loss(net(x), y)

    gradients = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x, y):
        value, found = gradients(x, y)
        return ops.depend(value, optimizer(found))

    return ms.jit(step) if compiled else step


def by_hand(step, data, deadline):
    """A loop over all epochs of one iterator."""
    iterator = data.create_tuple_iterator(num_epochs=EPOCHS)
    for _ in range(EPOCHS):
        for x, y in iterator:
            step(x, y).asnumpy()
            if deadline.over():
                return
