"""Operators of the network, and communication."""

from __future__ import annotations

from typing import Any

from pipeprof.report.sections.block import Block, Section, costs, rows_at
from pipeprof.units import format_ns


def operators_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """Types and single operators with the most time, of the rank in focus."""
    section = Section("Operators (from op windows)")
    types = rows_at(content["ops"], focus)
    rows = [[row["type"] or "-", row["phase"] or "-", str(row["count"]), *costs(row)] for row in types[:10]]
    if rows:
        section.blocks.append(
            Block(("type", "phase", "count", "total", "mean", "max", "share"), rows, frozenset(range(2, 7)))
        )
        section.notes.append(
            f"{len(rows)} of {len(types)} types; all of them: pipeprof ops {content['run']['path']} --top 0"
        )
    instances = [
        [_short(row["name"]), row["phase"] or "-", row["in_shapes"] or "-", str(row["count"]), *costs(row)]
        for row in rows_at(content["op_instances"], focus)[:5]
    ]
    if instances:
        section.blocks.append(
            Block(
                ("operator", "phase", "input shapes", "count", "total", "mean", "max", "share"),
                instances,
                frozenset(range(3, 8)),
            )
        )
    return section


def communication_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """Collectives by kind, of the rank in focus."""
    section = Section("Communication (from op windows)")
    rows = [
        [
            row["kind"], str(row["events"]), "-" if row["events_per_step"] is None else f"{row['events_per_step']:.1f}",
            *(format_ns(row[f"{name}_ns"]) for name in ("total", "median", "max", "tail")),
        ]
        for row in rows_at(content["steps"]["communication"], focus)
    ]  # fmt: skip
    if rows:
        section.blocks.append(
            Block(("kind", "events", "per step", "total", "median", "max", "in the tail"), rows, frozenset(range(1, 7)))
        )
    return section


def _short(name: str) -> str:
    """The last two parts of a scoped name; the full one is in the JSON report and in `pipeprof ops`."""
    parts = name.split("/")
    return name if len(parts) < 3 else "/".join(["...", *parts[-2:]])
