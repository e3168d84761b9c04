"""Files as MindSpore writes them for a training in sink mode on a device, made from a simulation: no device is here.

source -> map -> batch -> transfer -> device, each with one worker and a bounded queue behind it, in batches. A stage
begins a batch when it has finished the one before and the batch is there; it hands the batch over when the queue
behind it has room. Times vary by 5 %. The label is the slowest stage.

python lab/accuracy/sink.py FOLDER      writes every case into FOLDER/<name>
"""

from __future__ import annotations

import json
import random
import sys
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

STAGES = ("source", "map", "batch", "transfer", "device")
OPS = {0: ("DataQueueOp", "transfer"), 1: ("BatchOp", "batch"), 2: ("MapOp", "map"), 3: ("GeneratorOp", "source")}
LABELS = {
    "source": "data_processing",
    "map": "data_processing",
    "batch": "data_processing",
    "transfer": "data_transmission",
    "device": "consumer",
}
CAPACITY = 16
JITTER = 0.05
SAMPLE_MS = 100
BEGIN_MS = 1_000_000  # of the monotonic clock


@dataclass(frozen=True)
class Case:
    """Mean ms per batch of every stage. `getnext`: the file of the device side, for Ascend (aicpu) or a GPU."""

    name: str
    ms: tuple[float, float, float, float, float]
    batches: int = 300
    getnext: str = "aicpu"

    @property
    def bottleneck(self) -> str:
        """The slowest stage."""
        return STAGES[self.ms.index(max(self.ms))]

    @property
    def label(self) -> str:
        """data_processing, data_transmission or consumer."""
        return LABELS[self.bottleneck]

    @property
    def op_id(self) -> int | None:
        """The operator that holds the training up; None for the device."""
        return next((op_id for op_id, (_, stage) in OPS.items() if stage == self.bottleneck), None)


CASES = (
    Case("sink_source", (30, 5, 2, 3, 12)),
    Case("sink_map", (4, 28, 2, 3, 12)),
    Case("sink_map_gpu", (4, 28, 2, 3, 12), getnext="getnext"),
    Case("sink_batch", (4, 6, 25, 3, 12)),
    Case("sink_map_slightly", (4, 17, 2, 3, 12)),
    Case("sink_transfer", (4, 6, 2, 30, 12)),
    Case("sink_transfer_gpu", (4, 6, 2, 22, 12), getnext="getnext"),
    Case("sink_device", (4, 6, 2, 3, 25)),
    Case("sink_device_fast", (1, 1.5, 0.5, 0.5, 4), 1000),
    Case("sink_device_near", (4, 20, 2, 3, 25), 1200),
)


@dataclass(frozen=True)
class Times:
    """ms of every stage and batch: begun (the input was taken), done, and left (handed over)."""

    begun: list[list[float]]
    done: list[list[float]]
    left: list[list[float]]

    def depth(self, stage: int, time: float) -> int:
        """Batches in the queue behind a stage."""
        return max(0, bisect_right(self.left[stage], time) - bisect_right(self.begun[stage + 1], time))


def simulate(case: Case) -> Times:
    """Run the case; the same case always gives the same times."""
    choose = random.Random(case.name)  # noqa: S311 - reproducible on purpose
    empty: list[list[float]] = [[] for _ in STAGES]
    times = Times(empty, [[] for _ in STAGES], [[] for _ in STAGES])
    last = len(STAGES) - 1
    for batch in range(case.batches):
        for stage, mean in enumerate(case.ms):
            free = times.left[stage][-1] if batch else float(BEGIN_MS)
            there = times.left[stage - 1][batch] if stage else free
            begun = max(free, there)
            done = begun + mean * choose.uniform(1 - JITTER, 1 + JITTER)
            room = times.begun[stage + 1][batch - CAPACITY] if stage < last and batch >= CAPACITY else done
            times.begun[stage].append(begun)
            times.done[stage].append(done)
            times.left[stage].append(max(done, room))
    return times


def write(case: Case, folder: Path) -> None:
    """The files of one case."""
    times = simulate(case)
    folder.mkdir(parents=True, exist_ok=True)
    stamps = list(range(BEGIN_MS, int(times.done[-1][-1]), SAMPLE_MS))
    _write_json(folder / "pipeline_profiling_0.json", {"sampling_interval": SAMPLE_MS, "op_info": _ops(times, stamps)})
    idle = [0.0] * len(stamps)
    cpu = [{"op_id": op_id, "metrics": {"user_utilization": idle, "sys_utilization": idle}} for op_id in sorted(OPS)]
    _write_json(folder / "minddata_cpu_utilization_0.json", {"time_stamp": stamps, "op_info": cpu})
    (folder / "device_queue_profiling_0.txt").write_text(_device_queue(times, case.batches), encoding="utf-8")
    name, unit = ("minddata_aicpu_0.txt", 1e3) if case.getnext == "aicpu" else ("minddata_getnext_profiling_0.txt", 1e6)
    (folder / name).write_text(_getnext(times, case.batches, unit), encoding="utf-8")


def _ops(times: Times, stamps: list[int]) -> list[dict[str, object]]:
    entries = []
    for op_id, (op_type, stage) in OPS.items():
        entry: dict[str, object] = {"op_id": op_id, "op_type": op_type, "num_workers": 1, "metrics": None}
        if op_id + 1 in OPS:
            entry["children"] = [op_id + 1]
        if op_id:  # the last operator has no queue of its own: the device has it
            sizes = [times.depth(STAGES.index(stage), stamp) for stamp in stamps]
            entry["metrics"] = {"output_queue": {"length": CAPACITY, "size": sizes}}
        entries.append(entry)
    return entries


def _device_queue(times: Times, batches: int) -> str:
    """The transfer's side: waiting for the pipeline, pushing, both, and what is left in the pipeline's last queue."""
    transfer = STAGES.index("transfer")
    lines = []
    for batch in range(batches):
        asked = times.left[transfer][batch - 1] if batch else float(BEGIN_MS)
        got, pushed = times.begun[transfer][batch], times.left[transfer][batch]
        depth = times.depth(transfer - 1, got)
        number, stamp = batch + 1, int(pushed)
        lines += [
            f"0 1 {number} {int(pushed - got)} {stamp}",
            f"0 2 {number} {int(pushed - asked)} {stamp}",
            f"0 0 {number} {int(got - asked)} {stamp}",
            f"1 {CAPACITY} {number} {depth} {stamp}",
        ]
    return "\n".join(lines) + "\n"


def _getnext(times: Times, batches: int, unit: float) -> str:
    """The device's side: when it asked, when it had the batch, and the queue's size as it asked."""
    device = STAGES.index("device")
    lines = []
    for batch in range(batches):
        asked = times.done[device][batch - 1] if batch else float(BEGIN_MS)
        got = times.begun[device][batch]
        depth = bisect_right(times.left[device - 1], asked) - batch
        lines.append(f"GetNext_dequeue_wait {int(asked * unit)} {int(got * unit)} {max(0, depth)}")
    return "\n".join(lines) + "\n"


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for one in CASES:
        write(one, Path(sys.argv[1]) / one.name)
