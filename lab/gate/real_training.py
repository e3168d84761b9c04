"""A short real MindSpore data loop: a map that waits for each row, and a step that waits too; prints nothing.

python lab/gate/real_training.py MAP_MS
"""

import sys
import time

import mindspore.dataset as ds
import numpy as np


class Rows:
    def __len__(self):
        return 1600

    def __getitem__(self, index):
        return (np.full((8, 8), index, np.float32),)


def decode(row):
    time.sleep(float(sys.argv[1]) / 1000)
    return row


def main():
    data = ds.GeneratorDataset(Rows(), ["x"], shuffle=False).map(decode, ["x"]).batch(8)
    for _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        time.sleep(0.005)


if __name__ == "__main__":
    main()
