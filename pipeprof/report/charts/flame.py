"""A flame graph of what called the operators, the outermost on top; a click, or Enter, widens a frame to the chart.

A switch turns it round: each frame that took time of its own on top, and below it what called it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.errors import PipeprofError
from pipeprof.escape import line
from pipeprof.report.charts.chart import Chart, filled, middle_cut, sentence
from pipeprof.report.stacks.folded import UNITS, Question, Stack, stacks
from pipeprof.units import format_count, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeprof.record.run import Run

    Row = dict[str, Any]

ROW_HEIGHT, DEEPEST, MOST = 18, 40, 1500
LETTERS = 60  # of a name in a sentence
LEAST = 0.001  # of the whole: what is narrower is not drawn
TURNED = "turned round: what took the time on top, its callers below"
_INPUT = {"input": "text", "name": "find a frame", "autocomplete": "off", "debounce": 150}
SEARCH = {"name": "find", "value": "", "bind": _INPUT}
MOST_EXECUTIONS = 3_000_000  # of a rank: more take long to be put in chains
WAYS = {
    "stack": "the lines of code that called the operators",
    "call": "the operators that called others",
    "scope": "the modules of the network",
}
_TITLE, _VERB = "Flame graph", "pipeprof stacks"
_HEAT = ("#fdd49e", "#fdbb84", "#fc8d59", "#ef8a62", "#f7b799", "#fee0b6")


class Frame(NamedTuple):
    """A frame of the graph, from `left` to `right` (0..1); `total` with what it called, `own` without."""

    name: str
    depth: int
    left: float
    right: float
    total: int
    own: int


def chart(run: Run, rep: int, rank: int) -> Chart:
    """The stacks of one rank by host time, or by device time where there is no other."""
    if run.manifest.tables.get("op", 0) > MOST_EXECUTIONS * max(1, sum(len(one.ranks) for one in run.manifest.reps)):
        return Chart("chart-flame", _TITLE, f"There are too many executions for a page: see `{_VERB}`.")
    way, profile, weight = _profile_of(run, rep, rank)
    if len(profile) < 2 or all(len(one.frames) == 1 for one in profile):
        return Chart("chart-flame", _TITLE, "Neither stacks nor callers of operators were recorded.")
    frames, common = frames_of(profile)
    shown = _seen(frames)
    turned = _seen(frames_of([Stack(one.frames[::-1], one.weight) for one in profile])[0])
    total = sum(one.weight for one in profile)
    widest = max((row for row in frames if row.own), key=lambda row: row.own)
    most = f"{middle_cut(line(widest.name), LETTERS)}: {format_ratio(widest.own / total)}"
    said = f"{format_ns(total)} of {weight} time, by {WAYS[way]}; most own time has {most}"
    notes = ["A frame is as wide as what it and all below it took, in all steps, warm-up and evaluation included."]
    notes.append("Click on one to see it alone, a double click shows all again; by keyboard: arrows, Enter and Escape.")
    notes.append("What is searched for stays; all others pale.")
    notes.append("Turned round it has what took the time itself on top, as wide as that, and below it what called it.")
    if common:
        notes.append(f"Left out above: {format_count(common, 'frame')} that all have in common.")
    if len(shown) < len(frames):
        notes.append(f"Not drawn: {format_count(len(frames) - len(shown), 'frame')} too narrow or too deep to be seen.")
    return Chart("chart-flame", _TITLE, f"{sentence(said)}\n{' '.join(notes)}", said, _drawn(shown, turned, total))


def _seen(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The frames that are drawn: neither too narrow nor too deep nor too many, the widest first."""
    wide = [row for row in frames if row.right - row.left >= LEAST and row.depth < DEEPEST]
    return sorted(wide or frames, key=lambda row: row.left - row.right)[:MOST]


def _profile_of(run: Run, rep: int, rank: int) -> tuple[str, Sequence[Stack], str]:
    for weight in ("host", "device"):
        try:
            way, profiles = stacks(run, Question(weight=weight, only=(rep, rank)))
        except PipeprofError:  # nothing of this weight, or a damaged chain: the report says what of
            continue
        if (rep, rank) in profiles:
            return way, profiles[rep, rank], weight
    return "scope", (), next(iter(UNITS))


def frames_of(profile: Sequence[Stack]) -> tuple[list[Frame], int]:
    """Each frame's name, depth, place (`left` and `right` from 0 to 1), total and own weight, the widest first.

    And how many outermost frames are left out because all stacks begin with them.
    """
    common = 0
    while all(len(one.frames) > common + 1 and one.frames[common] == profile[0].frames[common] for one in profile):
        common += 1
    tree: Row = {"total": 0, "own": 0, "below": {}}
    for one in profile:
        node = tree
        node["total"] += one.weight
        for name in one.frames[common:]:
            node = node["below"].setdefault(name, {"total": 0, "own": 0, "below": {}})
            node["total"] += one.weight
        node["own"] += one.weight
    return list(_placed(tree)), common


def _placed(tree: Row) -> Iterator[Frame]:
    total = tree["total"]
    waiting = [(tree, -1, 0)]
    while waiting:
        node, depth, at = waiting.pop()
        for name, below in sorted(node["below"].items(), key=lambda pair: (-pair[1]["total"], pair[0])):
            part = below["total"]
            yield Frame(name, depth + 1, at / total, (at + part) / total, part, below["own"])
            waiting.append((below, depth + 1, at))
            at += part


def _drawn(frames: Sequence[Frame], turned: Sequence[Frame], total: int) -> Row:
    marks = [
        {
            "left": round(frame.left, 6), "right": round(frame.right, 6), "top": frame.depth,
            "bottom": frame.depth + 0.94, "name": line(frame.name),
            "heat": sum(frame.name.encode()) % len(_HEAT), "turned": turned_round, "told": told(frame, total),
        }
        for turned_round, rows, told in ((False, frames, _told), (True, turned, _told_turned))
        for frame in rows
    ]  # fmt: skip
    switch = {"name": "turned", "value": False, "bind": {"input": "checkbox", "name": TURNED}}
    return framed(marks, dict(enumerate(_HEAT)), [SEARCH, switch])


def _told(frame: Frame, total: int) -> str:
    return line(f"{_told_turned(frame, total)}, of its own {format_ns(frame.own)}")


def _told_turned(frame: Frame, total: int) -> str:
    return line(f"{frame.name}: {format_ns(frame.total)} ({format_ratio(frame.total / total)})")


def framed(
    marks: Sequence[Row],
    colours: Mapping[int, str],
    params: Sequence[Row],
    *,
    whole: float = 1.0,
    unit: str = "",
    lanes: Sequence[Row] = (),
) -> Row:
    """Frames that widen: `{left, right, top, bottom, name, heat, turned, told}`, from 0 to `whole` (of `unit`, if any).

    `heat` is one of the colours; `lanes` are titles `{top, name}` between them; `params` say which `turned` are drawn.
    """
    rows = max(int(one["top"]) for one in (*marks, *lanes)) + 1
    heat = {"domain": list(colours), "range": list(colours.values())}
    params = [*params, {"name": "whole", "value": whole}]
    axis = {"title": unit, "grid": False} if unit else None
    return filled(
        "frames", frames=marks, rows=rows, height=ROW_HEIGHT * rows, heat=heat, params=params, whole=whole, axis=axis,
        lanes=list(lanes),
    )  # fmt: skip
