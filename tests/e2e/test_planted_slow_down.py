"""The slow-down that `pipeprof qualify` plants makes the steps of a real training longer by its share."""

import os
from statistics import median

import pytest

from pipeprof.experiment.repetition import Bench
from pipeprof.read.spool.finish import open_run
from pipeprof.record import store

pytestmark = [pytest.mark.mindspore, pytest.mark.slow, pytest.mark.measures]

# The steps wait without using the CPU, so that other programs on the machine hardly change how long they take.
LOOP = """
import time

import numpy as np
from mindspore import dataset as ds


class Rows:
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return (np.full(3, index, np.float32),)


for _ in ds.GeneratorDataset(Rows(), ["x"], shuffle=False).create_tuple_iterator(num_epochs=1, output_numpy=True):
    time.sleep(0.2)
"""


@pytest.fixture
def step_time(pipeprof, monkeypatch):
    """`step_time(1.0)`: median of a run whose steps were told to take twice as long."""
    for name in os.environ.keys() - pipeprof.environment().keys():
        monkeypatch.delenv(name)
    (pipeprof.folder / "loop.py").write_text(LOOP)

    def record(share):
        out = pipeprof.out()
        Bench().run([pipeprof.python, "loop.py"], {}, pipeprof.folder, out, share)
        rows = store.read(open_run(out), "step").to_pylist()
        return median(row["end_ns"] - row["start_ns"] for row in rows if row["kind"] == "train")

    return record


def test_a_planted_slow_down_is_real(step_time):
    assert 1.6 < step_time(1.0) / step_time(None) < 2.4
