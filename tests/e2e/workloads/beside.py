"""A training on one core, alone or beside other processes of its own: `beside.py none|summary|poll|workers|program|feeder|thread`."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import subprocess
import sys
import threading

import mindspore as ms
import numpy as np
import parts
from mindspore import dataset as ds
from mindspore import nn
from mindspore.train import Model, SummaryCollector

WHO = sys.argv[1]
STEPS = 400 if WHO == "feeder" else 1200
FORK = multiprocessing.get_context("fork")
MADE = FORK.Queue(8)


def poll(tasks):
    """What a writer does that asks its queue without a pause."""
    while True:
        with contextlib.suppress(queue.Empty):
            return tasks.get(block=False)


def count(ended):  # the thread
    """Python that computes all the time."""
    number = 0
    while not ended.is_set():
        number += sum(range(1000))


def feed(made):
    """What makes the rows for a source that only receives them."""
    source = parts.Rows(STEPS)
    for index in range(len(source)):
        x, y = source[index]
        for _ in range(2000):
            x = np.sqrt(x * x + 1.0)
        made.put((x.astype(np.float32), y))


class Received:
    """Rows that another process made."""

    def __len__(self):
        return STEPS * parts.BATCH

    def __getitem__(self, index):
        return MADE.get()


@contextlib.contextmanager
def helper():
    """The process beside the training, for as long as it lasts."""
    if WHO == "poll":
        tasks = FORK.Queue()
        writer = FORK.Process(target=poll, args=(tasks,))
        writer.start()  # the origin
        yield
        tasks.put(None)
        writer.join()
    elif WHO == "program":
        with subprocess.Popen([sys.executable, "-c", "while True: pass", "--spin"]) as program:  # the origin
            yield
            program.kill()
    elif WHO == "thread":
        ended = threading.Event()
        threading.Thread(target=count, args=(ended,)).start()
        yield
        ended.set()
    elif WHO == "feeder":
        feeder = FORK.Process(target=feed, args=(MADE,))
        feeder.start()
        yield
        feeder.join()
    else:
        yield


def scaled(x):
    """Work for a dataset worker process."""
    for _ in range(20 if WHO == "workers" else 1):
        x = np.sqrt(x * x + 1.0)
    return x.astype(np.float32)


def rows():
    source = Received() if WHO == "feeder" else parts.Rows(STEPS)
    source = ds.GeneratorDataset(source, ["x", "y"], shuffle=False)
    processes = {"python_multiprocessing": True, "num_parallel_workers": 2} if WHO == "workers" else {}
    return source.map(scaled, "x", **processes).batch(parts.BATCH)


def train():
    net = parts.network()
    model = Model(net, parts.loss_function(), nn.Momentum(net.trainable_params(), 0.01, 0.9))
    collectors = [SummaryCollector("summaries", collect_freq=100)] if WHO == "summary" else []
    model.train(1, rows(), callbacks=collectors, dataset_sink_mode=False)  # the summary's origin


os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # so that no core is idle, however many the machine has
ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
with helper():
    train()
