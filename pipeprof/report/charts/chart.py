"""What a chart is, and how its description is filled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

Spec = dict[str, Any]  # Vega-Lite

SPECS = Path(__file__).with_name("specs")
_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
# Told apart by people who are colour-blind too (after Okabe and Ito), on white and on black.
COLOURS = ("#0f7ab8", "#d55e00", "#009e73", "#cc79a7", "#56a8d8", "#c98a00", "#7a68b3", "#888888")
PHASES = {  # of a step; the wait alone is warm
    "data_wait": COLOURS[1], "launch": COLOURS[7], "before_forward": COLOURS[7], "forward": COLOURS[0],
    "backward": COLOURS[4], "forward_backward": "#3a91c6", "compute": "#7f9fbf", "whole": "#7f9fbf",
    "gradients": COLOURS[5], "optimizer": COLOURS[2], "after": COLOURS[3], "tail": "#63b89d", "other": "#a9b7c6",
    "communication_exposed": COLOURS[6], "communication_tail": "#9c8dc9", "host_gap": "#b98a3c",
    "other_loader": "#e39a5f",
}  # fmt: skip


class Chart(NamedTuple):
    """A chart of a page. Without `drawn` there is nothing to draw, and the caption says what was not measured."""

    name: str  # its id
    title: str
    caption: str  # what is drawn, and what was thinned: sentences
    said: str = ""  # what the chart shows, for those who do not see it
    drawn: Spec | None = None
    table: Sequence[str] = ()  # HTML below it

    @property
    def spec(self) -> Spec:
        """The chart as Vega-Lite, in the page's colours, light or dark."""
        return {**(self.drawn or {}), "description": self.said, "config": filled("config")}


def filled(name: str, **values: Any) -> Spec:
    """The Vega-Lite of `specs/NAME.json`, with `values["key"]` in place of each string `$key`.

    A part of a list is left out where the value that its `when` names is empty or false.
    """
    spec: Spec = _filled(_template(name), values)
    return spec


@cache
def _template(name: str) -> Any:
    return json.loads(SPECS.joinpath(f"{name}.json").read_text(encoding="utf-8"))


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, str) and part.startswith("$"):
        return values[part[1:]]
    if isinstance(part, dict):
        return {name: _filled(inner, values) for name, inner in part.items() if name != "when"}
    if isinstance(part, list):
        wanted = [one for one in part if not isinstance(one, dict) or _filled(one.get("when", True), values)]
        return [_filled(one, values) for one in wanted]
    return part


def coloured(colours: Mapping[str, str]) -> Spec:
    """The scale of names that have these colours."""
    return {"domain": list(colours), "range": list(colours.values())}


def ticks(last: int) -> list[int]:
    """Whole ticks of an axis from 1 to `last`; Vega's `tickMinStep` does not hold where there are few."""
    step = -(-last // 10)
    return sorted({1, *range(step, last + 1, step)})


def alone(points: Sequence[dict[str, Any]], line: str) -> list[dict[str, Any]]:
    """Points of a line (the name that they have as `line`) with nothing to be joined to: it would not be seen."""
    many = Counter(point[line] for point in points)
    return [point for point in points if many[point[line]] == 1]


def time_unit(largest_ns: float) -> tuple[str, float]:
    """The unit of an axis that reaches so far, and how many ns it is."""
    return next(((name, size) for name, size in _UNITS if largest_ns >= size), _UNITS[-1])


def cut(text: str, most: int, *, end: bool = False) -> str:
    """Its first letters, at most so many, or its last ones."""
    if len(text) <= most:
        return text
    return f"\u2026{text[-most + 1 :]}" if end else f"{text[: most - 1]}\u2026"


def middle_cut(text: str, most: int) -> str:
    """Its first and last letters, at most so many: both ends of a name or a path tell what it is."""
    front = (most - 1) // 3
    return text if len(text) <= most else f"{text[:front]}\u2026{text[front + 1 - most :]}"


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."
