"""A short real MindSpore training whose map is plain Python, as a tokenizer is; prints nothing.

python lab/gate/real_python.py WORK    so many words are worked off for each row
"""

import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn

ROWS, BATCH, WIDTH = 160, 16, 64


class Rows:
    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return np.full(WIDTH, index, np.float32), np.int32(index % 10)


def tokenize(row):
    number = int(row[0])
    for word in range(int(float(sys.argv[1]))):
        number = (number * 31 + word) % 1009
    return row + np.float32(number)


def main():
    ms.set_seed(1)
    data = ds.GeneratorDataset(Rows(), ["x", "y"], shuffle=False).map(tokenize, ["x"]).batch(BATCH)
    net = nn.SequentialCell(nn.Dense(WIDTH, 128), nn.ReLU(), nn.Dense(128, 10))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ms.train.Model(net, loss, nn.Momentum(net.trainable_params(), 0.001, 0.9))
    model.train(1, data, dataset_sink_mode=False)


if __name__ == "__main__":
    main()
