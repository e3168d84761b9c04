"""A profiled test beside a benchmark: before and after a change, three executions of

    pytest --pipeprof-add examples/api_pytest.py

each with a `.pipeprof` of its own (`mv .pipeprof before` in between), then

    pipeprof compare before/TEST/run .pipeprof/TEST/run              # which part of the loop changed
    pipeprof compare before/TEST/benchmark .pipeprof/TEST/benchmark  # what pytest-benchmark measured
"""

# ruff: noqa: S101 - tests assert

import numpy as np
import pytest
from mindspore.dataset import GeneratorDataset


class Rows:
    def __len__(self):
        return 256

    def __getitem__(self, index):
        return (np.full((1, 16, 16), index % 5, np.float32),)


def scaled(picture):
    return picture / np.float32(255)


def epoch():
    data = GeneratorDataset(Rows(), ["picture"]).map(scaled, ["picture"]).batch(16)
    return sum(1 for _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True))


@pytest.mark.pipeprof
def test_dataset_loop():
    assert epoch() == 16


def test_dataset_loop_timed(benchmark, pipeprof_run):
    assert benchmark.pedantic(epoch, rounds=3) == 16  # timed without the profiler
    with pipeprof_run():
        epoch()
