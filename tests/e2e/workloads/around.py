"""A training that something interrupts: `around.py none|checkpoint|callback|eval|short|leak|late`."""

from __future__ import annotations

import sys
import time

import mindspore as ms
import parts
from mindspore import dataset as ds
from mindspore import nn
from mindspore.train import Callback, Model

WHO, EPOCHS, STEPS = sys.argv[1], 3, 60
PAUSE_S = 0.5
WIDE = 5000  # 60 ms of work in a step


class SlowSave(Callback):
    """Writes the weights to a slow place after each epoch."""

    def on_train_epoch_end(self, run_context):
        ms.save_checkpoint(Slow(run_context.original_args().train_network), "weights.ckpt")


class Slow(list):
    """Parameters that take their time to be read."""

    def __init__(self, network):
        super().__init__({"name": one.name, "data": one} for one in network.trainable_params())

    def __iter__(self):
        time.sleep(PAUSE_S)
        return super().__iter__()


class Watcher(Callback):
    """Looks at something for long, in some steps."""

    def on_train_step_end(self, run_context):
        if run_context.original_args().cur_step_num % STEPS == STEPS // 2:
            time.sleep(PAUSE_S)


class Keeps(Callback):
    """Keeps 1 MiB of each step, and gives time to notice it."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def on_train_step_end(self, _run_context):
        self.kept.append(b"1" * (1 << 20))
        time.sleep(0.06)


class Narrow(nn.Cell):
    """Many layers, so that compiling takes longer than all its steps."""

    def __init__(self):
        super().__init__()
        layers = [nn.SequentialCell(nn.Dense(8, 8), nn.ReLU(), nn.LayerNorm((8,))) for _ in range(12)]
        self.layers = nn.SequentialCell(*layers, nn.Dense(8, 2))

    def construct(self, x):
        return self.layers(x)


def slow_row(x):
    """A row of the evaluation's dataset."""
    time.sleep(PAUSE_S / 5)
    return x


def short_rows():
    source = ds.GeneratorDataset(parts.Rows(20), ["x", "y"], shuffle=False, num_samples=20 * parts.BATCH - 1)
    return source.batch(parts.BATCH)


def train():
    net = Narrow() if WHO == "short" else parts.network()
    model = Model(
        net, parts.loss_function(), nn.Momentum(net.trainable_params(), 0.01, 0.9), metrics={"accuracy": nn.Accuracy()}
    )
    callback = {"checkpoint": SlowSave, "callback": Watcher, "leak": Keeps}.get(WHO)
    if WHO == "eval":
        model.fit(EPOCHS, parts.rows(STEPS), parts.rows(5).map(slow_row, "x", num_parallel_workers=1), dataset_sink_mode=False,
                  valid_dataset_sink_mode=False)  # fmt: skip
    else:
        rows = short_rows() if WHO == "short" else parts.rows(STEPS)
        model.train(EPOCHS, rows, callbacks=callback and [callback()], dataset_sink_mode=False)


def train_by_hand():
    """Each step is work of the network, and the training says when half of them are done."""
    net = nn.SequentialCell(nn.Dense(8, WIDE), nn.ReLU(), nn.Dense(WIDE, WIDE), nn.ReLU(), nn.Dense(WIDE, 2))
    loss = parts.loss_function()
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    step = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
    for number, (x, y) in enumerate(parts.rows(EPOCHS * STEPS).create_tuple_iterator(num_epochs=1)):
        found, gradients = step(x, y)
        optimizer(gradients)
        found.asnumpy()
        if number == EPOCHS * STEPS // 2:
            print("half", flush=True)


ms.set_context(mode=ms.PYNATIVE_MODE if WHO == "late" else ms.GRAPH_MODE, device_target="CPU")
train_by_hand() if WHO == "late" else train()
