"""What a section is made of, and what several sections need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PHASES = {
    "data_wait": "data wait",
    "compute": "compute (forward+backward and tail, not split)",
    "forward_backward": "forward+backward",
    "tail": "tail",
    "whole": "whole step",
}


@dataclass
class Block:
    """A table of text cells; a column is right-aligned when `right` says so."""

    head: Sequence[str]
    rows: list[list[str]]
    right: frozenset[int] = frozenset()


@dataclass
class Section:
    """A title, sentences, and tables. `strong` sentences are the ones to read first."""

    title: str
    strong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


def focus_of(content: dict[str, Any]) -> tuple[int, int]:
    """The repetition and rank to show in detail: the one with the slowest median step."""
    rows = [row for row in content["steps"]["summary"] if row["kind"] != "eval"]
    steady = [row for row in rows if row["kind"] == "train"] or rows
    slowest = max(steady, key=lambda row: (row["median_ns"], -row["rep"], -row["rank"]), default=None)
    if slowest is None:  # no steps, but perhaps a pipeline
        slowest = next(iter(content["pipeline"]["pipelines"]), {"rep": 0, "rank": 0})
    return slowest["rep"], slowest["rank"]


def rows_at(rows: Iterable[dict[str, Any]], focus: tuple[int, int]) -> list[dict[str, Any]]:
    """The rows of one repetition and rank."""
    return [row for row in rows if (row["rep"], row["rank"]) == focus]


def times(row: dict[str, Any]) -> list[str]:
    """Mean, median, 90th percentile and maximum as text."""
    return [format_ns(row[f"{name}_ns"]) for name in ("mean", "median", "p90", "max")]


def costs(row: dict[str, Any]) -> list[str]:
    """Total, mean, maximum and share as text."""
    return [*(format_ns(row[f"{name}_ns"]) for name in ("total", "mean", "max")), format_ratio(row["share"])]
