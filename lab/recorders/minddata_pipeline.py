"""One pipeline under MindSpore's dataset profiler, with the consumer's own clock: `minddata_pipeline.py NAME FOLDER`.

VLOG_v=10900 must be set; the timing lines go to stderr. `steps.csv` is when the consumer asked for a batch, had it and
was done with it, `run.json` when the recording began on both clocks.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path

import numpy as np
from mindspore import dataset as ds
from mindspore._c_dataengine import GlobalContext

BATCH, BATCHES = 16, 40


def wait(ms):
    return lambda: time.sleep(ms / 1e3)


def compute(ms):
    def busy():
        until = time.perf_counter() + ms / 1e3
        while time.perf_counter() < until:
            pass

    return busy


def nothing():
    pass


# Work of the source and of the map per row, of the batch per batch, and of the loop per step.
PIPELINES = {
    "slow_leaf_io": (wait(4), nothing, None, nothing),
    "slow_leaf_cpu": (compute(3), nothing, None, nothing),
    "slow_map_io": (nothing, wait(4), None, nothing),
    "slow_map_cpu": (nothing, compute(3), None, nothing),
    "slow_batch": (nothing, nothing, wait(40), nothing),
    "slow_loop": (nothing, nothing, None, wait(40)),
}


class Source:
    def __init__(self, work):
        self.work = work

    def __len__(self):
        return BATCH * BATCHES

    def __getitem__(self, index):
        self.work()
        return np.full((8, 8), index % 7, np.float32), np.array(index, np.int32)


def pipeline(name):
    source, mapped, batched, _ = PIPELINES[name]

    def through(image):
        mapped()
        return image / np.float32(2)

    def together(images, numbers, _info):
        batched()
        return images, numbers

    data = ds.GeneratorDataset(Source(source), ["image", "number"], shuffle=False, num_parallel_workers=1)
    data = data.map(through, ["image"], num_parallel_workers=2)
    more = {"per_batch_map": together, "input_columns": ["image", "number"]} if batched else {}
    return data.batch(BATCH, num_parallel_workers=1, **more)


def main():
    name, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True)
    ds.config.set_monitor_sampling_interval(10)
    manager = GlobalContext.profiling_manager()
    manager.init()
    manager.start()
    began = {"t_start_mono": time.monotonic(), "t_start_wall": time.time(), "batch": BATCH}
    rows, clock = [], time.monotonic
    batches, asked = pipeline(name).create_tuple_iterator(num_epochs=1), clock()
    for number, _ in enumerate(batches):
        had = clock()
        PIPELINES[name][3]()
        rows.append((number, *(f"{moment:.6f}" for moment in (asked, had, clock()))))
        asked = clock()
    manager.stop()
    manager.save(str(folder))
    with (folder / "steps.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("step", "t_req_mono_s", "t_got_mono_s", "t_done_mono_s"), *rows])
    (folder / "run.json").write_text(json.dumps({"name": name, **began}), encoding="utf-8")


if __name__ == "__main__":
    main()
