"""Rows and totals of an operator table, ready to print."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
