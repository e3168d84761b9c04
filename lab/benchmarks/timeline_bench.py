"""Speed and memory of `pipeprof timeline` on a made run: `python lab/benchmarks/timeline_bench.py --events 5000000`.

The run is an hour long: one host thread of operators that call each other, two streams with kernels, arrows between
them, queue samples and a memory curve. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeprof.read.tables.writer import TableWriter
from pipeprof.record import store
from pipeprof.record.run import Manifest, Rank, Rep, Run

HOUR_NS = 3_600_000_000_000
BLOCK = 1 << 15
OPS = 400
PER_STEP = 2000
MOST_MIB, LEAST_PER_S = 300, 500_000
SHARES = {"host": 8, "device": 6, "flow": 4, "queue": 1, "memory": 1}  # of 20


def make(folder, events):
    """A run of so many events."""
    run = Run(
        folder, Manifest(run_id="20260101T000000-abcdef", started_at="2026-01-01T00:00:00Z", pipeprof_version="0")
    )
    folder.mkdir(parents=True)
    run.manifest.reps = [
        Rep(
            rep=0, zero_realtime_ns=10**18, zero_monotonic_ns=5,
            ranks=[Rank(rank=0, pid=1, host="made", zero_realtime_ns=10**18, zero_monotonic_ns=5)],
        )
    ]  # fmt: skip
    run.save()
    counts = {name: events * share // 20 for name, share in SHARES.items()}
    rows = [
        [n, f"Default/network/layer{n}/Op-op{n}", f"Op{n % 40}", None, "forward", "CPU", f"[{n}, 64, 56, 56]"]
        for n in range(OPS)
    ]
    store.write(run, "op_info", 0, 0, [[*row, *[None] * 8] for row in rows])
    _ops(run, counts)
    _simple(run, counts)
    return run


def _blocks(count):
    gap = HOUR_NS // max(count, 1)
    for first in range(0, count, BLOCK):
        index = np.arange(first, min(first + BLOCK, count))
        yield index, index * gap, gap


def _ops(run, counts):
    with TableWriter(run, "op", 0, 0) as writer:
        for index, start, gap in _blocks(counts["host"]):  # of four, the first contains the others
            outer = index % 4 == 0
            writer.add(
                {
                    "op_id": index % OPS, "step": index // PER_STEP, "start_ns": start,
                    "dur_ns": np.where(outer, 4 * gap - 7, gap - 13), "self_ns": np.where(outer, gap, gap - 13),
                    "track": _text("python / thread 7", index), "side": _text("host", index),
                }
            )  # fmt: skip
        for index, start, gap in _blocks(counts["device"]):
            tracks = pa.array(["GPU 0 / stream 7", "GPU 0 / stream 20"]).take(pa.array(index % 2))
            writer.add(
                {
                    "op_id": index % OPS, "step": index // PER_STEP, "start_ns": start + 111, "dur_ns": np.full(len(index), gap),
                    "track": tracks, "side": _text("device", index),
                }
            )  # fmt: skip


def _simple(run, counts):
    with TableWriter(run, "flow", 0, 0) as writer:
        for index, start, _ in _blocks(counts["flow"]):
            odd = pa.array(index % 2)
            writer.add(
                {
                    "flow_id": pa.array(index // 2).cast(pa.string()), "category": _text("ac2g", index),
                    "name": _text("ac2g", index), "side": pa.array(["start", "end"]).take(odd), "t_ns": start,
                    "track": pa.array(["python / thread 7", "GPU 0 / stream 7"]).take(odd),
                }
            )  # fmt: skip
    with TableWriter(run, "queue", 0, 0) as writer:
        for index, start, _ in _blocks(counts["queue"]):
            writer.add({"pipeline_id": index * 0, "op_id": index % 5, "t_ns": start, "depth": index % 16})
    with TableWriter(run, "memory", 0, 0) as writer:
        for index, start, _ in _blocks(counts["memory"]):
            writer.add({"t_ns": start, "device": _text("CPU", index), "allocated_bytes": index * 512})


def _text(value, index):
    return pa.array([value]).take(pa.array(np.zeros(len(index), np.int64)))


CHILD = """
import json, resource, sys, time
from pathlib import Path
began = time.perf_counter()
from pipeprof.record.run import load
from pipeprof.report.timeline.trace import Choice, write
written = write(load(sys.argv[1]), Path(sys.argv[2]), Choice())
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({"events": written.events, "bytes": written.bytes, "cpu_s": time.process_time(),
                  "wall_s": time.perf_counter() - began, "peak_mib": int(status["VmHWM"].split()[0]) / 1024}))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--check", action="store_true", help="fail when it takes too much memory or time")
    parser.add_argument("--plain", action="store_true", help="do not pack the trace")
    parser.add_argument("--folder", type=Path, help="keep the run and the trace here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if not (folder / "run").exists():
            make(folder / "run", options.events)
        trace = folder / ("trace.json" if options.plain else "trace.json.gz")
        text = subprocess.run(
            [sys.executable, "-c", CHILD, folder / "run", trace],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ},
        ).stdout
        found = json.loads(text)
        found |= {
            "trace_mib": trace.stat().st_size / 2**20,
            "events_per_cpu_s": found["events"] / found["cpu_s"],
            "at": time.strftime("%Y-%m-%d"),
        }
        print(json.dumps(found, indent=2))
        if options.check and (found["peak_mib"] >= MOST_MIB or found["events_per_cpu_s"] < LEAST_PER_S):
            raise SystemExit(f"expected less than {MOST_MIB} MiB and at least {LEAST_PER_S:,} events per CPU second")


if __name__ == "__main__":
    main()
