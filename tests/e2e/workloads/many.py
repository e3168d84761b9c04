"""Many small trainings in one process, of every kind that has troubled the dataset's recorder: `python many.py COUNT SEED`."""

from __future__ import annotations

import gc
import random
import sys
import threading
import time

import parts
from mindspore import dataset as ds

COUNT, SEED = int(sys.argv[1]), int(sys.argv[2])
choose = random.Random(SEED)  # noqa: S311 - a choice of loops, not a secret


def slowly(x):
    time.sleep(0.0005)
    return x


def in_processes(steps):
    source = ds.GeneratorDataset(parts.Rows(steps), ["x", "y"], shuffle=False)
    return source.map(slowly, ["x"], num_parallel_workers=2, python_multiprocessing=True).batch(parts.BATCH)


def in_threads(steps):
    source = ds.GeneratorDataset(parts.Rows(steps), ["x", "y"], num_parallel_workers=2, python_multiprocessing=False)
    return source.map(slowly, ["x"], num_parallel_workers=2).batch(parts.BATCH)


def train(trainer, data, most):
    for number, (x, y) in enumerate(data.create_tuple_iterator(num_epochs=choose.choice((-1, 1, 3)))):
        if number == most:
            break
        parts.mark()
        trainer.step(x, y)


def evaluate(trainer, data):
    for number, (x, y) in enumerate(data.create_tuple_iterator(num_epochs=1)):
        parts.mark("eval")
        trainer.forward(x, y).asnumpy()
        if number == 1 and choose.random() < 0.5:
            break


def one(trainer, number):
    steps = choose.randint(3, 12)
    make = in_processes if number % 8 == 7 else choose.choice((parts.rows, in_threads))
    data = make(steps)
    if choose.random() < 0.3:
        data.get_dataset_size()
        data.output_shapes()
    train(trainer, data, steps if choose.random() < 0.5 else choose.randint(2, steps))
    if choose.random() < 0.4:
        evaluate(trainer, parts.rows(3))
    if choose.random() < 0.2:
        kept = data.create_dict_iterator(num_epochs=1)
        next(kept)
        train(trainer, make(steps), 3)
        del kept
    if choose.random() < 0.2:
        gc.collect()


parts.pynative()
shared = parts.Trainer()
for training in range(COUNT):
    if training % 10 == 9:
        thread = threading.Thread(target=one, args=(shared, training))
        thread.start()
        thread.join()
    else:
        one(shared, training)
    print("done", training, flush=True)
parts.tell()
