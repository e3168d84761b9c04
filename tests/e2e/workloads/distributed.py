"""Data-parallel training: `msrun ... distributed.py graph|jit|pynative STEPS`."""

from __future__ import annotations

import sys

import mindspore as ms
import parts
from mindspore import nn
from mindspore.communication import get_rank, init
from mindspore.train import Callback, Model

MODE, STEPS = sys.argv[1], int(sys.argv[2])


class Marks(Callback):
    def on_train_step_begin(self, run_context):
        parts.mark("train", run_context.original_args().cur_epoch_num - 1)


def by_model():
    net = parts.network()
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    model = Model(net, parts.loss_function(), optimizer)
    model.train(1, parts.rows(STEPS), callbacks=[Marks()], dataset_sink_mode=False)


def by_hand():
    trainer = parts.Trainer()
    reducer = nn.DistributedGradReducer(trainer.optimizer.parameters)

    def step(x, y):
        loss, gradients = trainer.gradients(x, y)
        trainer.optimizer(reducer(gradients))
        return loss

    step = ms.jit(step) if MODE == "jit" else step
    for x, y in parts.rows(STEPS).create_tuple_iterator(num_epochs=1):
        parts.mark("train", 0)
        step(x, y)


ms.set_context(mode=ms.GRAPH_MODE if MODE == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
init()
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
ms.set_seed(1)
if MODE == "graph":
    by_model()
else:
    by_hand()
print(f"rank {get_rank()} ", end="")
parts.tell()
