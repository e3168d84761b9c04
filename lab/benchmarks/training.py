"""A training that measures itself, for the overhead benchmark: prints one JSON line. Knows no pipeprof.

python training.py --kind cnn|tiny|input --steps N
"""

import argparse
import json
import resource
import statistics
import time

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import GeneratorDataset
from mindspore.train import Callback, Model

SKIP = 20


class Rows:
    def __init__(self, count, shape):
        self.count = count
        self.picture = np.random.default_rng(0).random(shape, dtype=np.float32)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.picture, np.array(index % 2, np.int32)


class Net(nn.Cell):
    def __init__(self, channels, width, pixels):
        super().__init__()
        self.conv = nn.Conv2d(channels, width, 3, stride=2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.dense = nn.Dense(width * (pixels // 2) ** 2, 2)

    def construct(self, picture):
        return self.dense(self.flatten(self.relu(self.conv(picture))))


class Clock(Callback):
    def __init__(self):
        self.ends = []
        self.marks = {}

    def on_train_step_end(self, run_context):  # noqa: ARG002 - MindSpore passes it by this name
        self.ends.append(time.perf_counter_ns())
        if len(self.ends) in (SKIP, self.marks.get("half")):
            self.marks[len(self.ends)] = (time.perf_counter(), time.process_time(), peak_rss())

    def on_train_end(self, run_context):  # noqa: ARG002
        self.marks["end"] = (time.perf_counter(), time.process_time(), peak_rss())


def peak_rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def wait_for_disk(picture):
    time.sleep(0.003)
    return picture


KINDS = {
    "cnn": {"batch": 32, "channels": 3, "pixels": 64, "width": 20, "slow": False},
    "tiny": {"batch": 16, "channels": 1, "pixels": 16, "width": 8, "slow": False},
    "input": {"batch": 8, "channels": 1, "pixels": 16, "width": 4, "slow": True},
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--steps", type=int, required=True)
    options = parser.parse_args()
    kind = KINDS[options.kind]
    ms.set_context(mode=ms.GRAPH_MODE)
    shape = (kind["channels"], kind["pixels"], kind["pixels"])
    data = GeneratorDataset(Rows(options.steps * kind["batch"], shape), ["x", "y"], shuffle=False)
    if kind["slow"]:
        data = data.map(wait_for_disk, input_columns=["x"], num_parallel_workers=1)
    data = data.batch(kind["batch"], num_parallel_workers=1)
    net = Net(kind["channels"], kind["width"], kind["pixels"])
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    clock = Clock()
    clock.marks["half"] = options.steps // 2
    model.train(1, data, callbacks=[clock], dataset_sink_mode=False)
    times = [later - earlier for earlier, later in zip(clock.ends[SKIP:], clock.ends[SKIP + 1 :], strict=False)]
    began, ended = clock.marks[SKIP], clock.marks["end"]
    half = clock.marks[options.steps // 2]
    print(
        json.dumps(
            {
                "steps": len(clock.ends),
                "median_ns": statistics.median(times),
                "mean_ns": statistics.fmean(times),
                "cores": (ended[1] - began[1]) / (ended[0] - began[0]),
                "seconds": ended[0] - began[0],
                "rss_half": half[2],
                "rss_end": ended[2],
                "rss_growth": ended[2] - half[2],
            }
        )
    )


if __name__ == "__main__":
    main()
