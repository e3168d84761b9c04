"""Memory over time and lifetimes of blocks: memory_record, npu_module_mem, operator_memory, cpu_ms_memory_record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.read.source.numbers import integer, ns, size
from pipeprof.read.source.sheet import Sheet, field

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

CLOCK = "epoch"


def read_memory_record(path: Path, out: Out) -> None:
    """Samples of allocators (`Component`) in MB, in CANN's own files in KB; empty cells are null."""
    sheet = Sheet(path)
    component_at, time_at = sheet.need("Component"), sheet.need("Timestamp(us)")
    device_at = sheet.index("Device Type", "Device")
    unit = "KB" if sheet.index("Total Reserved(MB)") is None else "MB"
    at = {name: sheet.index(f"Total {name.capitalize()}({unit})") for name in ("allocated", "reserved", "active")}
    for _, row in sheet.rows():
        time = ns(row[time_at], "us")
        sizes = {f"{name}_bytes": size(field(row, index), unit) for name, index in at.items()}
        if time is None or time < 0:
            out.notes.count(path, "sample without a time")
        elif "e" in row[time_at].lower():
            out.notes.count(path, "sample whose time was rounded (written with an exponent)")
        elif any(value is not None for value in sizes.values()):
            out.add(
                "memory", t_ns=out.at(time, CLOCK), device=field(row, device_at) or "device",
                name=field(row, component_at) or None, **sizes,
            )  # fmt: skip


def read_cpu_memory(path: Path, out: Out) -> None:
    """Samples of MindSpore's CPU pool: ns since the epoch, bytes."""
    sheet = Sheet(path)
    at = {name: sheet.index(f"Total {name.capitalize()}(Byte)") for name in ("allocated", "reserved", "active")}
    time_at = sheet.need("Timestamp(ns)")
    for _, row in sheet.rows():
        time = integer(row[time_at])
        if time is None or time < 0:
            out.notes.count(path, "sample without a time")
            continue
        sizes = {f"{name}_bytes": size(field(row, index), "B") for name, index in at.items()}
        out.add("memory", t_ns=out.at(time, CLOCK), device="CPU", **sizes)


def read_operator_memory(path: Path, out: Out) -> None:
    """Lifetimes of blocks: size in KB, times in us since the epoch. One that was never released has no end."""
    sheet = Sheet(path)
    name_at, size_at = sheet.need("Name"), sheet.need("Size(KB)")
    made_at, freed_at = sheet.need("Allocation Time(us)"), sheet.index("Release Time(us)")
    for _, row in sheet.rows():
        made, freed = ns(row[made_at], "us"), ns(field(row, freed_at), "us")
        length = size(row[size_at], "KB")
        if made is None or length is None or made < 0:
            out.notes.count(path, "block without a size and an allocation time")
            continue
        if freed is not None and freed < made:
            out.notes.count(path, "release before the allocation")
            freed = None
        out.add(
            "allocation", bytes=length, produced_ns=out.at(made, CLOCK),
            released_ns=None if freed is None else out.at(freed, CLOCK),
            op_id=out.operator(row[name_at].strip() or None, None, "host"),
        )  # fmt: skip
