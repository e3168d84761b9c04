"""Changed settings of a training, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def changes(what: Iterable[Mapping[str, Any]]) -> str:
    """All in one line: `MapOp 2 `rotate`: workers 1 -> 2; BatchOp 1: workers 1 -> 2`."""
    return "; ".join(map(change, what))


def change(item: Mapping[str, Any]) -> str:
    """Of one operator, or of what the command runs in."""
    text = values(item["change"])
    named = f" `{item['name']}`" if item["name"] else ""
    moved = item["change"].get("maps_after")
    if moved is not None:
        text = "in front of the map that feeds it" if moved[1] == 1 else f"in front of the {moved[1]} maps that feed it"
    if item["op"] == "environment":
        text = ", ".join(f"{name}={new}" for name, (_, new) in item["change"].items())
    if "cache" in item["change"]:
        text = f"rows kept in memory, at most {format_bytes(item['change']['cache'][1])}"
    return f"{item['op']}{named}: {text}"


def values(changed: Mapping[str, Sequence[Any]]) -> str:
    """`workers 1 -> 2, processes no`: what stays as it is, is one value."""
    return ", ".join(
        f"{name} {_value(new)}" if old == new else f"{name} {_value(old)} -> {_value(new)}"
        for name, (old, new) in changed.items()
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unset" if value is None else str(value)
