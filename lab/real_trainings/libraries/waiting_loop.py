"""PyNative loops beside a Python source and a Python map. `python waiting_loop.py third|seldom STEPS`

third: the map of a batch computes longer than the loop's step, which waits for about a third of the time.
seldom: the map keeps 0.4 of a core busy, and the loop nearly never waits.
"""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
from mindspore import dataset as ds
from mindspore import nn
from truth import mark, tell

BATCH = 16
WIDTH = 256
MAPPED = {"third": 75, "seldom": 9}  # times that the map filters a row
HIDDEN = {"third": 512, "seldom": 1024}


def filtered(times):
    def filter_row(row):
        for _ in range(times):
            row = np.sqrt(np.abs(np.roll(row, 1) - row) + 1.0)
        return row.astype(np.float32)

    return filter_row


def pipeline(kind, steps):
    rows = np.random.default_rng(1).random((steps * BATCH, WIDTH), np.float32)
    labels = np.zeros(steps * BATCH, np.int32)
    data = ds.NumpySlicesDataset((rows, labels), ["row", "label"], shuffle=False)
    return data.map(filtered(MAPPED[kind]), ["row"], num_parallel_workers=1).batch(BATCH)


def main(kind, steps):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    hidden = HIDDEN[kind]
    net = nn.SequentialCell(
        nn.Dense(WIDTH, hidden), nn.ReLU(), nn.Dense(hidden, hidden), nn.ReLU(), nn.Dense(hidden, 4)
    )
    loss = nn.CrossEntropyLoss()
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    gradients = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
    for row, label in pipeline(kind, steps).create_tuple_iterator(num_epochs=1):
        mark("train", 0)
        value, found = gradients(row, label)
        optimizer(found)
        value.asnumpy()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
    tell()
