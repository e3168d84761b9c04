"""Trainings whose dataset graph is unusual.

`concat` joins two branches, `mindrecord` reads MindSpore's own files, `iterated` has a generator function.
"""

import sys
import tempfile
import time
from pathlib import Path

import mindspore.dataset as ds
import numpy as np
from mindspore.mindrecord import FileWriter


class Rows:
    def __init__(self, number):
        self.number = number

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        return (np.full(3, index, np.float32),)


def joined(_folder):
    """Batches of 8 from branches of 60 rows: one batch holds rows of both."""
    left, right = (ds.GeneratorDataset(Rows(60), ["x"], shuffle=False) for _ in range(2))
    return left.concat(right)


def stored(folder):
    path = str(folder / "rows.mindrecord")
    writer = FileWriter(path, 1)
    writer.add_schema({"x": {"type": "float32", "shape": [3]}}, "rows")
    writer.write_raw_data([{"x": np.full(3, number, np.float32)} for number in range(120)])
    writer.commit()
    return ds.MindDataset(path, ["x"], shuffle=False)


def slow_rows():
    """A row every 10 ms, which takes no CPU."""
    for number in range(120):
        time.sleep(0.01)
        yield (np.full(3, number, np.float32),)


def iterated(_folder):
    """MindSpore takes its rows one after the other, and starts no process for it."""
    return ds.GeneratorDataset(slow_rows, ["x"], shuffle=False, num_parallel_workers=2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        data = {"concat": joined, "mindrecord": stored, "iterated": iterated}[sys.argv[1]](Path(folder))
        steps = 0
        for (batch,) in data.batch(8).create_tuple_iterator(num_epochs=1, output_numpy=True):
            assert batch.shape == (8, 3)
            time.sleep(0.01)
            steps += 1
        print("steps", steps)


if __name__ == "__main__":
    main()
