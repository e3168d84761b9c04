"""Small pipelines under MindSpore's dataset AutoTune, which logs what it saw and changed: `python autotuned.py FOLDER`."""

import sys
import time
from pathlib import Path

import mindspore.dataset as ds
import numpy as np


class Source:
    def __getitem__(self, number):
        return np.zeros((4, 4), np.float32), np.array(number)

    def __len__(self):
        return 1600


def slow(value):
    time.sleep(0.002)
    return value


def same(value):
    return value


def run(first, second, batch_workers, wait):
    data = ds.GeneratorDataset(Source(), ["a", "b"], num_parallel_workers=1)
    data = data.map(first, ["a"], num_parallel_workers=1)
    data = data.rename(["a"], ["c"])
    data = data.map(second, ["c"], num_parallel_workers=1)
    data = data.batch(8, num_parallel_workers=batch_workers)
    for _ in data.create_tuple_iterator(num_epochs=1):
        time.sleep(wait)


ds.config.set_enable_autotune(True, str(Path(sys.argv[1]) / "tuned"))
ds.config.set_autotune_interval(60)
ds.config.set_monitor_sampling_interval(20)
ds.config.set_prefetch_size(16)
run(slow, same, 1, 0.0)
run(same, slow, 2, 0.0)
run(same, same, 1, 0.02)
