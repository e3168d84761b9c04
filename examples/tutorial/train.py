"""Teaches a small network to tell two shapes apart: the training of docs/tutorial.md.

python train.py                      turns the pictures with the function below
python train.py --rotation built-in  turns them with MindSpore's own operation
"""

import argparse

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import GeneratorDataset, vision
from mindspore.train import LossMonitor, Model

SIZE = 48


class Shapes:
    """Grey pictures of 48 x 48 points: a disc (0) or a square (1) on a noisy ground."""

    def __init__(self, count):
        rows, columns = np.mgrid[:SIZE, :SIZE] - SIZE // 2
        self.masks = [rows**2 + columns**2 < 15**2, np.maximum(abs(rows), abs(columns)) < 13]
        self.noise = np.random.default_rng(0).integers(0, 120, (64, SIZE, SIZE), np.uint8)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        label = index % 2
        picture = self.noise[index % 64] + np.uint8(120) * self.masks[label].astype(np.uint8)
        return picture[:, :, None], np.array(label, np.int32)


def rotate(picture):
    """Turn a picture by a random angle, point by point."""
    angle = np.random.uniform(-0.5, 0.5)
    cosine, sine = np.cos(angle), np.sin(angle)
    middle = SIZE // 2
    turned = np.zeros_like(picture)
    for row in range(SIZE):
        for column in range(SIZE):
            y = int(cosine * (row - middle) - sine * (column - middle)) + middle
            x = int(sine * (row - middle) + cosine * (column - middle)) + middle
            if 0 <= y < SIZE and 0 <= x < SIZE:
                turned[row, column] = picture[y, x]
    return turned


def dataset(batches, rotation):
    data = GeneratorDataset(Shapes(batches * 16), ["picture", "label"], shuffle=True)
    turn = rotate if rotation == "own" else vision.RandomRotation(28.0)
    data = data.map(turn, ["picture"], num_parallel_workers=1)
    data = data.map([vision.Rescale(1 / 127.5, -1.0), vision.HWC2CHW()], ["picture"], num_parallel_workers=1)
    return data.batch(16, drop_remainder=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rotation", choices=["own", "built-in"], default="own")
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()
    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.SequentialCell(nn.Flatten(), nn.Dense(SIZE * SIZE, 256), nn.ReLU(), nn.Dense(256, 2))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    model.train(
        options.epochs,
        dataset(options.batches, options.rotation),
        callbacks=[LossMonitor(50)],
        dataset_sink_mode=False,
    )


if __name__ == "__main__":
    main()
