"""Numbers and shapes of an operator table as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.ops.content import shapes_of
from pipeprof.units import format_bytes, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOT_KNOWN = "N/A"
_PREFIXES = " KMGTPEZY"
MOST_PARTLY = 5  # rows that are named


def amount(value: float | None, unit: str) -> str:
    """A number in powers of 1000: `236.03 MFLO`; `N/A` when it is not known."""
    if value is None:
        return NOT_KNOWN
    scaled, power = value, 0
    while abs(scaled) >= 999.995 and power < len(_PREFIXES) - 1:
        scaled, power = scaled / 1000, power + 1
    return f"{scaled:.2f} {_PREFIXES[power].strip()}{unit}"


def partly_known(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What stands below a table: of which rows the operations are those of only some of the executions."""
    partly = [row for row in rows if 0 < (row.get("computation_count") or 0) < row["count"]]
    several = len({(row["rep"], row["rank"]) for row in rows}) > 1
    said = [_counted(row, several=several) for row in partly[:MOST_PARTLY]]
    if len(partly) > MOST_PARTLY:
        said.append(f"some of {len(partly) - MOST_PARTLY} more rows (`computation_count` in --format json)")
    counted = "computation counts only these, FLOPS divides it by the time of all"
    return [line(f"FLOPs are known for {', '.join(said)}: {counted}")] if said else []


def _counted(row: Mapping[str, Any], *, several: bool) -> str:
    of = "" if row["name"] == "all" else f" of {row['name'] or NOT_KNOWN}"
    where = f" (rep {row['rep']}, rank {row['rank']})" if several else ""
    return f"{row['computation_count']} of {row['count']} executions{of}{where}"


def size(value: float | None, per: str = "") -> str:
    """Bytes in powers of 1024: `3.67 MiB`; `N/A` when it is not known."""
    return NOT_KNOWN if value is None else format_bytes(value) + per


def time(value: float | None) -> str:
    """A duration; `N/A` when it is not known."""
    return NOT_KNOWN if value is None else format_ns(value)


def share(value: float | None) -> str:
    """A share; `N/A` when it is not known."""
    return NOT_KNOWN if value is None else format_ratio(value)


def torch_time(value: float | None) -> str:
    """A duration as torch prints it: `184.000us`; `N/A` when it is not known."""
    if value is None:
        return NOT_KNOWN
    unit, per = next(((unit, per) for unit, per in (("s", 1e9), ("ms", 1e6)) if value >= per), ("us", 1e3))
    return f"{value / per:.3f}{unit}"


def torch_share(value: float | None) -> str:
    """A share as torch prints it: `6.44%`; `N/A` when it is not known."""
    return NOT_KNOWN if value is None else f"{100 * value:.2f}%"


def torch_size(value: float | None) -> str:
    """Bytes as torch prints them: `94.85 MB`; `N/A` when it is not known."""
    if value is None:
        return NOT_KNOWN
    for unit, per in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(value) >= per:
            return f"{value / per:.2f} {unit}"
    return f"{value:.0f} B"


def shapes(text: str | None, strides: str | None = None) -> list[str]:
    """One shape each, as `{1,3,224,224}`, with ` -[strides]` when the input is not contiguous."""
    parsed = shapes_of(text) if text else []
    if not isinstance(parsed, list) or (parsed and all(isinstance(size, int) for size in parsed)):
        return [line(text)]  # one shape, or text that is no list
    steps: Any = shapes_of(strides) if strides else []
    texts = []
    for index, shape in enumerate(parsed):
        step = steps[index] if isinstance(steps, list) and index < len(steps) else None
        one = "{" + ",".join(map(line, shape)) + "}" if isinstance(shape, list) else line(shape)
        texts.append(one + (f" -[{','.join(map(line, step))}]" if isinstance(step, list) else ""))
    return texts
