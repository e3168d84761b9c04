"""Operators of the network, and the devices and streams that ran them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeprof.report.answer import command
from pipeprof.report.answer.shape import capital
from pipeprof.report.charts.chart import cut
from pipeprof.report.sections.block import Section, costs, filled, in_windows, rows_at, short_name
from pipeprof.report.words import busy
from pipeprof.units import format_ns, format_ratio

Row = dict[str, Any]

MOST_LETTERS = 120  # of a name
LAYERS = {"operator_details": "on the host", "api_statistic": "of the API", "dataset": "of the dataset"}


def operators_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """Types and single operators with the most time, of the rank in focus."""
    section = Section("Operators (from op windows)" if in_windows(content) else "Operators")
    chosen = content["op_step"]
    only: tuple[str, ...] = ()
    if chosen and chosen["why"] is None:
        only = ("--step", str(chosen["step"]))
        section.title = f"Operators of step {chosen['step']}"
    elif chosen:
        section.notes.append(f"{capital(chosen['why'])}: these are of all steps")
    section.notes += [busy.sentence(row) for row in busy.telling(rows_at(content["op_busy"], focus))]
    types = rows_at(content["ops"], focus)
    nested = any(row["self_ns"] not in (None, row["total_ns"]) for row in types)
    times = ("count", "total", "mean", "max", "own time", "share of own" if nested else "share")
    rows = [
        [_cut(row["type"]), row["phase"] or "-", str(row["count"]), *costs(row, nested=nested)]
        for row in types[: content["top"]]
    ]
    if rows:
        section.blocks.append(filled(("type", "phase", *times), rows, words=(0, 1)))
        every = command.own(content["run"], "ops", *only, "--top", "0")
        section.notes.append(f"{len(rows)} of {len(types)} types; all of them: {every}")
    recorded = not content["run"]["source"].startswith("import:")
    instances = [
        [
            _cut(short_name(row["name"])),
            row["phase"] or "-",
            row["in_shapes"] or "-",
            _site(row["site"]) if recorded else "-",
            str(row["count"]),
            *costs(row, nested=nested),
            format_ratio(row["occupancy_ratio"]),
        ]
        for row in rows_at(content["op_instances"], focus)
    ]
    if instances:
        head = ("operator", "phase", "input shapes", "called from", *times, "occupancy")
        section.blocks.append(filled(head, instances, words=(0, 1, 2, 3)))
    if any(row["occupancy_ratio"] is not None for row in rows_at(content["op_instances"], focus)):
        section.notes.append("occupancy: of the warps that the device could keep active, as the profiler estimates it")
    if nested:
        section.notes.append("own time: without the operators that an operator calls")
    add_devices(section, rows_at(content["op_devices"], focus))
    add_streams(section, rows_at(content["op_streams"], focus))
    _totals(section, content, focus)
    return section


def _cut(name: str | None) -> str:
    """A kernel's name in C++ can have a thousand letters; `pipeprof ops` and the JSON report have all of them."""
    return cut(name or "-", MOST_LETTERS)


def _site(site: str | None) -> str:
    """`train.py:41`; the whole path is in the JSON report."""
    return site.rpartition("/")[2] if site else "-"


def _totals(section: Section, content: dict[str, Any], focus: tuple[int, int]) -> None:
    """Operators of which only sums are known, device by device: types, then single ones."""
    for key, first in (("op_totals", "type"), ("op_total_instances", "operator")):
        rows = [row for row in rows_at(content[key], focus) if not row["recorded"]]
        for device, layer in dict.fromkeys((row["device"], row["layer"]) for row in rows):
            of_device = [row for row in rows if (row["device"], row["layer"]) == (device, layer)]
            here = [row for row in of_device if first == "type" or row["name"] is not None]
            listed = [
                [
                    short_name(row["name"]) if row["name"] is not None else row["type"] or "-",
                    row["type"] if first == "operator" and row["type"] else "-",
                    row["in_shapes"] or "-", "-" if row["count"] is None else str(row["count"]),
                    *(format_ns(row[f"{name}_ns"]) for name in ("total", "mean", "max")), format_ratio(row["share"]),
                ]
                for row in here
            ]  # fmt: skip
            where = LAYERS.get(layer) or f"on {device or 'the device'}"
            head = (f"{first} {where}", "type", "input shapes", "count", "total", "mean", "max",
                    "share")  # fmt: skip
            if listed:
                section.blocks.append(filled(head, listed, words=(0, 1, 2)))
    if any(not row["recorded"] for row in rows_at(content["op_totals"], focus)):
        section.notes.append("tables that name a device are sums that the source gives; shares are of that device")


AI_CPU = "AI_CPU"
MOST_TYPES, MOST_STREAMS = 10, 8


def add_devices(section: Section, rows: Sequence[Row]) -> None:
    """Several devices in sum, and the types of the AI CPU: operators there hold up a step that the AI Core computes."""
    devices = list(dict.fromkeys(row["device"] for row in rows))
    if len(devices) > 1:
        listed = []
        for device in devices:
            here = [row for row in rows if row["device"] == device]
            times = [row["self_ns"] for row in here]
            total = None if None in times else sum(times)
            listed.append([
                device or "not named", str(len(here)), str(sum(row["count"] for row in here)), format_ns(total),
            ])  # fmt: skip
        section.blocks.append(filled(("device", "types", "executions", "own time"), listed))
    there = [row for row in rows if row["device"] == AI_CPU][:MOST_TYPES]
    if there:
        listed = [
            [
                row["type"] or "-", str(row["count"]),
                *(format_ns(row[f"{name}_ns"]) for name in ("total", "mean", "max", "wait")),
                format_ratio(row["share"]),
            ]
            for row in there
        ]  # fmt: skip
        head = (f"type on {AI_CPU}", "executions", "total", "mean", "max", "waiting to start", "of own time")
        section.blocks.append(filled(head, listed))


def add_streams(section: Section, rows: Sequence[Row]) -> None:
    """The streams with the most time; one alone says nothing that the other tables do not."""
    if len(rows) < 2:
        return
    largest = sorted(rows, key=lambda row: (-(row["total_ns"] or 0), row["track"]))[:MOST_STREAMS]
    listed = [
        [
            row["track"] or "not named", str(row["tasks"]), str(row["operators"]),
            *(format_ns(row[f"{name}_ns"]) for name in ("total", "mean", "max")), format_ratio(row["step_share"]),
            f"{short_name(row['longest'])} ({format_ns(row['longest_ns'])})",
        ]
        for row in largest
    ]  # fmt: skip
    head = (f"stream ({len(listed)} of {len(rows)})", "tasks", "operators", "own time", "mean", "max", "of its steps",
            "most time in")  # fmt: skip
    section.blocks.append(filled(head, listed, words=(0, 7)))
