"""LeNet on MNIST's files, as MindSpore's own samples train it.

`python lenet_training.py model|sink|summary|pynative|jit`
"""

from __future__ import annotations

import sys

import mindspore as ms
import written
from mindspore import dataset as ds
from mindspore import dtype, nn
from mindspore.common.initializer import Normal
from mindspore.dataset import transforms, vision
from mindspore.train import (
    Accuracy,
    CheckpointConfig,
    LossMonitor,
    Model,
    ModelCheckpoint,
    SummaryCollector,
    TimeMonitor,
)
from truth import EPOCHS, Marks, mark, tell

BATCH = 32
ROWS = 1280


class LeNet5(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1 = nn.Dense(400, 120, weight_init=Normal(0.02))
        self.fc2 = nn.Dense(120, 84, weight_init=Normal(0.02))
        self.fc3 = nn.Dense(84, 10, weight_init=Normal(0.02))
        self.relu, self.flatten = nn.ReLU(), nn.Flatten()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.flatten(self.pool(self.relu(self.conv2(x))))
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


def digits(path, rows=ROWS):
    path.mkdir()
    data = ds.MnistDataset(written.mnist(path, rows), usage="train")
    data = data.map(transforms.TypeCast(dtype.int32), "label")
    pictures = [vision.Resize((32, 32)), vision.Rescale(1 / 255.0, 0), vision.HWC2CHW()]
    return data.map(pictures, "image").shuffle(1000).batch(BATCH, drop_remainder=True)


def parts():
    network = LeNet5()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return network, loss, nn.Momentum(network.trainable_params(), 0.01, 0.9)


def model(path):
    """`Model.fit` with the callbacks of every sample, and a validation after each epoch."""
    network, loss, optimizer = parts()
    keep = ModelCheckpoint("lenet", str(path / "ckpt"), CheckpointConfig(save_checkpoint_steps=20))
    Model(network, loss, optimizer, {"Accuracy": Accuracy()}).fit(
        EPOCHS, digits(path / "train"), digits(path / "check", 320), dataset_sink_mode=False,
        valid_dataset_sink_mode=False, callbacks=[LossMonitor(10), TimeMonitor(), keep, Marks()],
    )  # fmt: skip


def sink(path):
    network, loss, optimizer = parts()
    data = digits(path / "train")
    Model(network, loss, optimizer).train(EPOCHS, data, callbacks=[LossMonitor(), Marks()], dataset_sink_mode=True)


def summary(path):
    network, loss, optimizer = parts()
    collector = SummaryCollector(str(path / "summary"), collect_freq=10)
    data = digits(path / "train")
    Model(network, loss, optimizer).train(EPOCHS, data, callbacks=[collector, Marks()], dataset_sink_mode=False)


def looped(path, wrap):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    network, loss, optimizer = parts()

    def forward(x, y):
        return loss(network(x), y)

    gradients = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x, y):
        value, found = gradients(x, y)
        optimizer(found)
        return value

    step = wrap(step)
    data = digits(path / "train")
    for epoch in range(EPOCHS):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            mark("train", epoch)
            step(x, y)


def pynative(path):
    looped(path, lambda step: step)


def jit(path):
    looped(path, ms.jit)


if __name__ == "__main__":
    ms.set_context(mode=ms.GRAPH_MODE)
    with written.folder() as path:
        {"model": model, "sink": sink, "summary": summary, "pynative": pynative, "jit": jit}[sys.argv[1]](path)
    tell()
