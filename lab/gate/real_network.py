"""A short real MindSpore training: a map that computes on each row, and a convolution network; prints nothing.

python lab/gate/real_network.py WORK    so many rounds of NumPy for each row
"""

import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn

ROWS, BATCH = 1600, 16


class Rows:
    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        return rng.random((3, 32, 32), np.float32), np.int32(index % 10)


def augment(row):
    for _ in range(int(float(sys.argv[1]))):
        row = np.sqrt(row * row + 1)
    return row


def main():
    ms.set_seed(1)
    data = ds.GeneratorDataset(Rows(), ["x", "y"], shuffle=False).map(augment, ["x"]).batch(BATCH)
    net = nn.SequentialCell(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(32 * 8 * 8, 10),
    )  # fmt: skip
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ms.train.Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    model.train(1, data, dataset_sink_mode=False)


if __name__ == "__main__":
    main()
