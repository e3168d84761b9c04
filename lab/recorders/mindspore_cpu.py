"""A small training under MindSpore's CPU profiler: `mindspore_cpu.py graph_10steps|graph_20steps|pynative_10steps|ranks FOLDER`.

Each rank writes its FRAMEWORK files into FOLDER/rank<N>, or into FOLDER where there is one rank.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.communication import init
from mindspore.profiler import ProfilerActivity, profile, schedule
from mindspore.profiler import tensorboard_trace_handler as handler

STEPS = {"graph_10steps": 13, "graph_20steps": 20, "pynative_10steps": 10, "ranks": 20}


def network():
    return nn.SequentialCell(
        nn.Conv2d(1, 4, 3),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.Flatten(),
        nn.Dense(4 * 8 * 8, 16),
        nn.ReLU(),
        nn.Dense(16, 4),
    )


def main():
    name, folder = sys.argv[1], Path(sys.argv[2])
    ranks = name == "ranks"
    ms.set_context(mode=ms.PYNATIVE_MODE if "pynative" in name else ms.GRAPH_MODE, device_target="CPU")
    if ranks:
        init()
        folder /= f"rank{os.environ['MS_NODE_ID']}" if "MS_NODE_ID" in os.environ else f"rank{os.environ['RANK_ID']}"
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    net = network()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer).set_train()
    images = ms.Tensor(np.ones((8, 1, 16, 16), np.float32))
    labels = ms.Tensor(np.zeros(8, np.int32))
    skipped = STEPS[name] - 10 if name == "graph_10steps" else 0
    active = STEPS[name] - skipped
    plan = {"schedule": schedule(wait=0, warmup=0, active=active, repeat=1, skip_first=skipped)} if skipped else {}
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=not ranks,
        on_trace_ready=handler(str(folder)), **plan,
    ) as profiler:  # fmt: skip
        for _ in range(STEPS[name]):
            step(images, labels).asnumpy()
            profiler.step()


if __name__ == "__main__":
    main()
