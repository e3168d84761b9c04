"""The series of a history: every measurement, and the levels between its changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeprof.escape import line
from pipeprof.report import history
from pipeprof.report.charts.chart import Chart, filled, sentence, ticks, time_unit
from pipeprof.units import byte_unit, format_count

Row = dict[str, Any]

UNITS = {"ns": time_unit, "bytes": byte_unit}


def charts_of(content: Mapping[str, Any]) -> list[Chart]:
    """One for each series of a history."""
    return [_chart(series, f"chart-series-{at}") for at, series in enumerate(content["series"])]


def _chart(series: Row, name: str) -> Chart:
    metric, points = history.name_of(series), series["points"]
    changes = format_count(len(series["changes"]), "change") if series["enough"] else "too few to look for changes"
    last = history.value(series, points[-1]["value"])
    said = f"{metric}: {format_count(len(points), 'measurement')}, {changes}, the last {last}"
    caption = (
        f"{sentence(said)} A point is a measurement, a line a level. On {line(series['machine'])}, conditions "
        f"{line(series['conditions'])}. Point at a measurement to see its revision."
    )
    return Chart(name, f"{line(series['workload'])}: {metric}", caption, line(said), _drawn(series))


def _drawn(series: Row) -> Row:
    unit, divisor = _unit(series)
    texts = [history.value(series, point["value"]) for point in series["points"]]
    points = [
        {
            "at": number, "value": point["value"] / divisor,
            "told": line(f"{text}, {(point['revision'] or '-')[: history.SHORT]}, {point['at'] or '-'}"),
        }
        for number, (point, text) in enumerate(zip(series["points"], texts, strict=True), 1)
    ]  # fmt: skip
    levels = [{"from": first, "to": last, "level": level / divisor} for first, last, level in _levels(series)]
    left, share = f"datum.at <= {(len(points) + 1) / 2}", f"(datum.at - 1) / {len(points) - 1}" if points[1:] else ".5"
    return filled(
        "history", points=points, levels=levels, unit=unit, ticks=ticks(len(points)),
        numbers={} if len(points) > 1 else {"format": ".3~r"},  # the only tick is not a round number
        align=f"{left} ? 'left' : 'right'", room=f"({left} ? 1 - {share} : {share}) * width",
    )  # fmt: skip


def _unit(series: Row) -> tuple[str, float]:
    """The unit of its axis, and how many of the record's are one."""
    if series["anchor"]:
        return "ratio", 1
    unit_of = UNITS.get(series["unit"])
    return unit_of(max(point["value"] for point in series["points"])) if unit_of else (line(series["unit"]), 1)


def _levels(series: Row) -> list[tuple[int, int, float]]:
    """First and last measurement of each level, counted from 1, and its value."""
    changes, last = series["changes"], len(series["points"])
    if not changes:
        return [(1, last, series["median"])]
    starts = [1, *(change["position"] + 1 for change in changes)]
    ends = [*(change["position"] for change in changes), last]
    return list(zip(starts, ends, [changes[0]["before"], *(change["after"] for change in changes)], strict=True))
