"""What a DataLoader hands out, in every way to use it: `python dataloaders.py mindspore|torch`.

Prints each batch, the random numbers of the workers and the messages of errors; ends with an error of a dataset.
"""

from __future__ import annotations

import random
import re
import sys
import time
import traceback

import loader_kinds
import numpy as np

LIBRARY = loader_kinds.of(sys.argv[1])
DataLoader = LIBRARY.DataLoader
ROWS = 24


class Numbers(LIBRARY.Dataset):
    """Rows with what the random numbers of their process are."""

    def __init__(self, wrong=-1):
        self.wrong = wrong

    def __getitem__(self, index):
        if index == self.wrong:
            time.sleep(0.5)  # an error overtakes batches that other workers have not made yet
            raise ValueError(f"row {index} is wrong")
        return np.full(8, index, np.float32), np.int32(index % 2), np.float64(np.random.random()), random.random()  # noqa: NPY002, S311

    def __len__(self):
        return ROWS


class AtOnce(Numbers):
    """All rows of a batch by one call, where the library knows that."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Stream(LIBRARY.IterableDataset):
    def __iter__(self):
        info = LIBRARY.get_worker_info()
        first, apart = (0, 1) if info is None else (info.id, info.num_workers)
        return ((np.full(8, index, np.float32), np.int32(index % 2)) for index in range(first, ROWS, apart))


def initialise(worker):
    np.random.seed(100 + worker)  # noqa: NPY002
    random.seed(worker)


def stack(rows):
    return [np.stack(column) for column in zip(*rows, strict=True)]


def seeded():
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    return LIBRARY.generator(5)


def shown(batch):
    return [np.asarray(LIBRARY.plain(part)).round(6).tolist() for part in batch]


def run(name, make, epochs=1, most=None):
    loader = make()
    for epoch in range(epochs):
        for number, batch in enumerate(loader):
            print(name, epoch, number, shown(batch))
            if number + 1 == most:
                break


def said(error):
    return re.sub(r"pid: \d+|line \d+", "", str(error))


def fails(name, make):
    try:
        run(name, make)
    except Exception as error:  # noqa: BLE001
        files = [entry.filename.rpartition("/")[2] for entry in traceback.extract_tb(error.__traceback__)]
        print(name, type(error).__name__, said(error), [file for file in files if file != "loaders.py"])


def train():
    step = LIBRARY.trainer()
    for x, y in DataLoader(Stream(), batch_size=4, collate_fn=stack):
        print("loss", step(x, y))


if __name__ == "__main__":
    train()
    fixed = {"batch_size": 4, "collate_fn": stack}
    run("single", lambda: DataLoader(Numbers(), shuffle=True, generator=seeded(), **fixed), epochs=2)
    run("default", lambda: DataLoader(Stream(), batch_size=5, drop_last=True))
    run("unbatched", lambda: DataLoader(Stream(), batch_size=None))
    run("by_batch", lambda: DataLoader(Numbers(), batch_sampler=[[3, 1], [5]], collate_fn=stack, generator=seeded()))
    run("at_once", lambda: DataLoader(AtOnce(), generator=seeded(), **fixed))
    apart = {"num_workers": 2, "generator": seeded(), **fixed}
    run("workers", lambda: DataLoader(Numbers(), worker_init_fn=initialise, **apart), epochs=2)
    run("seeds", lambda: DataLoader(Numbers(), **{**apart, "generator": seeded()}))
    run("persistent", lambda: DataLoader(Stream(), persistent_workers=True, prefetch_factor=1, **apart), epochs=3)
    run("left", lambda: DataLoader(Numbers(), worker_init_fn=initialise, **apart), most=2)
    run("spawned", lambda: DataLoader(Numbers(), multiprocessing_context="spawn", **apart))
    fails("wrong_alone", lambda: DataLoader(Numbers(5), generator=seeded(), **fixed))
    fails("wrong_apart", lambda: DataLoader(Numbers(5), **apart))
    fails("no_start", lambda: DataLoader(Numbers(), worker_init_fn=lambda worker: 1 / worker, **apart))
    run("wrong", lambda: DataLoader(Numbers(9), **apart))
