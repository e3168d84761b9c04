"""Profile `Model.train` with a callback, and nothing else changed: `python examples/api_callback.py`."""

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import GeneratorDataset
from mindspore.train import Model

import pipeprof


class Rows:
    def __len__(self):
        return 320

    def __getitem__(self, index):
        return np.full((1, 16, 16), index % 5, np.float32), np.array(index % 2, np.int32)


def main():
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.SequentialCell(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Dense(8 * 64, 2))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    data = GeneratorDataset(Rows(), ["picture", "label"]).batch(16)

    callback = pipeprof.ProfileCallback(out="profiled-model", profile_memory=True, force=True)
    model.train(2, data, callbacks=[callback], dataset_sink_mode=False)

    run = callback.profile.run
    print(run.step.groupby(["epoch", "kind"]).size())
    print(run.ask("op/by_type").head())
    print(f"peak of the memory pool: {run.memory.allocated_bytes[run.memory.device == 'CPU'].max()} bytes")


if __name__ == "__main__":
    main()
