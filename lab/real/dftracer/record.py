"""A training whose reader thread is slow, traced by DFTracer: `record.py FOLDER`; see tests/real/PROVENANCE.md."""

import queue
import sys
import threading
import time
from pathlib import Path

import numpy as np
from dftracer.python import ai, dftracer

folder = Path(sys.argv[1]).resolve()
data = folder / "data"
data.mkdir(parents=True, exist_ok=True)
for number in range(12):
    np.savez(data / f"{number}.npz", rows=np.full(50_000, number))
log = dftracer.initialize_log(logfile=str(folder / "trace"), data_dir=str(data), process_id=0)
ready = queue.Queue(2)


def read_rows():
    for number in range(12):
        with ai.data.item():
            rows = np.load(data / f"{number}.npz")["rows"]
            time.sleep(0.04)
        ready.put(rows)
    ready.put(None)


def batches():
    while (rows := ready.get()) is not None:
        yield rows


@ai.compute
def train(rows):
    time.sleep(0.01)
    return rows.sum()


clock = []
threading.Thread(target=read_rows).start()
with ai.pipeline.epoch():
    asked = time.perf_counter()
    for rows in ai.dataloader.fetch.iter(batches()):
        got = time.perf_counter()
        with ai.compute.step():
            train(rows)
        done = time.perf_counter()
        clock.append((got - asked, done - got))
        asked = done
log.finalize()
print("waited", round(sum(wait for wait, _ in clock), 4), "computed", round(sum(work for _, work in clock), 4))
