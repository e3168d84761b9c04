"""Operator files of the old profiler: AI Core, AI CPU, GPU and CPU totals, framework descriptions, executions.

And facts of operators of a graph: work (`flops_<r>.txt`), and shapes that change (`dynamic_shape_info_<r>.json`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.mindspore_ops import op_type
from pipeprof.read.source.content import HINT, LONG_LINE, lines, mapping, text, whole_text
from pipeprof.read.source.json_stream import entries
from pipeprof.read.source.numbers import LARGEST, decimal, duration, integer, ns
from pipeprof.read.source.sheet import Sheet, field
from pipeprof.read.tables.rows import LONGEST, MOST
from pipeprof.record.document import BAD_JSON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

    AicpuTask = tuple[str, int | None, int | None, int | None, int | None]  # node; start, end, dispatch, total in ns

CLOCK = "counter"
_NODE = re.compile(
    r"Node:(?P<node>[^,]{1,200}), Run s?tart:(?P<start>[0-9]{1,18}),(?:[^N]{0,200}?,)? ?Run end:(?P<end>[0-9]{1,18})"
    r"[^N]{0,400}?dispatchTime=(?P<dispatch>[0-9]{1,12}) us, totalTime=(?P<total>[0-9]{1,12}) us"
)  # fmt: skip
_FIELD = re.compile(r'(\w+):("[^"]*"|\S*)')
_TYPES = (
    "BOOL", "INT", "INT8", "INT16", "INT32", "INT64", "UINT", "UINT8", "UINT16", "UINT32", "UINT64", "FLOAT", "FLOAT16",
    "FLOAT32", "FLOAT64",
)  # fmt: skip
_FIRST_TYPE = 27  # number of BOOL in MindSpore's list of types at that time

# Where a file of totals has what: where its operators ran, the unit of its times, and the names of its columns.
# `share`: fractions that must add up to 1.
_PARTS = ("name", "type", "count", "total", "mean", "least", "most", "on_device", "share")
TOTALS: dict[str, tuple[str, str, dict[str, tuple[str, ...]]]] = {
    "aicore_type": ("AI_CORE", "ms", {"type": ("kernel_type", "op_type"), "count": ("execution_frequency",),
                                      "total": ("total_time", "execution_time")}),
    "aicore_detail": ("AI_CORE", "ms", {"name": ("full_op_name", "full_kernel_name", "full_kernel_time"),
                                        "count": ("execution_frequency",), "mean": ("execution_time",)}),
    "gpu_type": ("GPU", "us", {"type": ("op_type",), "count": ("type_occurrences",), "total": ("total_time(us)",)}),
    "gpu_detail": ("GPU", "us", {"name": ("op_full_name",), "type": ("op_type",), "count": ("op_occurrences",),
                                 "total": ("op_total_time(us)",), "on_device": ("cuda_activity_cost_time(us)",)}),
    "gpu_activity": ("GPU", "us", {"name": ("op_full_name", "name"), "type": ("type",), "count": ("occurrences",),
                                   "total": ("total_duration(us)",), "least": ("min_duration(us)",),
                                   "most": ("max_duration(us)",)}),
    "cpu_type": ("CPU", "ms", {"type": ("op_type",), "count": ("type_occurrences",),
                               "total": ("total_compute_time",), "share": ("percent",)}),
    "cpu_detail": ("CPU", "ms", {"name": ("full_op_name",), "type": ("op_type",), "count": ("op_occurrences",),
                                 "total": ("op_total_time(ms)",), "share": ("total_proportion",)}),
    "op_statistic": ("Core Type", "us", {"type": ("OP Type", "Op Type"), "count": ("Count",),
                                         "total": ("Total Time(us)",), "least": ("Min Time(us)",),
                                         "most": ("Max Time(us)",)}),
    "api_statistic": ("host", "us", {"name": ("API Name",), "type": ("Level",), "count": ("Count",),
                                     "total": ("Time(us)",), "least": ("Min(us)",), "most": ("Max(us)",)}),
    "dataset": ("host", "us", {"name": ("Operation",), "type": ("Stage",), "count": ("Occurrences",),
                               "mean": ("Avg. time (us)", "Avg. time(us)", "Avg time(us)")}),
}  # fmt: skip


def read_totals(path: Path, kind: str, out: Out) -> dict[tuple[str, str], tuple[int, int]]:
    """Totals of operators or types to `op_total`; returns (count, total in ns) by (name or type, device).

    The mean is recomputed where count and total are there; stored shares are not read. Where only a mean per execution
    is there, the total is mean x count, and unknown without a count.
    """
    sheet, (where, unit, columns) = Sheet(path), TOTALS[kind]
    at = {part: sheet.index(*columns.get(part, ())) for part in _PARTS}
    core = sheet.index("Core Type")
    totals: dict[tuple[str, str], tuple[int, int]] = {}
    shares, rows = Decimal(0), 0
    for line, row in sheet.rows():
        shares, rows = shares + (decimal(field(row, at["share"])) or 0), rows + 1
        name, type_ = field(row, at["name"]) or None, field(row, at["type"]) or None
        device = where if core is None else field(row, core)
        count, total, mean = _amounts(row, at, unit)
        if (name is None and type_ is None) or (total is None and mean is None):
            out.odd(path, "row without a name or a time", f"line {line}")
            continue
        if type_ is None and name is not None:
            type_ = out.info.get(name, {}).get("type") or op_type(name)
        out.add(
            "op_total", source=kind, name=name, type=type_, device=device or None, count=count, total_ns=total,
            mean_ns=mean, shapes=out.info.get(name or "", {}).get("in_shapes"),
            min_ns=duration(field(row, at["least"]), unit), max_ns=duration(field(row, at["most"]), unit),
            device_ns=duration(field(row, at["on_device"]), unit),
        )  # fmt: skip
        key = (name or type_ or "", device)
        if count is not None and total is not None and (key in totals or len(totals) < MOST):
            before = totals.get(key, (0, 0))
            totals[key] = (before[0] + count, before[1] + total)
    if at["share"] is not None:
        _check_shares(path, shares, rows, out)
    return totals


def _check_shares(path: Path, total: Decimal, rows: int, out: Out) -> None:
    """Each share has six digits."""
    rule = f"the shares of {rows} rows add up to 1"
    out.checks.that(abs(total - 1) <= Decimal("1e-6") * max(rows, 10), path, "(all)", rule, str(total))


def _amounts(row: list[str], at: dict[str, int | None], unit: str) -> tuple[int | None, int | None, int | None]:
    count = integer(field(row, at["count"]).removesuffix(".0"))
    count = count if count is not None and count > 0 else None
    total, mean = duration(field(row, at["total"]), unit), duration(field(row, at["mean"]), unit)
    if total is None and mean is not None and count is not None:
        total = mean * count
    if total is not None and total >= 1 << 62:
        total = None
    if mean is None and total is not None and count:
        mean = rounded_mean(total, count)
    return count, total, mean


def rounded_mean(total: int, count: int) -> int:
    """Return total / count, rounded half up, for whole numbers that are not negative."""
    return (2 * total + count) // (2 * count)


def read_framework(path: Path, out: Out) -> None:
    """Types and shapes of operators from `framework_raw_<r>.csv` (8, 9 and 10 columns), for the other files."""
    sheet = Sheet(path)
    name_at, type_at = sheet.need("full_kernel_name", "full_op_name"), sheet.need("kernel_type", "op_type")
    info_at = sheet.need("op_info")
    for line, row in sheet.rows():
        name = field(row, name_at)
        if not name:
            continue
        try:
            tensors = mapping(msgspec.json.decode(row[info_at].encode("utf-8", "replace")))
        except BAD_JSON:
            out.odd(path, "description that is not JSON", f"line {line}")
            tensors = {}
        describe(name, field(row, type_at) or None, tensors, out)


def describe(name: str, type_: str | None, tensors: dict[str, Any], out: Out) -> None:
    """Remember an operator's type and tensors (`input_0`, `output_0`, ...)."""
    shapes = {"in_shapes": _shapes(tensors, "input"), "out_shapes": _shapes(tensors, "output")}
    remember(name, {"type": type_, **shapes}, out)


