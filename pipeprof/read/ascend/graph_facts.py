"""Facts about operators of a graph: work (`flops_<r>.txt`), and shapes that change (`dynamic_shape_info_<r>.json`)."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read.ascend.graph_ops import remember, rounded_mean
from pipeprof.read.source.content import HINT
from pipeprof.read.source.document import mapping, text
from pipeprof.read.source.nested import entries
from pipeprof.read.source.numbers import LARGEST, decimal, duration
from pipeprof.read.source.sheet import Sheet, field
from pipeprof.read.tables.operators import LONGEST

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

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
