"""What the commands of docs/parity.md are about, beside what the other pages speak of: small files of other programs, imported."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import workspace

sys.path.insert(0, str(workspace.TESTS))
import ascend_files
import kineto_files
import minddata_files

from pipeprof.read.foreign import import_path

if TYPE_CHECKING:
    from pathlib import Path

LOG = """load model: 198.030ms
=== prepare: 5.846ms; going to warmup
warmup 0: 581.284ms
=== going to run input for 2 times
iter 0/2: 245.185ms (exec=10.574,device=242.226)
iter 1/2: 236.911ms (exec=6.375,device=235.615)
=== finished test #0: time=482.096ms avg_time=241.048ms sd=5.851ms minmax=236.911,245.185

=== total time: 482.096ms
"""
OPTIONS = """table_id,row_in_table,variant,is_baseline,configure_ms,warmup_first_ms,inference_ms,platform,device,dtype
a,1,fast-run,0,1.4,1821.5,3.9,NVIDIA GPU,cuda,float32
a,2,baseline,1,1.6,28.5,5.2,NVIDIA GPU,cuda,float32
b,1,full-run,0,1.6,1964.4,3.8,NVIDIA GPU,cuda,float32
b,2,baseline,1,1.5,28.6,4.9,NVIDIA GPU,cuda,float32
c,1,nchw44,0,439.7,332.6,212.1,ARM64 CPU,cpu,int8
c,2,nchw44-dot,0,625.5,200.9,69.7,ARM64 CPU,cpu,int8
c,3,baseline,1,4.3,257.8,82.7,ARM64 CPU,cpu,int8
d,1,baseline,1,4.5,257.8,82.9,ARM64 CPU,cpu,int8
"""


def make(folder: Path) -> Path:
    """Fill a new folder with the pages' runs, the files, and runs named for the files they were imported from."""
    workspace.make(folder)
    _write(folder)
    for source, run in (
        ("resnet.pt.trace.json.gz", "torch"), ("device.pt.trace.json", "device"), ("profile.json", "static"),
        ("42.chrome_timeline.json", "dynamic"), ("ascend_files", "ascend"), ("npu_files", "npu"),
        ("sink_files", "sink"), ("profiler", "old"), ("load_and_run.log", "log"),
    ):  # fmt: skip
        import_path(folder / source, folder / run)
    return folder


def _write(folder: Path) -> None:
    (folder / "load_and_run.log").write_text(LOG, encoding="utf-8")
    (folder / "options.csv").write_text(OPTIONS, encoding="utf-8")
    (folder / "42.chrome_timeline.json").write_text(json.dumps(_timeline()), encoding="utf-8")
    kineto_files.write_trace(folder / "device.pt.trace.json", _device_trace())
    ascend_files.write_graph(folder / "ascend_files")
    ascend_files.write_output(folder / "npu_files")
    minddata_files.write_sink(folder / "sink_files")


def _device_trace() -> list[dict[str, object]]:
    """Two steps of a training whose convolutions launch kernels on a stream."""
    events = kineto_files.training(steps=2)
    for number, event in enumerate(one for one in events if one["name"] == "aten::conv2d"):
        event["args"] |= {"External id": number + 1}
        at = event["ts"] + 200
        events.append(
            kineto_files.op("cudnn_conv", at, 500, "kernel", 7, 0, correlation=number, **{"External id": number + 1})
        )
    return events


def _timeline() -> dict[str, object]:
    """A module's forward pass: dispatched by one thread, sent by another, computed on a device, and memory meanwhile."""

    def event(phase: str, name: str, ts: float, tid: int = 0, **more: object) -> dict[str, object]:
        return {"name": name, "ph": phase, "tid": tid, "pid": 42, "ts": ts, **more}

    operator = {"__id__": "7", "__name__": "conv1", "__device__": "gpu0:0"}
    threads = ((0, "channel"), (1, "worker"), (2, "gpu0:0"))
    return {
        "traceEvents": [
            *(event("M", "thread_name", 0, tid, args={"name": name}) for tid, name in threads),
            event("B", "Module.forward", 0.0, cat="Scope"), event("E", "Module.forward", 9.5),
            event("B", "Convolution", 3.0, 1), event("E", "Convolution", 5.0, 1, args=operator),
            event("B", "Convolution", 4.0, 2, cat="Kernel"),
            event("E", "Convolution", 8.25, 2, cat="Kernel", args=operator),
            event("s", "42", 3.5, 1, id=5, cat="KernelLaunch"), event("f", "42", 4.0, 2, id=5, cat="KernelLaunch", bp="e"),
            event("C", "gpu0:0_alloc_mem", 5.0, args={"value": 1024}), event("i", "StopStep", 9.0),
        ],
        "metadata": {"localTime": "1625027241000000000"},
    }  # fmt: skip
