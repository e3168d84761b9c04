"""Columns that rows can be ordered by: their names, other names for them, and how an order is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

# Columns of the table of single operators; `place` stands for an order that Python knows and SQL does not.
SINGLE = (
    "self_ns", "total_ns", "wait_ns", "exec_ns", "share", "cumulative_ns", "name", "type", "opr_id", "op_id", "count",
    "computation", "flops", "memory", "bandwidth", "in_shapes", "out_shapes", "device",
)  # fmt: skip
PLACED = ("name", "type", "device", "opr_id", "in_shapes", "out_shapes")

_ALIASES = {
    "time": "self_ns", "self": "self_ns", "self_time": "self_ns", "device_self_time": "self_ns",
    "host_self_time": "self_ns", "ratio": "share", "percent": "share", "total": "total_ns", "total_time": "total_ns",
    "wait": "wait_ns", "exec": "exec_ns", "cumulative": "cumulative_ns", "cum_time": "cumulative_ns",
    "cumulative_share": "cumulative_ns", "operator": "name", "operator_info": "name", "info": "name",
    "opr_name": "name", "opr_type": "type", "id": "opr_id", "opr_count": "count", "calls": "count",
    "number_of_calls": "count", "flo": "computation", "mflops": "flops", "bytes": "memory", "shapes": "in_shapes",
    "input_shapes": "in_shapes", "mean": "mean_ns", "avg": "mean_ns", "max": "max_ns", "min": "min_ns",
    "cpu_time": "mean_ns", "cpu_time_total": "total_ns", "self_cpu_time_total": "self_ns", "cpu_total": "total_ns",
    "self_cpu": "self_ns", "self_cpu_time": "self_ns", "device_time_total": "device_total_ns",
    "self_device_time_total": "device_self_ns", "device_total": "device_total_ns", "self_device": "device_self_ns",
    "device_time": "device_mean_ns", "cpu_memory_usage": "memory_bytes",
    "self_cpu_memory_usage": "self_memory_bytes", "self_memory": "self_memory_bytes",
    "device_memory_usage": "device_memory_bytes", "self_device_memory_usage": "self_device_memory_bytes",
    "key": "name", "flops": "computation", "total_flops": "computation", "total_kflops": "computation",
    "total_mflops": "computation", "total_gflops": "computation", "cpu_time_avg": "mean_ns",
    "device_time_avg": "device_mean_ns", "cpu_mem": "memory_bytes", "self_cpu_mem": "self_memory_bytes",
    "device_mem": "device_memory_bytes", "self_device_mem": "self_device_memory_bytes", "of_calls": "count",
    "source_location": "stack",
}  # fmt: skip


_ACCELERATOR = re.compile(r"(?<![a-z])(?:cuda|xpu|npu|hpu|mtia|hip|privateuse1)(?![a-z0-9])")
_NO_LETTER = re.compile(r"[^a-z0-9_+]+")


_TORCH = re.compile(r"(?:^|_)(?:cpu|device)_(?:time|total|mem|memory)(?:_|$)|^self_(?:cpu|device)(?:_|$)")


class Order(NamedTuple):
    """A column and a direction."""

    column: str
    ascending: bool


def parse_order(text: str, columns: Sequence[str], elsewhere: Sequence[str] = ()) -> Order:
    """`COL` is descending, `+COL` ascending; names are taken in any case, with blanks, `-`, `_`, `#` or `%`.

    Raises UsageError, listing the columns, for an unknown one. `elsewhere`: those that another table of the same
    command line is ordered by, which the list has, too.
    """
    ascending, wanted = text.startswith("+"), _word(text)
    for name in (wanted, _ALIASES.get(wanted, ""), f"{wanted}_ns", f"{wanted}_bytes"):
        if name in columns:
            return Order(name, ascending)
    names = dict.fromkeys([*columns, *elsewhere])
    raise UsageError(f"unknown column `{text}` to order by", did_you_mean(wanted, names))


def is_torchs(text: str) -> bool:
    """Whether a column is called as in torch's own table (`self_cuda_time_total`, `CPU Mem`)."""
    return _TORCH.search(_word(text)) is not None


def _word(text: str) -> str:
    wanted = text.removeprefix("+").lower().replace(" ", "_").replace("-", "_")
    return _ACCELERATOR.sub("device", _NO_LETTER.sub("", wanted).strip("_"))
