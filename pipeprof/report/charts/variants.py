"""The variants of a sweep, by what decides between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeprof.escape import line
from pipeprof.report import sweep
from pipeprof.report.answer.shape import capital
from pipeprof.report.charts.chart import COLOURS, Chart, coloured, filled, sentence
from pipeprof.units import NS_PER_MS, format_count

Row = Mapping[str, Any]

COLOUR = {"better": COLOURS[0], "worse": COLOURS[1], "base": COLOURS[7]}
UNSURE = COLOURS[6]


def charts_of(content: Mapping[str, Any]) -> list[Chart]:
    """One for each table of a sweep's result."""
    tables = content["tables"]
    return [_chart(table, content["judge"], f"chart-variants-{at}", len(tables) > 1) for at, table in enumerate(tables)]


def _chart(table: Row, judge: str, name: str, several: bool) -> Chart:  # noqa: FBT001
    title = sweep.TITLES[judge]
    title = f"{capital(title)} of each variant" + (f": {table['name']}" if several else "")
    rows = [(row, row["stages"][judge]) for row in table["rows"] if judge in row["stages"]]
    if not rows:
        return Chart(name, title, "Nothing was measured that decides between the variants.")
    choose, word = (max, "highest") if rows[0][1]["direction"] == "higher" else (min, "lowest")
    whole = [pair for pair in rows if pair[0]["verdict"] != "failed"] or rows
    best = choose(whole, key=lambda row: row[1]["value"])
    others = sum(row["verdict"] != "base" for row, _ in rows)
    of = format_count(others, "variant") + (" and the base" if others < len(rows) else "")
    said = f"{of}, the {word} is {line(best[0]['name'])}: "
    said += sweep.number(best[1]["value"], best[1]["unit"])
    caption = sentence(said)
    if any(stage["low"] is not None for _, stage in rows):
        caption += " A line is the 95 % interval."
    return Chart(name, title, caption, said, _drawn(rows))


def _drawn(rows: list[tuple[Row, Row]]) -> dict[str, Any]:
    unit = rows[0][1]["unit"]
    divisor = NS_PER_MS if unit == "ns" else 1
    marks = [
        {
            "variant": line(row["name"]), "verdict": row["verdict"], "value": stage["value"] / divisor,
            "low": None if stage["low"] is None else stage["low"] / divisor,
            "high": None if stage["high"] is None else stage["high"] / divisor,
        }
        for row, stage in rows
    ]  # fmt: skip
    return filled(
        "variants", marks=marks, intervals=[mark for mark in marks if mark["low"] is not None],
        unit="ms" if unit == "ns" else line(unit),
        verdicts=coloured({mark["verdict"]: COLOUR.get(mark["verdict"], UNSURE) for mark in marks}),
    )  # fmt: skip
