"""Communication: how much of a step, in which phase, in which stream and collective, over which kind of link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeprof.report.sections.block import Block, Section, filled, format_rate, in_windows, portion, rows_at, short_name
from pipeprof.report.words.names import INTERVALS
from pipeprof.units import format_bytes, format_count, format_ns, format_ratio

Row = dict[str, Any]

SOURCES = {"parts": "operators", "split": "its profiler's division", "trace": "events"}


def communication_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """The rank in focus."""
    steps = content["steps"]
    section = Section("Communication (from op windows)" if in_windows(content) else "Communication")
    split = [row for row in rows_at(steps["communication_split"], focus) if row["comm_ns"] or row["exposed_ns"]]
    _split(section, split)
    _kinds(section, rows_at(steps["communication"], focus))
    _streams(section, rows_at(steps["streams"], focus), content["top"])
    _collectives(section, rows_at(steps["collectives"], focus))
    _transports(section, rows_at(steps["transports"], focus))
    return section


def _split(section: Section, rows: Sequence[Row]) -> None:
    listed = [
        [
            f"{SOURCES[row['source']]} ({format_count(row['steps'], 'step')})",
            portion(row, "comm"), format_ns(row["overlapped_ns"]),
            portion(row, "exposed"),
        ]
        for row in rows
    ]  # fmt: skip
    if not listed:
        return
    section.blocks.append(filled(("per step, from", "communication", "overlapped", "exposed"), listed))
    _phases(section, rows)
    sources = {row["source"] for row in rows}
    if sources == {"trace"}:
        section.notes.append(
            "overlapping events count once; which of them ran beside operators was not recorded, so what lies between "
            "FP and BP may be overlapped or exposed"
        )
    else:
        section.notes.append(
            "overlapped: beside operators of this rank; exposed: no other operator of this rank runs meanwhile"
        )


def _phases(section: Section, rows: Sequence[Row]) -> None:
    """Where in a step communication runs, from its events."""
    listed = [
        [title, format_ns(row[f"{name}_ns"]), format_ratio(row[f"{name}_ns"] / row["step_ns"])]
        for row in rows
        if row["source"] == "trace" and row["step_ns"]
        for name, title in INTERVALS.items()
        if row.get(f"{name}_ns") is not None
    ]
    if listed:
        head = ("communication in", "per step", "of the step")
        section.blocks.append(Block(head, listed, frozenset((1, 2))))


def _kinds(section: Section, rows: Sequence[Row]) -> None:
    listed = [
        [
            row["kind"], str(row["events"]), "-" if row["events_per_step"] is None else f"{row['events_per_step']:.1f}",
            *(format_ns(row[f"{name}_ns"]) for name in ("total", "median", "max", "tail")),
        ]
        for row in rows
    ]  # fmt: skip
    if listed:
        head = ("kind", "events", "per step", "total", "median", "max", "in the tail")
        section.blocks.append(Block(head, listed, frozenset(range(1, 7))))


def _streams(section: Section, rows: Sequence[Row], top: int) -> None:
    if len(rows) < 2:
        return
    largest = sorted(rows, key=lambda row: (-row["total_ns"], row["track"]))[:top]
    listed = [
        [
            row["track"] or "not named", str(row["events"]), f"{row['events_per_step']:.1f}",
            format_ns(row["total_ns"]), format_ns(row["mean_ns"]), format_ns(row["max_ns"]),
            format_ratio(row["step_share"]),
        ]
        for row in largest
    ]  # fmt: skip
    head = (f"stream ({len(listed)} of {len(rows)})", "events", "per step", "total", "mean", "max", "of the step")
    section.blocks.append(Block(head, listed, frozenset(range(1, 7))))


def _collectives(section: Section, rows: Sequence[Row]) -> None:
    listed = [
        [
            short_name(row["name"]), row["kind"] or "-", "-" if row["events"] is None else str(row["events"]),
            format_ns(row["total_ns"]), format_ns(row["median_ns"]), format_ratio(row["tail_share"]),
            format_ns(row["transit_ns"]), format_ns(row["wait_ns"]),
        ]
        for row in rows
    ]  # fmt: skip
    if listed:
        head = ("operator", "kind", "events", "total", "median", "tail", "transfer", "waiting")
        section.blocks.append(filled(head, listed, words=(0, 1)))


def _transports(section: Section, rows: Sequence[Row]) -> None:
    listed = [
        [row["transport"], str(row["moves"]), format_bytes(row["moved_bytes"]), format_ns(row["moving_ns"]),
         format_rate(row["rate"]), format_rate(row["median_rate"])]
        for row in rows
    ]  # fmt: skip
    if listed:
        head = ("moved over", "moves", "bytes", "time", "rate", "usual rate")
        section.blocks.append(Block(head, listed, frozenset(range(1, 6))))