def remember(name: str, facts: dict[str, Any], out: Out) -> None:
    """Remember facts of an operator, beside those that are known."""
    if name in out.info:
        out.info[name].update(facts)
    elif len(out.info) < MOST:
        out.info[name] = facts


def _shapes(tensors: dict[str, Any], side: str) -> str | None:
    parts = []
    for key, value in tensors.items():
        if key.startswith(side):
            tensor = mapping(value)
            shape = tensor.get("shape", "")
            shown = ",".join(map(str, shape)) if isinstance(shape, list) else str(shape)
            parts.append(f"{str(tensor.get('data_type', '')).removeprefix('NUMBER_TYPE_').lower()}[{shown}]")
    return "; ".join(parts)[:LONGEST] or None


def read_timeline(path: Path, out: Out) -> None:
    """Executions from `output_timeline_data_<r>.txt`: name, stream, start and duration in ms of the device counter."""
    sheet = Sheet(path)
    name_at, stream_at = sheet.need("op_name"), sheet.need("stream_id")
    start_at, dur_at = sheet.need("start_time(ms)"), sheet.need("duration(ms)")
    for line, row in sheet.rows():
        start, dur = ns(row[start_at], "ms"), duration(row[dur_at], "ms")
        name = field(row, name_at)
        if start is None or dur is None or not name:
            out.odd(path, "row without a name, a start and a duration", f"line {line}")
            continue
        kind = out.info.get(name, {}).get("type") or op_type(name)
        out.add(
            "op", op_id=out.operator(name, kind, "AI_CORE"), step=out.steps.at(start, CLOCK),
            start_ns=out.at(start, CLOCK), dur_ns=dur, self_ns=dur, track=f"stream {field(row, stream_at)}",
        )  # fmt: skip


