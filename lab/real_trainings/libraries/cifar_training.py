"""CIFAR-10's files, two numpy lambdas for each row, `Model.train`: the most ordinary pipeline that is too slow.

`python cifar_training.py ROWS BATCH`
"""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
import written
from mindspore import dataset as ds
from mindspore import dtype, nn
from mindspore.dataset import transforms
from mindspore.train import LossMonitor, Model
from truth import EPOCHS, Marks, tell


def pipeline(path, rows, batch):
    data = ds.Cifar10Dataset(written.cifar10(path, rows), usage="train", num_samples=rows)
    data = data.map(lambda image: image.astype(np.float32) / 255.0, "image")
    data = data.map(lambda image: ((image - 0.5) / 0.25).transpose(2, 0, 1), "image")
    return data.map(transforms.TypeCast(dtype.int32), "label").batch(batch, drop_remainder=True)


def network():
    return nn.SequentialCell(nn.Flatten(), nn.Dense(3072, 64), nn.ReLU(), nn.Dense(64, 10))


def main(rows, batch):
    ms.set_context(mode=ms.GRAPH_MODE)
    net = network()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    with written.folder() as path:
        data = pipeline(path, rows, batch)
        model.train(EPOCHS, data, callbacks=[LossMonitor(20), Marks()], dataset_sink_mode=False)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
    tell()
