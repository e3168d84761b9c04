"""One saved folder as our own recordings have them: one graph, its samples and its fetches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeprof.read.minddata.cpu import read_cpu
from pipeprof.read.minddata.fetches import FetchRecord, read_records
from pipeprof.read.minddata.graph import PipelineOp, read_pipeline, unmatched
from pipeprof.read.source.notes import Notes

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.read.minddata.cpu import CpuFile

_NEARLY = 0.75  # of the spacing: a reading may come a little early


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
    notes = Notes()
    pipeline = _first(folder, "pipeline_profiling*.json")
    stamps = _first(folder, "minddata_cpu_utilization*.json")
    records = _first(folder, "dataset_iterator_profiling*.txt")
    ops = read_pipeline(pipeline, notes).ops if pipeline else []
    times = attach(ops, read_cpu(stamps, notes), pipeline, notes) if stamps else []
    if pipeline and not stamps:
        for said in unmatched(pipeline, ops, 0):
            notes.add("samples", said)
    fetches = read_records(records, notes) if records else []
    unused = ("host_cpu_half",)  # our own recordings have the host from elsewhere
    return MindData(ops, times, fetches, [message for code, message in notes.all() if code not in unused])


def thin_out(data: MindData, spacing_ns: int) -> None:
    """Leave samples that are about `spacing_ns` apart, so that each stands for as much time.

    The recorder reads ever more rarely: without this the beginning of a long run would outweigh all of its rest.
    """
    keep: list[int] = []
    for index, time in enumerate(data.times):
        if not keep or time - data.times[keep[-1]] >= spacing_ns * _NEARLY:
            keep.append(index)
    for op in data.ops:
        op.cpu = [op.cpu[index] for index in keep if index < len(op.cpu)]
        op.depths = [op.depths[index] for index in keep if index < len(op.depths)]
    data.times = [data.times[index] for index in keep]


def attach(ops: list[PipelineOp], cpu: CpuFile, path: Path | None, notes: Notes) -> list[int]:
    """Give the operators their CPU, and return the times of the samples, which have the same positions in `depths`.

    Samples without a possible time are taken out of both.
    """
    if path is not None:
        for said in unmatched(path, ops, len(cpu.times)):
            notes.add("samples", said)
    keep = cpu.stamped()
    for op in ops:
        op.cpu = cpu.ops.get(op.op_id, [])
        if len(keep) < len(cpu.times):
            op.cpu = [op.cpu[index] for index in keep if index < len(op.cpu)]
            op.depths = [op.depths[index] for index in keep if index < len(op.depths)]
    return [time for time in cpu.times if time is not None]


def _first(folder: Path, pattern: str) -> Path | None:
    return next(iter(sorted(folder.glob(pattern))), None)