def aicpu_rows(path: Path) -> Iterator[AicpuTask]:
    """Tasks in `aicpu_intermediate_<r>.csv`: totals in ms, run times in us of the counter."""
    sheet = Sheet(path)
    at = {name: sheet.need(name) for name in ("kernel_type", "total_time", "dispatch_time", "run_start", "run_end")}
    for _, row in sheet.rows():
        start, end = ns(row[at["run_start"]], "us"), ns(row[at["run_end"]], "us")
        dispatch, total = duration(row[at["dispatch_time"]], "ms"), duration(row[at["total_time"]], "ms")
        yield row[at["kernel_type"]].strip(), start, end, dispatch, total


def aicpu_records(path: Path) -> Iterator[AicpuTask]:
    """Tasks in the device's own log (`DATA_PREPROCESS.dev.AICPU.*`)."""
    for item in _NODE.finditer(whole_text(path, 1 << 26)):
        times = [ns(item[part], "us") for part in ("start", "end", "dispatch", "total")]
        yield op_type(item["node"]), times[0], times[1], times[2], times[3]


def read_aicpu(path: Path, tasks_in: Callable[[Path], Iterator[AicpuTask]], out: Out) -> None:
    """Executions on the AI CPU, and their totals."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for name, start, end, dispatch, total in tasks_in(path):
        if not name or total is None:
            out.notes.count(path, "row without a name and a total time")
            continue
        entry = sums[name]
        entry[:] = entry[0] + 1, entry[1] + total, entry[2] + (dispatch or 0), max(entry[3], total)
        if start is None or end is None or end < start:
            out.notes.count(path, "execution without a start and an end in this order")
            continue
        out.add(
            "op", op_id=out.operator(name, name, "AI_CPU"), step=out.steps.at(start, CLOCK),
            start_ns=out.at(start, CLOCK), dur_ns=end - start, self_ns=end - start, wait_ns=dispatch, track="AI CPU",
        )  # fmt: skip
    if not sums:
        raise SourceError(f"no execution in `{path}`, expected one per row", HINT)
    for name, (count, total, dispatch, longest) in sums.items():
        out.add(
            "op_total", source="aicpu", type=name, device="AI_CPU", count=count, total_ns=total,
            mean_ns=rounded_mean(total, count), max_ns=longest,
            dispatch_ns=dispatch,
        )  # fmt: skip


def read_descriptions(path: Path, out: Out) -> None:
    """Remember types and tensors of all operators of a graph, from `Framework.host.vm.graph_desc_info`."""
    for name, kind, tensors in descriptions(path):
        describe(name, kind or None, tensors, out)


def descriptions(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Full name, type and tensors (as in the column `op_info`) of each operator of a graph."""
    for line in lines(path, longest=LONG_LINE):
        fields = _FIELD.findall(line)
        name, kind = (dict(fields[:2]).get(part, "") for part in ("op_name", "op_type"))
        if name:
            yield name, kind, _tensors(fields[2:])


