"""Runs a labelled pipeline under MindSpore's own dataset profiler, without pipeprof: `raw.py PIPELINE FOLDER`.

VLOG_v=10900 must be set; the timing lines go to stderr.
"""

from __future__ import annotations

import json
import sys

from designed import find
from mindspore import dataset as ds
from mindspore._c_dataengine import GlobalContext
from pipelines import from_json
from workload import run

INTERVAL_MS = 100


def main():
    text, folder = sys.argv[1:3]
    pipeline = from_json(text) if text.startswith("{") else find(text)
    ds.config.set_monitor_sampling_interval(INTERVAL_MS)
    manager = GlobalContext.profiling_manager()
    manager.init()
    manager.start()
    truth = run(pipeline, pipeline.seconds)
    manager.stop()
    manager.save(folder)
    print(json.dumps({"name": pipeline.name, **truth}), flush=True)


if __name__ == "__main__":
    main()
