"""Data-parallel training in which the last rank comes late: `msrun ... late_rank.py FOLDER`.

It comes when FOLDER has a file `collective`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import mindspore as ms
import parts
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init

FOLDER = Path(sys.argv[1])
STEPS, LATE_STEP = 5, 3


def come_late():
    while not FOLDER.joinpath("collective").exists():
        time.sleep(0.01)


def main():
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(1)
    trainer = parts.Trainer()
    step = nn.TrainOneStepCell(nn.WithLossCell(trainer.net, trainer.loss), trainer.optimizer)
    for number, (x, y) in enumerate(parts.rows(STEPS).create_tuple_iterator(num_epochs=1)):
        if number == LATE_STEP and get_rank() == get_group_size() - 1:
            come_late()
        step(x, y).asnumpy()


main()
