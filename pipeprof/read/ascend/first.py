"""The zero of a rank's clocks: the first times that are in each of its files, so that rows can be written at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.ascend.graph_ops import aicpu_records
from pipeprof.read.ascend.msprof import clock_in, first_times_in, read_clock
from pipeprof.read.ascend.raw_trace import forward_times
from pipeprof.read.ascend.step_trace import clock_of
from pipeprof.read.ascend.values import ticks
from pipeprof.read.source.content import BROKEN
from pipeprof.read.source.numbers import integer, ns
from pipeprof.read.source.sheet import Sheet
from pipeprof.record.plain_file import open_file

if TYPE_CHECKING:
    from pathlib import Path

_HEAD_BYTES = 1 << 16
_ROWS = 50
_CPU_TIME = re.compile(rb"[; ]([0-9]{16,19}),")
_COLUMNS = {
    "timeline": ("counter", "start_time(ms)"), "aicpu": ("counter", "run_start"),
    "kernel_details": ("epoch", "Start Time(us)"), "memory_record": ("epoch", "Timestamp(us)"),
    "operator_memory": ("epoch", "Allocation Time(us)"), "cpu_memory": ("epoch", "Timestamp(ns)"),
}  # fmt: skip
_EVENTS = ("step_events", "hccl_events", "task_events", "merged_events")


def first_times(files: dict[str, list[Path]]) -> dict[str, int]:
    """First time (ns) by clock in one rank's files. What cannot be read is passed over: reading it will say so."""
    by_clock: dict[str, list[int]] = {"counter": [], "epoch": [], "raw": []}
    for kind, paths in files.items():
        for path in paths:
            try:
                _look(kind, path, files, by_clock)
            except (SourceError, *BROKEN):
                continue
    return {clock: min(times) for clock, times in by_clock.items() if times}


def _look(kind: str, path: Path, files: dict[str, list[Path]], by_clock: dict[str, list[int]]) -> None:
    if kind in ("step_trace", "gpu_steps"):
        for time in _gpu_times(path) if kind == "gpu_steps" else _column(path, "start_point"):
            by_clock[clock_of(time)].append(time)
    elif kind in _COLUMNS:
        clock_name, column = _COLUMNS[kind]
        by_clock[clock_name] += _column(path, column)
    elif kind in ("training_trace", "ts_track"):
        by_clock["counter"] += forward_times(path, kind)
    elif kind == "aicpu_log":
        by_clock["counter"] += [start for _, start, *_ in aicpu_records(path) if start]
    elif kind == "trace_view":
        by_clock["epoch"] += first_times_in(path)
    elif kind in ("cpu_exec", "gpu_exec"):
        by_clock["epoch"] += first_times_in(path, _CPU_TIME, "ns")
    elif kind in _EVENTS:
        clock = clock_in(path, read_clock(next(iter(files.get("start_info", [])), None)))
        by_clock[clock.name] += [time + clock.offset_ns for time in first_times_in(path)]


def _column(path: Path, name: str) -> list[int]:
    sheet = Sheet(path)
    index = sheet.index(name, f"Task {name}")
    values = []
    if index is not None:
        unit = "ms" if "(ms)" in name else "ns" if "(ns)" in name else "us"
        for number, (_, row) in enumerate(sheet.rows()):
            if number >= _ROWS:
                break
            if name == "start_point" and not integer(row[sheet.need("step_num")]):  # the average row
                continue
            value = ticks(row[index]) if name == "start_point" else ns(row[index], unit)
            value = None if "e" in row[index].lower() else value  # rounded, by hours
            if value is not None and value > 0:
                values.append(value)
    sheet.close()
    return values


def _gpu_times(path: Path) -> list[int]:
    with open_file(path) as file:
        first = file.read(_HEAD_BYTES).partition(b"\n")[0].decode("utf-8", "replace").split()
    if first and "," in first[0]:
        return [time for item in first[:4] if (time := integer(item.rpartition(",")[2]))]
    return [time for item in first[1:2] if (time := ticks(item.partition(",")[0]))]
