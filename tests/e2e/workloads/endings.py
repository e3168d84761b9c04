"""A training that tells every finished step at once and then ends as it is told: `python endings.py HOW STEPS [DELAY]`."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

import parts
from mindspore import dataset as ds

HOW, STEPS = sys.argv[1], int(sys.argv[2])
DELAY = float(sys.argv[3]) if len(sys.argv) > 3 else 0.02


def leave():
    if HOW == "exception":
        raise ValueError("broken on purpose")
    if HOW.startswith("exit"):
        sys.exit(int(HOW[4:]))
    if HOW.startswith("_exit"):
        os._exit(int(HOW[5:]))
    if HOW == "abort":
        os.abort()
    if HOW == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if HOW == "interpreter":
        holding_the_interpreter()
    if HOW == "memory":
        taking_memory()


def holding_the_interpreter():
    """A call into C that keeps the interpreter's lock and never returns."""
    ctypes.PyDLL(None).sleep(3600)


def taking_memory():
    taken = []
    while True:
        taken.append(bytes(1 << 20) * 8)  # copied, so that each page is touched


seen = []


def deadly(x):
    seen.append(x)
    if len(seen) > 60:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.005)
    return x


def data():
    if HOW != "worker":
        return parts.rows(STEPS + 1, DELAY)
    source = ds.GeneratorDataset(parts.Rows(STEPS + 1), ["x", "y"], shuffle=False)
    return source.map(deadly, ["x"], num_parallel_workers=2, python_multiprocessing=True).batch(parts.BATCH)


def main():
    parts.pynative()
    trainer = parts.Trainer()
    for number, (x, y) in enumerate(data().create_tuple_iterator(num_epochs=1)):
        if number == STEPS:
            leave()
            break
        parts.mark()
        trainer.step(x, y).asnumpy()
        print(f"step {number} {time.monotonic_ns()} {os.getpid()}", flush=True)
    print("last words", flush=True)


main()
