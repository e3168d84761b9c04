"""Files of MindSpore's dataset profiling: queue samples, fetches and CPU per pipeline operator, as written.

Times are ns of the monotonic clock. The sampling interval in the files is nominal, so a sample's time is its stamp in
the CPU file, which the same thread writes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.units import NS_PER_MS

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class PipelineOp:
    """One operator: `capacity` and `depths` are None and empty for one that runs inside its consumer."""

    op_id: int
    op_type: str
    workers: int | None
    children: list[int]
    capacity: int | None = None
    depths: list[int] = field(default_factory=list)
    cpu: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class FetchRecord:
    """One batch by the dataset's own count from 1: whole ms, times in ns of the monotonic clock."""

    batch: int
    wait_ns: int | None
    push_ns: int | None
    batch_ns: int | None
    t_ns: int | None
    depth: int | None
    capacity: int | None


@dataclass
class MindData:
    """What one folder holds.

    `times` are the stamps of the samples, ns of the monotonic clock; `notes` say what was odd.
    """

    ops: list[PipelineOp]
    times: list[int]
    fetches: list[FetchRecord]
    notes: list[str]


def read_folder(folder: Path) -> MindData:
    """Read the pipeline, CPU and iterator files of a folder; what is missing stays empty.

    Raises SourceError for a file that is there and cannot be read.
    """
    notes: list[str] = []
    ops = _read_pipeline(_first(folder, "pipeline_profiling*.json"))
    times = _read_cpu(_first(folder, "minddata_cpu_utilization*.json"), ops, notes)
    notes += [
        f"queue sizes and sample times differ in length for operator {op.op_id}: "
        f"{len(op.depths)} sizes, {len(times)} times; the surplus was left out"
        for op in ops
        if op.depths and abs(len(op.depths) - len(times)) > 1
    ]
    return MindData(ops, times, read_fetches(_first(folder, "dataset_iterator_profiling*.txt")), notes)


def _first(folder: Path, pattern: str) -> Path | None:
    return next(iter(sorted(folder.glob(pattern))), None)


def _read_pipeline(path: Path | None) -> list[PipelineOp]:
    if path is None:
        return []
    content = _json(path)
    ops = []
    try:
        for entry in content["op_info"]:
            queue = (entry.get("metrics") or {}).get("output_queue") or {}
            ops.append(
                PipelineOp(
                    op_id=int(entry["op_id"]),
                    op_type=str(entry["op_type"]),
                    workers=entry.get("num_workers"),
                    children=[int(child) for child in entry.get("children") or []],
                    capacity=queue.get("length"),
                    depths=[int(size) for size in queue.get("size", [])],
                )
            )
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f"damaged `{path}`: {error!r}, expected op_info with op_id and op_type") from error
    return sorted(ops, key=lambda op: op.op_id)


def _read_cpu(path: Path | None, ops: list[PipelineOp], notes: list[str]) -> list[int]:
    if path is None:
        return []
    content = _json(path)
    times = [int(stamp) * NS_PER_MS for stamp in content.get("time_stamp") or []]
    by_id = {op.op_id: op for op in ops}
    for entry in content.get("op_info") or []:
        op = by_id.get(entry.get("op_id"))
        metrics = entry.get("metrics") or {}
        user, system = metrics.get("user_utilization") or [], metrics.get("sys_utilization") or []
        if op is not None:
            op.cpu = [(one / 100, other / 100) for one, other in zip(user, system, strict=False)]
    if any(later < earlier for earlier, later in pairwise(times)):
        notes.append(f"time stamps in `{path.name}` go backwards")
    return times


def read_fetches(path: Path | None) -> list[FetchRecord]:
    """Records of a dataset_iterator_profiling or device_queue_profiling file, by batch.

    Ragged lines (the last one, when the process was killed) are left out.
    """
    if path is None:
        return []
    batches: dict[int, dict[str, int]] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split()
        if len(fields) < 4 or not all(part.lstrip("-").isdigit() for part in fields[:5]):
            continue
        kind, extra, batch, value = (int(part) for part in fields[:4])
        entry = batches.setdefault(batch, {})
        if kind == 0:
            entry[("wait", "push", "batch")[extra] if extra in (0, 1, 2) else "other"] = value * NS_PER_MS
        else:
            entry["capacity"], entry["depth"] = extra, value
        if len(fields) > 4:
            entry["t"] = int(fields[4]) * NS_PER_MS
    return [
        FetchRecord(
            batch=batch,
            wait_ns=entry.get("wait"),
            push_ns=entry.get("push"),
            batch_ns=entry.get("batch"),
            t_ns=entry.get("t"),
            depth=entry.get("depth"),
            capacity=entry.get("capacity"),
        )
        for batch, entry in sorted(batches.items())
    ]


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(
            f"cannot read `{path}`: {error}", "the process may have been killed while writing it"
        ) from error
    if not isinstance(content, dict):
        raise SourceError(f"`{path}` holds {type(content).__name__}, expected a JSON object")
    return content
