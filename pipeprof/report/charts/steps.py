"""Every training step as a stack of its phases, over time, and the parts of the whole run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import PHASES as COLOUR_OF
from pipeprof.report.charts.chart import Chart, filled, sentence
from pipeprof.report.charts.overtime import ALONG, MOST, Panel, bands
from pipeprof.report.charts.overtime import seconds as _s
from pipeprof.report.words.names import COMMUNICATION as WORDS
from pipeprof.report.words.names import INTERVALS, title
from pipeprof.report.words.training import PARTS
from pipeprof.units import NS_PER_MS, NS_PER_S, format_count, format_ns, format_ratio

Row = dict[str, Any]

POINTS = 600
PHASES = {  # from below; what is not told apart has the colour of its first part
    code: (name, COLOUR_OF[code])
    for code, name in {
        "data_wait": INTERVALS["data_wait"],
        **{part: title(part) for part in ("forward", "backward", "gradients", "optimizer", "after")},
        "forward_backward": INTERVALS["forward_backward"],
        "tail": INTERVALS["tail"],
        "compute": "the rest of the step: its parts were not recorded",
        "whole": "whole step: no part was recorded",
    }.items()
}
COMMUNICATION = {  # drawn as parts of the phases below that they are taken out of
    "overlapped": (WORDS["communication_overlapped"], "#c3b8e3"),
    "exposed": (WORDS["communication_exposed"], COLOUR_OF["communication_exposed"]),
    "unknown": (WORDS["communication"], COLOUR_OF["communication_tail"]),
}
_HOLDS = ("forward_backward", "backward", "gradients", "tail", "compute", "whole", "forward", "after", "optimizer")
WARM = "warmup"  # the parameter of the switch
FAR = 2  # times the median: a step that is marked


def panel(rows: Sequence[Row], communication: Sequence[Row] = (), slower_ns: int | None = None) -> Panel | None:
    """The steps of one rank, from rows of step/trace_curve; None without any.

    `communication`: rows of step/communication_curve; `slower_ns`: when the steps became slower.
    """
    if not rows:
        return None
    slowest = max(rows, key=lambda row: (row["max_ns"], -row["first_step"]))
    steps, far = sum(row["steps"] for row in rows), _far(rows)
    said = (
        f"{format_count(steps, 'training step')}, the longest of {format_ns(slowest['max_ns'])} at step "
        f"{slowest['max_kind_step']}, at {format_ns(slowest['max_start_ns'])}"
    )
    together = max(row["steps"] for row in rows)
    notes = [f"a bar is the mean of up to {together} steps in a row"] if together > 1 else []
    steady = _top(_steady(rows))
    if steady < slowest["max_ns"] / NS_PER_MS:
        notes.append(f"steps are cut off at {format_ns(steady * NS_PER_MS)}")
    switch = _switch(rows)
    if switch:
        notes.append("the scale is that of the steps behind the warm-up, unless the switch is on")
    if far:
        notes.append(f"a diamond is a step of more than {FAR} times the usual length")
    if any(row["warmup_steps"] for row in rows):
        notes.append("a triangle is warm-up, or a graph was compiled in it")
    if communication:
        said += "; " + _communication(communication, steps)
        notes.append("communication is taken out of the phases, forward and backward first, and drawn on top")
    if slower_ns is not None:
        said += f"; slower from {format_ns(slower_ns)} on"
        notes.append("from the dashed line on steps are slower")
    return Panel(_drawn(rows, far, communication, slower_ns), said, notes, params=switch)


def curves(rows: Sequence[Row], communication: Sequence[Row] = ()) -> dict[str, Panel]:
    """Each part of a step and its communication as a curve on an axis of its own, by title, as far as there are any.

    A part of 0.2 ms cannot be seen in a stack of 205 ms. Rows are those of `panel`.
    """
    by_point = {row["point"]: row for row in rows}
    beside = [by_point[row["point"]] | row for row in communication if row["point"] in by_point]
    names = names_of(rows)
    panels = {}
    for part, (name, colour) in names.items():
        points = [(row, row[f"{part}_ns"]) for row in (beside if part in COMMUNICATION else rows)]
        if any(length > 0 for _, length in points):
            panels[f"{name[:1].upper()}{name[1:]}"] = _curve(points, colour)
    return panels if len(panels) > 1 else {}


def _curve(points: Sequence[tuple[Row, float]], colour: str) -> Panel:
    lengths = [length for _, length in points]
    usual, longest = median(lengths), max(lengths)
    top = (min(longest, MOST * usual) if usual else longest) * 1.05 / NS_PER_MS
    drawn = [{"t": _s(row["start_ns"]), "ms": round(min(length / NS_PER_MS, top), 6)} for row, length in points]
    drawn.append(drawn[-1] | {"t": _s(points[-1][0]["end_ns"])})  # the last one has a width
    said = f"median {format_ns(usual)}, at most {format_ns(longest)}"
    cut = [f"curves of parts are cut off at {MOST} times their median"] if longest > MOST * usual > 0 else []
    return Panel(filled("part", points=drawn, colour=colour, top=round(top, 6), along=ALONG), said, cut)


def _communication(communication: Sequence[Row], steps: int) -> str:
    """What a mean step has of it; where that is of a part of the steps, of how many."""
    recorded = sum(row["steps"] for row in communication)
    means = {
        kind: sum(row[f"{kind}_ns"] * row["steps"] for row in communication) / max(recorded, 1)
        for kind in COMMUNICATION
    }
    times = ", ".join(f"{format_ns(mean)} of {COMMUNICATION[kind][0]}" for kind, mean in means.items() if mean)
    whose = "of a mean step" if recorded >= steps else f"mean of {format_count(recorded, 'recorded step')}"
    return f"communication, {whose}: {times}"


def names_of(rows: Sequence[Row]) -> dict[str, tuple[str, str]]:
    """Phases and communication with name and colour; where batches were waited for, that fills the first phase."""
    name, colour = PHASES["data_wait"]
    fetched = any(row.get("max_fetch_ns") is not None for row in rows)
    first = {"data_wait": (f"{name}, mostly {title('data_wait')}", colour)} if fetched else {}
    return PHASES | first | COMMUNICATION


def bars(rows: Sequence[Row], communication: Sequence[Row] = ()) -> Iterator[dict[str, Any]]:
    """The phases of each point, on top of each other: from `low` to `high` ms, from `from` to `to` s."""
    by_point = {row["point"]: row for row in communication}
    names = names_of(rows)
    for row in rows:
        below, lengths = 0.0, {phase: row[f"{phase}_ns"] for phase in PHASES}
        lengths |= _taken(lengths, by_point.get(row.get("point"), {}))
        for phase, (name, _) in names.items():
            length = lengths.get(phase, 0.0) / NS_PER_MS
            if length > 0:
                yield {
                    "from": _s(row["start_ns"]), "to": _s(row["end_ns"]), "of": name,
                    "low": round(below, 6), "high": round(below + length, 6),
                }  # fmt: skip
            below += max(length, 0.0)


def _taken(lengths: dict[str, float], communication: Row) -> dict[str, float]:
    """Communication of a point, and what is left of the phases that hold it: the sum is that of the phases."""
    taken = {}
    left = dict(lengths)
    for kind in COMMUNICATION:
        wanted = communication.get(f"{kind}_ns", 0.0)
        taken[kind] = 0.0
        for phase in _HOLDS:
            part = min(wanted, max(left[phase], 0.0))
            left[phase] -= part
            wanted -= part
            taken[kind] += part
    return left | taken


def _far(rows: Sequence[Row]) -> list[Row]:
    usual = median(row["dur_ns"] for row in rows)
    return [row for row in rows if row["max_ns"] > FAR * usual and not row["warmup_steps"]]


def _drawn(rows: Sequence[Row], far: Sequence[Row], communication: Sequence[Row], slower_ns: int | None) -> Row:
    top = _top(rows)

    def marked(of: Sequence[Row]) -> list[Row]:
        return [
            {"at": _s(row["max_start_ns"] + row["max_ns"] / 2), "ms": min(row["max_ns"] / NS_PER_MS, top)} for row in of
        ]

    return bands(
        list(bars(rows, communication)), dict(names_of(rows).values()), "step, ms",
        {"domainMin": 0, "domainMax": _end(rows), "nice": False, "zero": True, "clamp": True},
        far=marked(far), warmup=marked([row for row in rows if row["warmup_steps"]]),
        slower=[] if slower_ns is None else [{"at": _s(slower_ns)}],
    )  # fmt: skip


def _steady(rows: Sequence[Row]) -> Sequence[Row]:
    """The steps behind the warm-up; all of them where there are no others."""
    return [row for row in rows if not row["warmup_steps"]] or rows


def _switch(rows: Sequence[Row]) -> list[Row]:
    """What chooses between both ends of the axis, where the warm-up is higher than all other steps."""
    if _top(rows) <= _top(_steady(rows)):
        return []
    return [{"name": WARM, "value": False, "bind": {"input": "checkbox", "name": "scale to the warm-up "}}]


def _end(rows: Sequence[Row]) -> float | Row:
    """Where the axis ends, in ms, by the switch where there is one."""
    if not _switch(rows):
        return _top(rows)
    return {"expr": f"{WARM} ? {_top(rows)} : {_top(_steady(rows))}"}


def _top(rows: Sequence[Row]) -> float:
    """Where the axis ends, in ms: far steps are marked at its end, so that the others are not flat."""
    usual: float = median(row["dur_ns"] for row in rows)
    longest: float = max(row["max_ns"] for row in rows)
    return round(min(longest, MOST * usual) * 1.05 / NS_PER_MS, 6) or 1


def chart(rows: Sequence[Row]) -> Chart:
    """From rows of run/account of one rank: a bar for each part of the run, in the order of time."""
    title, parts = "The whole run", parts_of(rows)
    total = sum(part["ns"] for part in parts)
    if not total or all(row["part"] == "not_recorded" for row in rows):
        return Chart("chart-run", title, "What the run as a whole was spent on was not recorded.")
    largest = max(parts, key=lambda part: part["ns"])
    said = (
        f"of {format_ns(total)} from the launch to the end, {largest['part']} took "
        f"{format_ratio(largest['ns'] / total)}"
    )
    return Chart("chart-run", title, sentence(said), said, _drawn_parts(parts))


def parts_of(rows: Sequence[Row]) -> list[Row]:
    """`{part, ns}`: the time of each part, in the order in which they began; they add up to the run."""
    spent: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: (row["start_ns"] is None, row["start_ns"] or 0)):
        name = line(PARTS.get(row["part"]) or row["part"])
        spent[name] = spent.get(name, 0) + row["dur_ns"]
    return [{"part": name, "ns": length} for name, length in spent.items()]


def _drawn_parts(parts: Sequence[Row]) -> Row:
    bars = [
        {"part": part["part"], "s": round(part["ns"] / NS_PER_S, 4), "label": format_ns(part["ns"])} for part in parts
    ]
    return filled("whole_run", bars=bars, end=max(bar["s"] for bar in bars) * 1.2)
