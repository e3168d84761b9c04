"""The training that `pipeprof demo` profiles: a small CNN on synthetic pictures. An ordinary script; knows no pipeprof.

python -m pipeprof.experiment.workload --slow map --steps 120
"""

from __future__ import annotations

import argparse
import time

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.communication import init
from mindspore.dataset import GeneratorDataset, vision
from mindspore.train import Callback, Model

SIZE = 32
FEWEST_STEPS = 30  # the queues begin full or empty: the first steps say little
WAIT_MS = 5.0  # the usual wait for the storage


class Pictures:
    """Two classes of pictures: bright on the left, or bright on the right."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng(index)
        label = index % 2
        picture = random.integers(0, 160, (SIZE, SIZE, 3), dtype=np.uint8)
        half = slice(0, SIZE // 2) if label == 0 else slice(SIZE // 2, SIZE)
        picture[:, half] += np.uint8(90)
        return picture, np.array(label, np.int32)


class Storage:
    """What takes its time, as a network disk does."""

    wait_s = WAIT_MS / 1000


def read_mask() -> np.ndarray:
    """A mask for the pictures, from the storage."""
    time.sleep(Storage.wait_s)
    return np.ones((SIZE, SIZE, 1), np.uint8)


def mask_from_storage(picture: np.ndarray) -> np.ndarray:
    """The planted bottleneck: reads the same mask again for every picture."""
    return picture * read_mask()


class MaskFromMemory:
    """The fix: reads the mask once."""

    def __init__(self) -> None:
        self.mask = read_mask()

    def __call__(self, picture: np.ndarray) -> np.ndarray:
        """The masked picture."""
        return picture * self.mask


class Net(nn.Cell):
    """Two convolutions and a dense layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, stride=2)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.dense = nn.Dense(2 * width * (SIZE // 4) ** 2, 2)

    def construct(self, picture: ms.Tensor) -> ms.Tensor:
        """Logits, shape (batch, 2)."""
        features = self.relu(self.conv1(picture))
        features = self.relu(self.conv2(features))
        return self.dense(self.flatten(features))


class StopAfter(Callback):
    """Ends the training when its time is over, and counts the steps."""

    def __init__(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds
        self.steps = 0

    def on_train_step_end(self, run_context: ms.train.RunContext) -> None:
        """Count; stop when it is too late and there is something to compare."""
        self.steps += 1
        if self.steps >= FEWEST_STEPS and time.monotonic() > self.deadline:
            run_context.request_stop()


def make_dataset(count: int, batch: int, slow: str) -> GeneratorDataset:
    """Pictures -> mask -> normalize, channels first -> batch."""
    data = GeneratorDataset(Pictures(count), ["picture", "label"], shuffle=False)
    mask = mask_from_storage if slow == "map" else MaskFromMemory()
    data = data.map(mask, input_columns=["picture"], num_parallel_workers=1)
    normalize = [vision.Rescale(1 / 64.0, -2.0), vision.HWC2CHW()]
    data = data.map(normalize, input_columns=["picture"], num_parallel_workers=1)
    return data.batch(batch, num_parallel_workers=1)


def main() -> None:
    """Train and print how many steps were made."""
    parser = argparse.ArgumentParser(description="A small training on synthetic pictures.")
    parser.add_argument("--slow", choices=["map", "none"], default="none")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--wait-ms", type=float, default=WAIT_MS, help="of the storage, for each picture")
    parser.add_argument("--parallel", action="store_true", help="one rank of a data-parallel training, under msrun")
    options = parser.parse_args()
    Storage.wait_s = options.wait_ms / 1000
    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE)
    if options.parallel:
        init()
        ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    net = Net(options.width)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    data = make_dataset(options.steps * options.batch, options.batch, options.slow)
    stop = StopAfter(options.seconds)
    model.train(1, data, callbacks=[stop], dataset_sink_mode=False)
    print(f"trained {stop.steps} steps")


if __name__ == "__main__":
    main()
