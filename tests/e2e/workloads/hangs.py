"""A training that hangs in one place after the other: `python hangs.py FOLDER`.

Each hang ends when FOLDER has a file of its name.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import dataset as ds
from mindspore import nn, ops
from mindspore.ops import constexpr

FOLDER = Path(sys.argv[1])
ROWS, STUCK_ROW = 40, 35


def hang(name):
    while not FOLDER.joinpath(name).exists():
        time.sleep(0.01)


def afterwards(name, action):
    """Another thread does it, when the hang shall end."""
    threading.Thread(target=lambda: (hang(name), action()), daemon=True).start()


class Source:
    def __init__(self, first=""):
        self.first = first

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        if index == 0 and self.first:
            hang(self.first)
        return (np.full(4, index, np.float32),)


def stuck_in_process(x):
    if x[0] == STUCK_ROW:
        hang("process")
    return x


def stuck_in_thread(x):
    if x[0] == STUCK_ROW:
        hang("thread")
    return x


@constexpr
def slowly_compiled(number):
    hang("compile")
    return number


class Net(nn.Cell):
    def construct(self, x):
        return ops.ReduceSum()(x * slowly_compiled(2))


def holding_a_lock():
    lock = threading.Lock()
    lock.acquire()
    afterwards("lock", lock.release)
    lock.acquire()


def reading_a_pipe():
    end, other = os.pipe()
    afterwards("pipe", lambda: os.write(other, b"x"))
    os.read(end, 1)


def holding_the_interpreter():
    """A call into C that keeps the interpreter's lock while it waits."""
    end = os.open(FOLDER / "gil", os.O_RDWR)  # a named pipe
    ctypes.PyDLL(None).read(end, ctypes.create_string_buffer(1), 1)


def rows(source, function, **options):
    data = ds.GeneratorDataset(source, ["x"], shuffle=False).map(function, ["x"], num_parallel_workers=1, **options)
    return data.batch(1, num_parallel_workers=1).create_tuple_iterator(num_epochs=1)


def with_processes():
    for (x,) in rows(Source(), stuck_in_process, python_multiprocessing=True):
        x.asnumpy()


def with_threads():
    net = Net()
    for number, (x,) in enumerate(rows(Source("first"), stuck_in_thread)):
        if number == 1:
            net(x)
        elif number == 4:
            hang("script")
        elif number == 5:
            holding_a_lock()
        elif number == 6:
            reading_a_pipe()
        elif number == 7:
            holding_the_interpreter()


if __name__ == "__main__":
    ds.config.set_prefetch_size(2)
    with_processes()
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    with_threads()
