"""Small tables of ASCEND_PROFILER_OUTPUT: split steps, host operators, memory; and the checks between files.

Memory over time and lifetimes of blocks: memory_record, npu_module_mem, operator_memory, cpu_ms_memory_record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read.ascend.graph_ops import rounded_mean
from pipeprof.read.ascend.kernels import MOST_TYPES, Totals
from pipeprof.read.source.content import HINT
from pipeprof.read.source.numbers import duration, integer, ns, size
from pipeprof.read.source.sheet import Sheet, field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

PARTS = {
    "computing_ns": "Computing", "exposed_ns": "Communication(Not Overlapped)", "overlapped_ns": "Overlapped",
    "communication_ns": "Communication", "free_ns": "Free", "stage_ns": "Stage", "bubble_ns": "Bubble",
    "exposed_without_receive_ns": "Communication(Not Overlapped and Exclude Receive)", "preparing_ns": "Preparing",
}  # fmt: skip
ROUNDING_NS = 200  # within which the parts add up to the stage
HOST_OPS = 100_000  # of operators with shapes that are told apart


def read_step_split(path: Path, out: Out) -> list[dict[str, Any]]:
    """Rows of `step_trace_time.csv`, also to `step_split`. Without a bubble, the parts must add up to the stage."""
    splits = []
    for line, _, number, values in split_rows(Sheet(path)):
        values |= {"step": out.step_of(number), "source_step": number, "source": "step_trace_time"}
        out.add("step_split", **values)
        splits.append(values)
        _check_split(path, line, values, out)
    if not splits:
        raise SourceError(f"no step in `{path}`, expected one row for each", HINT)
    return splits


def split_rows(sheet: Sheet) -> Iterator[tuple[int, list[str], int | None, dict[str, Any]]]:
    """(line, fields, number of the step, its parts in ns) of each row."""
    step_at = sheet.need("Step")
    at = {name: sheet.index(column) for name, column in PARTS.items()}
    for line, row in sheet.rows():
        yield line, row, integer(row[step_at]), {name: duration(field(row, at[name]), "us") for name in at}


def _check_split(path: Path, line: int, values: dict[str, Any], out: Out) -> None:
    parts = [values[name] for name in ("computing_ns", "exposed_ns", "free_ns")]
    stage, both = values["stage_ns"], [values["overlapped_ns"], values["exposed_ns"]]
    if None not in parts and stage is not None and not values["bubble_ns"]:
        shown = f"{sum(parts)} ns and {stage} ns"
        rule = "Computing + Communication(Not Overlapped) + Free = Stage"
        out.checks.that(abs(sum(parts) - stage) <= ROUNDING_NS, path, line, rule, shown)
    if None not in both and values["communication_ns"] is not None:
        shown = f"{sum(both)} ns and {values['communication_ns']} ns"
        rule = "Overlapped + Communication(Not Overlapped) = Communication"
        out.checks.that(abs(sum(both) - values["communication_ns"]) <= ROUNDING_NS, path, line, rule, shown)


def read_operator_details(path: Path, out: Out) -> None:
    """Host operators summed by name and input shapes: one row of the file is one execution without a time."""
    sheet = Sheet(path)
    name_at, shape_at = sheet.need("Name"), sheet.index("Input Shapes")
    at = [sheet.index(f"{part} Duration(us)") for part in ("Host Total", "Host Self", "Device Total")]
    sums: dict[tuple[str, str], list[int]] = {}
    for _, row in sheet.rows():
        times = [duration(field(row, index), "us") for index in at]
        if times[0] is None or not row[name_at]:
            out.notes.count(path, "row without a name and a host duration")
            continue
        key = (row[name_at], " ".join(field(row, shape_at).split()))
        if key not in sums and len(sums) >= HOST_OPS:
            out.notes.count(path, f"operator beyond the first {HOST_OPS}")
            continue
        entry = sums.setdefault(key, [0, 0, 0, 0, times[0], times[0]])
        entry[0] += 1
        for index, value in enumerate(times, 1):
            entry[index] += value or 0
        entry[4], entry[5] = min(entry[4], times[0]), max(entry[5], times[0])
    for (name, shapes), (count, total, own, device, least, most) in sums.items():
        out.add(
            "op_total", source="operator_details", name=name[:4000], device="host", shapes=shapes[:4000] or None,
            count=count, total_ns=total, mean_ns=rounded_mean(total, count), self_ns=own, min_ns=least, max_ns=most,
            device_ns=device,
        )  # fmt: skip


def check_statistic(path: Path, stated: dict[tuple[str, str], tuple[int, int]], totals: Totals, out: Out) -> None:
    """op_statistic must equal kernel_details by type and core."""
    if len(totals) >= MOST_TYPES:
        return
    for key in sorted(stated.keys() | totals.keys()):
        count, total = stated.get(key, (0, 0))
        seen, spent = totals.get(key, [0, 0])
        close = abs(total - spent) <= max(1, seen) * 2
        shown = f"{count} in {total} ns, kernel_details has {seen} in {spent} ns"
        out.checks.that(
            count == seen and close, path, " ".join(key), "a type's count and total = kernel_details", shown
        )


def check_cpu_totals(
    path: Path, stated: dict[tuple[str, str], tuple[int, int]], seen: dict[str, list[int]], out: Out
) -> None:  # fmt: skip
    """The CPU profiler's totals must equal its executions; they have six digits."""
    for (name, _), (count, total) in sorted(stated.items()):
        runs, spent = seen.get(name, [0, 0])
        close = abs(total - spent) <= max(total, 10_000) // 10_000
        shown = f"{count} in {total} ns, the executions are {runs} in {spent} ns"
        out.checks.that(count == runs and close, path, name, "an operator's count and total = its executions", shown)


def check_overlap(path: Path, sums: dict[str, int], splits: list[dict[str, Any]], out: Out) -> None:
    """Sums of trace_view's Overlap Analysis must equal step_trace_time."""
    names = {"Computing": "computing_ns", "Communication": "communication_ns",
             "Communication(Not Overlapped)": "exposed_ns", "Free": "free_ns"}  # fmt: skip
    for name, column in names.items():
        stated = [row[column] for row in splits if row[column] is not None]
        if sums and stated:
            shown = f"{sums.get(name, 0)} ns and {sum(stated)} ns"
            rule = "its sum in Overlap Analysis = step_trace_time"
            out.checks.that(abs(sums.get(name, 0) - sum(stated)) <= ROUNDING_NS, path, name, rule, shown)


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
