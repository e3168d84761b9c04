"""Trainings that are fed by no dataset of MindSpore's: `python iterables.py KIND STEPS`; waits 50 ms for each batch."""

from __future__ import annotations

import sys
import time

import mindspore as ms
import numpy as np
import parts

KIND, STEPS = sys.argv[1], int(sys.argv[2])


def make(step):
    time.sleep(0.05)
    return np.full((4, 8), step % 5, np.float32), np.zeros(4, np.int32)


def batches():
    for step in range(STEPS):
        yield make(step)


class Loader:
    def __init__(self):
        self.rows = batches()

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.rows)


def train():
    parts.pynative()
    trainer, rows = parts.Trainer(), batches()
    if KIND == "function":
        for step in range(STEPS):
            trainer.step(*map(ms.Tensor, make(step)))
    elif KIND == "next":
        for _ in range(STEPS):
            x, y = next(rows)
            trainer.step(ms.Tensor(x), ms.Tensor(y))
    else:
        for x, y in Loader() if KIND == "own" else rows:
            trainer.step(ms.Tensor(x), ms.Tensor(y))


train()