def _tensors(fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """`input_id:0 input_format:A input_data_type:40 input_shape:"1,2"` and so on."""
    tensors: dict[str, Any] = {}
    current: dict[str, Any] = {}
    for name, value in fields:
        side, _, what = name.partition("_")
        if what == "id":
            current = tensors.setdefault(f"{side}_{value}", {})
        elif what in ("format", "data_type", "shape"):
            current[what] = data_type(value) if what == "data_type" else value.strip('"')
    return tensors


def data_type(number: str) -> str:
    """Name of MindSpore's data type with this number, else the number itself."""
    index = int(number) - _FIRST_TYPE if number.isdecimal() and len(number) < 6 else -1
    return f"NUMBER_TYPE_{_TYPES[index]}" if 0 <= index < len(_TYPES) else number


_MILLION = 1_000_000
_WORK = ("FLOPs", "MFLOPs(10^6)", "MFLOPs(10^6 cube)", "MFLOPs(10^6 vector)")  # all in 10^6; the last two add up
SHAPES = 100_000  # operators with shapes that are told apart


def read_flops(path: Path, out: Out) -> None:
    """Floating-point operations of one execution, of every operator, for the other files. Rates are not read."""
    sheet = Sheet(path)
    name_at = sheet.need("full_kernel_name", "op_full_name", "full_name")
    at = [index for name in _WORK if (index := sheet.index(name)) is not None]
    for line, row in sheet.rows():
        name, cells = field(row, name_at), [decimal(field(row, index)) for index in at]
        counts = [value for value in cells if value is not None and value >= 0]
        total = sum(counts, Decimal(0)) * _MILLION
        if not name or not counts or total >= LARGEST:
            out.odd(path, "row without a name and a count", f"line {line}")
            continue
        remember(name, {"flops": int(total.to_integral_value())}, out)


def read_dynamic_shapes(path: Path, out: Out) -> None:
    """Operators summed by name and shapes, to `op_total`: `operator` -> step -> list of executions in us."""
    sums: dict[tuple[str, str, str, str], list[int]] = {}
    for (part, step), executions in entries(path, 2):
        if part != "operator":
            continue
        for one in executions if isinstance(executions, list) else []:
            _count(path, step, mapping(one), sums, out)
    if not sums:
        raise SourceError(f"no execution in `{path}`, expected operator -> step -> list", HINT)
    for (device, kind, name, shapes), (count, total, least, most) in sums.items():
        out.add(
            "op_total", source="dynamic_shape", name=name or None, type=kind or None, device=device or None,
            shapes=shapes or None, count=count, total_ns=total, mean_ns=rounded_mean(total, count), min_ns=least,
            max_ns=most,
        )  # fmt: skip


def _count(
    path: Path, step: str, one: dict[str, Any], sums: dict[tuple[str, str, str, str], list[int]], out: Out
) -> None:  # fmt: skip
    dur, shapes = duration(text(one.get("dur")), "us"), one.get("shape_info")
    shown = "; ".join(map(str, shapes)) if isinstance(shapes, list) else ""
    words = [text(one.get(key)) for key in ("op_side", "op_type", "op_name")]
    key = (words[0].upper()[:LONGEST], words[1][:LONGEST], words[2][:LONGEST], shown[:LONGEST])
    if dur is None or not (key[1] or key[2]):
        out.odd(path, "execution without a name and a duration", f"step {step[:20]}")
    elif key not in sums and len(sums) >= SHAPES:
        out.notes.count(path, f"operator beyond the first {SHAPES}")
    else:
        entry = sums.setdefault(key, [0, 0, dur, dur])
        entry[0] += 1
        entry[1] += dur
        entry[2], entry[3] = min(entry[2], dur), max(entry[3], dur)
