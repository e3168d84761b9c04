"""Pipelines whose Python runs in worker processes: `python workers.py KIND STEPS [spawn | kill | fail]`.

The slow function itself counts its calls, wall and CPU time in memory of its own, printed as `truth JSON`. The rows that
come out, their order, and what a worker finds around it are printed, too.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time

import numpy as np
from mindspore import dataset as ds

KIND, STEPS = sys.argv[1], int(sys.argv[2])
HOW = sys.argv[3] if len(sys.argv) > 3 else ""
ROWS = 4
COMPUTE_S, WAIT_S = 0.02, 0.08
FAILING = ROWS * 5

calls = multiprocessing.Array("q", 3)  # number, wall, CPU; ns


def counted(function):
    def count(*args):
        begin, cpu = time.monotonic_ns(), time.process_time_ns()
        try:
            return function(*args)
        finally:
            figures = (1, time.monotonic_ns() - begin, time.process_time_ns() - cpu)
            with calls.get_lock():
                calls[:] = [total + figure for total, figure in zip(calls[:], figures, strict=True)]

    count.__name__ = function.__name__
    return count


def compute():
    end = time.thread_time() + COMPUTE_S
    while time.thread_time() < end:
        pass


def check(number):
    if HOW == "fail" and number >= FAILING:
        raise ValueError("broken on purpose")


class Rows:
    def __len__(self):
        return STEPS * ROWS

    def __getitem__(self, index):
        return (np.full(8, index, np.float32),)


class SlowRows(Rows):
    @counted
    def __getitem__(self, index):
        compute()
        check(index)
        return (np.full(8, index, np.float32),)


@counted
def computing(x):
    compute()
    check(x[0])
    return x


@counted
def waiting(columns, info):
    time.sleep(WAIT_S)
    check(columns[0][0])
    return (columns,)


def short(columns, info):
    time.sleep(0.002)
    return (columns,)


def alone(x):
    """Computes; a spawned worker knows nothing of this module."""
    import time

    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    return x


def about(x):
    """What a worker finds around it."""
    facts = (multiprocessing.current_process().name[:-1], computing.__name__, threading.active_count())
    return np.array(str(facts))


def pipeline():
    source = SlowRows() if KIND == "source" else Rows()
    data = ds.GeneratorDataset(
        source, ["x"], shuffle=False, num_parallel_workers=2 if KIND == "source" else 1, python_multiprocessing=True
    )
    if KIND == "about":
        return data.map(about, ["x"], python_multiprocessing=True, num_parallel_workers=2).batch(ROWS)
    if KIND == "map":
        function, workers = (alone, 1) if HOW == "spawn" else (computing, 2)
        data = data.map(function, ["x"], python_multiprocessing=True, num_parallel_workers=workers)
    if KIND == "source" or HOW == "spawn":
        return data.batch(ROWS, num_parallel_workers=1)
    function = waiting if KIND == "batch" else short
    return data.batch(ROWS, per_batch_map=function, python_multiprocessing=True, num_parallel_workers=2)


def main():
    if HOW == "spawn":
        ds.config.set_multiprocessing_start_method("spawn")
    if KIND != "source":  # whose rows then would come at the pace of its master's sleeps
        ds.config.set_prefetch_size(2)  # so that little is made in advance
    found = []
    try:
        for number, (x,) in enumerate(pipeline().create_tuple_iterator(num_epochs=1, output_numpy=True)):
            found.append(x[:, 0].tolist() if x.ndim > 1 else x.tolist())
            if HOW == "kill" and number == STEPS // 2:
                os.kill(os.getpid(), signal.SIGKILL)
    except RuntimeError as error:
        print("error", str(error).partition("C++ Call Stack")[0])
    print("rows", json.dumps(found))
    print("truth", json.dumps(calls[:]))


if __name__ == "__main__":
    main()
