"""ResNet-50 on one image of 224 x 224, trained for a few steps: `resnet50.py graph` or `resnet50.py pynative`."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # width, blocks, stride of the first
STEPS = 4


def convolution(channels, out, kernel, stride):
    return nn.SequentialCell(
        nn.Conv2d(channels, out, kernel, stride, pad_mode="pad", padding=kernel // 2), nn.BatchNorm2d(out)
    )


class Block(nn.Cell):
    """1 x 1, 3 x 3 with the stride, 1 x 1, beside a shortcut."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.one = convolution(channels, width, 1, 1)
        self.two = convolution(width, width, 3, stride)
        self.three = convolution(width, 4 * width, 1, 1)
        self.shortcut = nn.Identity()
        if stride > 1 or channels != 4 * width:
            self.shortcut = convolution(channels, 4 * width, 1, stride)
        self.relu = nn.ReLU()

    def construct(self, x):
        found = self.three(self.relu(self.two(self.relu(self.one(x)))))
        return self.relu(found + self.shortcut(x))


class ResNet50(nn.Cell):
    """53 convolutions and a classifier."""

    def __init__(self):
        super().__init__()
        blocks, channels = [], 64
        for width, count, stride in STAGES:
            for index in range(count):
                blocks.append(Block(channels, width, stride if index == 0 else 1))
                channels = 4 * width
        self.stem = nn.SequentialCell(
            convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")
        )
        self.blocks = nn.SequentialCell(blocks)
        self.head = nn.Dense(channels, 1000)

    def construct(self, x):
        return self.head(ops.mean(self.blocks(self.stem(x)), (2, 3)))


def main():
    ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
    network = ResNet50()
    network.set_train()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(network.trainable_params(), 0.001, 0.9)
    image = ms.Tensor(np.ones((1, 3, 224, 224), np.float32))
    label = ms.Tensor(np.zeros(1, np.int32))
    if sys.argv[1] == "graph":
        step = nn.TrainOneStepCell(nn.WithLossCell(network, loss), optimizer)
        step.set_train()
        for _ in range(STEPS):
            step(image, label)
        return
    gradients = ms.value_and_grad(lambda x, y: loss(network(x), y), None, optimizer.parameters)
    for _ in range(STEPS):
        _, found = gradients(image, label)
        optimizer(found)


if __name__ == "__main__":
    main()
