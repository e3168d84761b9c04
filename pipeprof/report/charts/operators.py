"""The types of operator that took most time, as bars, the share of each as a ring, and a table of all operators."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import COLOURS, Chart, coloured, cut, filled, middle_cut, sentence, time_unit
from pipeprof.report.charts.chart import PHASES as COLOUR_OF
from pipeprof.report.charts.steps import PHASES
from pipeprof.report.section_html import block_lines
from pipeprof.report.sections import Block
from pipeprof.units import format_count, format_ns, format_ratio

Row = dict[str, Any]

TITLE = "Operators by type"
MOST = 20
SLICES = len(COLOURS) - 1  # of the ring; the last colour is for all other types
LETTERS = 20  # of a name in its legend, which a narrow page has room for
UNKNOWN = "not known"
OTHERS = {"mixed": COLOUR_OF["compute"], "communication": COLOUR_OF["communication_exposed"]}
INSTANCES = 500
_WORDS = (("operator", "name"), ("type", "type"), ("phase", "phase"), ("shapes", "in_shapes"), ("called from", "site"))
_NUMBERS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("executions", "count", str), ("own time", "self_ns", format_ns), ("mean", "mean_ns", format_ns),
    ("share", "share", format_ratio), ("occupancy", "occupancy_ratio", format_ratio),
)  # fmt: skip
_MOST_LETTERS = 160  # of a cell
_LETTERS_SAID = 60  # of a name in a sentence


def chart(rows: Sequence[Row], instances: Sequence[Row] = (), title: str = TITLE) -> Chart:
    """The first types of op/by_type of one rank, and below them a table of rows of op/by_instance."""
    timed = [row for row in rows if row["self_ns"] is not None]
    first = timed[:MOST]
    if not first:
        lack = "The time of no operator is known." if rows else "No execution of an operator was recorded."
        return Chart("chart-operators", title, lack, table=table_of(instances))
    longest = f"most own time has {middle_cut(_name(first[0]), _LETTERS_SAID)}"
    said = longest if first[0]["share"] is None else f"{longest}: {format_ratio(first[0]['share'])} of all operators"
    more = "" if title != TITLE else " Executions in training steps count."
    more += f" The first {MOST} of {len(timed)} types are drawn." if len(timed) > MOST else ""
    if len(timed) < len(rows):
        more += f" The time of {format_count(len(rows) - len(timed), 'type')} is not known."
    return Chart("chart-operators", title, sentence(said) + more, said, _drawn(first, timed), table_of(instances))


def _name(row: Row) -> str:
    return "(unknown)" if row["type"] is None else line(row["type"])


def _colour(phase: str) -> str:
    """That of the phase where steps are drawn."""
    return PHASES[phase][1] if phase in PHASES else OTHERS.get(phase, COLOURS[7])


def slices(rows: Sequence[Row]) -> list[Row]:
    """The ring: label and share (0..1) of the first SLICES of rows with a time, then of all others; no time, none."""
    parts = [(_name(row), row["self_ns"]) for row in rows[:SLICES]]
    rest = rows[SLICES:]
    if rest:
        parts.append((format_count(len(rest), "other type"), sum(row["self_ns"] for row in rest)))
    total = sum(own for _, own in parts)
    return [
        {"place": index, "label": f"{cut(name, LETTERS)} {format_ratio(own / total)}", "share": round(own / total, 6)}
        for index, (name, own) in enumerate(parts)
        if total
    ]


def _drawn(rows: Sequence[Row], timed: Sequence[Row]) -> Row:
    unit, size = time_unit(max(row["self_ns"] for row in rows))
    bars = [
        {"type": _name(row), "own": round(row["self_ns"] / size, 4), "phase": line(row["phase"] or UNKNOWN)}
        for row in rows
    ]
    ring = slices(timed)
    colours = [*COLOURS[: len(ring) - 1], COLOURS[-1]] if len(ring) > SLICES else list(COLOURS[: len(ring)])
    return filled(
        "operators", bars=bars, own=f"own time, {unit}",
        phases=coloured({bar["phase"]: _colour(bar["phase"]) for bar in bars}),
        ring=ring, places={"domain": [part["place"] for part in ring], "range": colours},
        labels=f"{json.dumps([part['label'] for part in ring])}[datum.value]",
    )  # fmt: skip


def table_of(rows: Sequence[Row]) -> list[str]:
    """HTML of rows of op/by_instance of one rank: a table that can be sorted and searched."""
    if not rows:
        return []
    own_types = any(row["type"] != row["name"] for row in rows)
    shown = [
        (title, field) for title, field in _WORDS if any(row[field] for row in rows) and (own_types or field != "type")
    ]
    measured = [one for one in _NUMBERS if any(row[one[1]] is not None for row in rows)]
    cells = [
        [
            *(cut(line(row[field] or "-"), _MOST_LETTERS) for _, field in shown),
            *(worded(row[field]) for _, field, worded in measured),
        ]
        for row in rows
    ]
    numbers = {title: [row[field] for row in rows] for title, field, _ in measured}
    head = [*(title for title, _ in shown), *numbers]
    caption = f"The {INSTANCES} operators with the most own time" if len(rows) == INSTANCES else "Operators"
    return block_lines(Block(head, cells, frozenset(range(len(shown), len(head))), caption=[caption], numbers=numbers))
