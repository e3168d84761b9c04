"""Writes numbered lines to stderr from every place that a training has: `python chatter.py PLACE`."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time

import parts
from mindspore import dataset as ds

PLACE, STEPS = sys.argv[1], 30
places = []


def say(who, number):
    os.write(2, f"{who} {number}\n".encode())


def map_row(x):
    if PLACE == "map":
        say("map", int(x[0]))
    if PLACE == "process":
        say("process", os.getpid())
    places.append((os.isatty(2), os.fstat(2).st_ino))
    time.sleep(0.001)
    return x


class NumberedRows(parts.Rows):
    def __getitem__(self, index):
        row = super().__getitem__(index)
        row[0][0] = index
        return row


def background(stop):
    number = 0
    while not stop.is_set():
        say("thread", number)
        number += 1
        time.sleep(0.002)
    print(f"thread {number}", flush=True)


def data():
    source = ds.GeneratorDataset(NumberedRows(STEPS), ["x", "y"], shuffle=False)
    workers = {"num_parallel_workers": 2, "python_multiprocessing": True} if PLACE == "process" else {}
    return source.map(map_row, ["x"], **workers).batch(parts.BATCH)


def main():
    parts.pynative()
    trainer, stop = parts.Trainer(), threading.Event()
    helper = threading.Thread(target=background, args=(stop,))
    if PLACE == "thread":
        helper.start()
    for number, (x, y) in enumerate(data().create_tuple_iterator(num_epochs=1)):
        trainer.step(x, y).asnumpy()
        if PLACE == "main":
            say("main", number)
            logging.getLogger("chatter").warning("logged %d", number)
        if PLACE == "subprocess":
            subprocess.run(["sh", "-c", f"echo child {number} >&2"], check=True)
    stop.set()
    if PLACE == "thread":
        helper.join()
    print(
        f"tty {sum(tty for tty, _ in places)} of {len(places)}, files {len({inode for _, inode in places})}", flush=True
    )


main()
