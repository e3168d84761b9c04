"""Rows and totals of an operator table, ready to print."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.escape import line
from pipeprof.units import format_bytes, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.engine import Engine

    Row = dict[str, Any]

OPS_VERSION = 1


@dataclass
class Part:
    """One table: the rows that are shown, how many there are, and on which side the operators ran."""

    side: str
    rows: list[dict[str, Any]]
    count: int
    several: bool = False

    @property
    def hidden(self) -> int:
        """Rows that are not shown."""
        return self.count - len(self.rows)


@dataclass
class Content:
    """What is printed: `summary` and `busy` above the tables, `footer` below them; `total` is for programs."""

    kind: str
    parts: list[Part] = field(default_factory=list)
    summary: dict[str, float | None] = field(default_factory=dict)
    footer: dict[str, float | None] = field(default_factory=dict)
    busy: list[str] = field(default_factory=list)
    total: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    aggregated: bool = False

    def document(self) -> dict[str, Any]:
        """`{schema_version, total, rows[, host_rows]}`; whole numbers are integers."""
        rows = [_plain(row) for row in self.parts[0].rows] if self.parts else []
        more = {f"{part.side}_rows": [_plain(row) for row in part.rows] for part in self.parts[1:]}
        return {"schema_version": OPS_VERSION, "total": with_integers(self.total), "rows": rows, **more}


def with_integers(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose whole floating-point numbers are integers; what JSON has no number for is null."""
    return {name: _number(value) for name, value in row.items()}


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    plain = with_integers(row)
    for name in ("in_shapes", "out_shapes", "in_strides"):
        if isinstance(plain.get(name), str):
            plain[name] = shapes_of(plain[name])
    return plain


def shapes_of(text: str) -> Any:
    """Shapes as lists when the text is JSON, as the text itself when it is not."""
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return text


def _number(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def names(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose `name`, where there is none, is the type."""
    return [{**row, "name": row.get("name") or row.get("type") or row.get("key")} for row in rows]


ALL = 1 << 40
HOST = "host"


def with_totals(engine: Engine, group: str, rows: list[Row]) -> list[Row]:
    """`rows`, and groups by `type` or `name` from op/totals for devices whose executions were not recorded.

    Each device is apart: nothing can be added up over AI Core, AI CPU and host, which run side by side. Calls on the
    host count only for ranks without any execution.
    """
    if group not in ("type", "name"):
        return rows
    executed = {(row["rep"], row["rank"]) for row in rows}
    totals = engine.rows("op/totals", group_by=group, top=ALL)
    return rows + [
        {
            **row,
            "phase": None,
            "side": row["device"] or None,
            "of_device": f"{row['device']} {row['layer']}".strip(),
            "count": row["count"] or 0,
        }
        for row in totals
        if not row["recorded"] and (row["device"] != HOST or (row["rep"], row["rank"]) not in executed)
    ]


def place_of(row: Row) -> tuple[int, int, str]:
    """What the shares of a row are of: its repetition and rank, and of totals their device."""
    return row["rep"], row["rank"], row.get("of_device", "")


def has_totals(engine: Engine) -> bool:
    """Whether the run has totals of operators whose executions were not recorded."""
    return any(not row["recorded"] for row in engine.rows("op/totals", group_by="type", top=1))


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
