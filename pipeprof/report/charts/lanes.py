"""Single steps as a timeline: the parts of a step, batches, queues, operators and communication, a lane for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import COLOURS, PHASES, Chart, middle_cut, sentence
from pipeprof.report.charts.flame import SEARCH, framed
from pipeprof.report.words.names import title
from pipeprof.units import NS_PER_MS, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeprof.query.engine import Engine

    Row = dict[str, Any]

NAME = "Timeline of a step"
NONE = "Nothing within a step was recorded that a timeline could show."
USUAL, SLOWEST = "usual", "slowest"
MOST, SAMPLES = 400, 120  # events, and samples of a queue, of a step
MOST_LANES, DEEPEST = 8, 5  # of operators and spans; of what calls each other in one
LEAST = 0.0005  # of the step: what is narrower is not drawn
LEAST_BARS = 2
SLOW = 1.5  # times the usual: a slowest step that is worth a chart
LETTERS = 80  # of a lane's title
_HEIGHT = 0.94  # of a row
_PALETTE = tuple(dict.fromkeys([*PHASES.values(), COLOURS[4]]))
_OTHER, _BATCH, _QUEUE = PHASES["other"], PHASES["data_wait"], COLOURS[4]


def shown_steps(engine: Engine, rep: int, rank: int) -> list[Row]:
    """The usual and the slowest step of a rank, with the parts, events and samples of queues of each."""
    at = {"rep": rep, "rank": rank}
    return [_with_events(engine, at, row) for row in engine.rows("timeline/shown_step", **at)]


def _with_events(engine: Engine, at: Mapping[str, int], step: Row) -> Row:
    window = {**at, "first_ns": step["start_ns"], "last_ns": step["start_ns"] + step["dur_ns"]}
    fed = step["pipeline_id"]
    queues = [] if fed is None else engine.rows("timeline/queue_depth", pipeline_id=fed, top=SAMPLES, **window)
    number = step["kind_step"]
    parts = [] if number is None else engine.rows("step/parts", step=number)
    parts = [row for row in parts if row.items() >= at.items()]
    return {"step": step, "parts": parts, "queues": queues, "events": engine.rows("timeline/event", top=MOST, **window)}


def charts(shown: Sequence[Row], names: Mapping[tuple[str, int], str]) -> list[Chart]:
    """A chart of the usual step, one of the slowest where it took much longer. `names`: of operators of pipelines."""
    by_kind = {one["step"]["shown"]: one for one in shown}
    usual = by_kind.get(USUAL)
    slowest = by_kind.get(SLOWEST)
    drawn = [Chart("chart-step", NAME, NONE) if usual is None else _chart("chart-step", usual, slowest, names)]
    if slowest is not None and slowest["step"]["dur_ns"] > SLOW * slowest["step"]["middle_ns"]:
        drawn.append(_chart("chart-slowest", slowest, None, names))
    return drawn


def _chart(name: str, shown: Row, slowest: Row | None, names: Mapping[tuple[str, int], str]) -> Chart:
    step = shown["step"]
    lanes, marks, left_out = _placed(shown, names)
    if len(marks) < LEAST_BARS:
        return Chart(name, NAME, NONE)
    which = "the slowest" if step["shown"] == SLOWEST else "a usual one"
    took, middle = format_ns(step["dur_ns"]), format_ns(step["middle_ns"])
    of = " of the steps with operators" if step["operators"] and step["shown"] == USUAL else ""
    said = f"step {step['position']}, {which}: {took}, beside a median of {middle}{of}"
    notes = [sentence(said)]
    if step["in_window"]:
        notes.append("Operators were being recorded in it, which makes it longer.")
    elif not step["operators"]:
        notes.append("Operators were not recorded in it.")
    if slowest is not None and slowest["step"]["step"] != step["step"]:
        one = slowest["step"]
        notes.append(f"The slowest was step {one['position']}, {format_ns(one['dur_ns'])}.")
    how = [
        "Click on a bar to widen it to the chart, a double click shows all again; by keyboard: arrows, Enter, Escape."
    ]
    if shown["queues"]:
        how.append("A queue is drawn as high as it is full; what a stage was doing at which time is not recorded.")
    if left_out:
        how.append(f"Not drawn: {format_count(left_out, 'event')} too short to be seen, or of lanes with less time.")
    params: list[Row] = [SEARCH, {"name": "turned", "value": False}]
    whole = step["dur_ns"] / NS_PER_MS
    drawn = framed(
        marks, dict(enumerate(map(_light, _PALETTE))), params, whole=whole, unit="milliseconds since the step began",
        lanes=lanes,
    )  # fmt: skip
    name_of = NAME if name == "chart-step" else "Timeline of the slowest step"
    return Chart(name, name_of, f"{' '.join(notes)}\n{' '.join(how)}", said, drawn)


def _placed(shown: Row, names: Mapping[tuple[str, int], str]) -> tuple[list[Row], list[Row], int]:
    """Titles of the lanes, the bars below them, and how many events are not drawn."""
    step, titles, marks = shown["step"], [], []
    begin, length = step["start_ns"], step["dur_ns"]
    row = drawn = 0
    for title_, bars in _lanes(shown, names):
        seen = [bar for bar in bars if bar["until"] - bar["from"] >= LEAST * length]
        if not seen:
            continue
        titles.append({"top": row, "name": middle_cut(line(title_), LETTERS)})
        for bar in seen:
            top = row + 1 + bar["depth"] + _HEIGHT * (1 - bar["high"])
            marks.append({
                "left": round((bar["from"] - begin) / NS_PER_MS, 6),
                "right": round((bar["until"] - begin) / NS_PER_MS, 6),
                "top": round(top, 3), "bottom": row + 1 + bar["depth"] + _HEIGHT, "name": line(bar["name"]),
                "heat": _PALETTE.index(bar["colour"]), "turned": False, "told": line(bar["told"]),
            })  # fmt: skip
        drawn += sum(bar["event"] for bar in seen)
        row += 2 + max(bar["depth"] for bar in seen)
    return titles, marks, len(shown["events"]) - drawn


def _lanes(shown: Row, names: Mapping[tuple[str, int], str]) -> Iterator[tuple[str, list[Row]]]:
    step = shown["step"]
    begin, end = step["start_ns"], step["start_ns"] + step["dur_ns"]
    parts = [(begin + one["from_ns"], begin + one["until_ns"], one["phase"]) for one in shown["parts"]]
    yield (
        "parts of the step",
        [_bar(start, until, _word(phase), PHASES.get(phase, _OTHER)) for start, until, phase in parts],
    )
    events: dict[tuple[str, str], list[Row]] = {}
    for one in shown["events"]:
        events.setdefault((one["kind"], one["track"] or ""), []).append(one)
    for (kind, side), rows in events.items():
        if kind == "fetch":
            asked = "batches that the loop waited for" if side in ("", "iterator") else f"batches: {side}"
            yield asked, _nested(rows, begin, end, lambda _: "batch", lambda _: _BATCH)
    yield from _queues(shown["queues"], begin, end, names)
    others = [key for key in events if key[0] != "fetch"]
    largest = sorted(others, key=lambda key: -sum(one["dur_ns"] for one in events[key]))[:MOST_LANES]
    for kind, track in sorted(largest, key=lambda key: (("op", "collective", "span").index(key[0]), others.index(key))):
        what = {"op": "operators", "collective": "communication", "span": "spans"}[kind]
        yield f"{what}: {track}" if track else what, _nested(events[kind, track], begin, end, _named, _coloured)


def _queues(
    samples: Sequence[Row], begin: int, end: int, names: Mapping[tuple[str, int], str]
) -> Iterator[tuple[str, list[Row]]]:
    """A lane for each queue, that of the source first: how full it was from one sample to the next."""
    by_op: dict[int, list[Row]] = {}
    for one in samples:
        if one["fill_ratio"] is not None:
            by_op.setdefault(one["op_id"], []).append(one)
    for op_id, rows in sorted(by_op.items(), reverse=True):
        ends = [*(one["t_ns"] for one in rows[1:]), end]
        bars = [
            _bar(max(one["t_ns"], begin), until, f"{one['depth']} of {one['capacity']}", _QUEUE,
                 high=max(min(one["fill_ratio"], 1.0), 0.06))
            for one, until in zip(rows, ends, strict=True)
        ]  # fmt: skip
        yield f"queue behind {names.get((rows[0]['pipeline_key'], op_id), f'operator {op_id}')}", bars


def _nested(rows: Sequence[Row], begin: int, end: int, name: Any, colour: Any) -> list[Row]:
    """Bars of one lane; what lies within another, or overlaps it, is a row below, down to DEEPEST."""
    open_until: list[int] = []
    bars = []
    for one in sorted(rows, key=lambda one: (one["start_ns"], -one["dur_ns"])):
        start, until = one["start_ns"], one["start_ns"] + one["dur_ns"]
        depth = next((at for at, last in enumerate(open_until) if last <= start), len(open_until))
        if depth >= DEEPEST:
            continue
        open_until[depth:] = [until]
        bars.append(_bar(max(start, begin), min(until, end), name(one), colour(one), depth=depth, lasted=one["dur_ns"]))
    return bars


def _bar(
    start: int, until: int, name: str, colour: str, *, depth: int = 0, high: float = 1.0, lasted: int | None = None
) -> Row:
    told = f"{name}: {format_ns(until - start if lasted is None else lasted)}"
    return {"from": start, "until": until, "name": name, "colour": colour, "depth": depth, "high": high, "told": told,
            "event": lasted is not None}  # fmt: skip


def _named(one: Row) -> str:
    return str(one["name"] or one["kind"])


def _coloured(one: Row) -> str:
    return PHASES["communication_exposed"] if one["phase"] == "communication" else PHASES.get(one["phase"], _OTHER)


def _word(phase: str) -> str:
    return "the whole step: its parts were not recorded" if phase == "whole" else title(phase)


def _light(colour: str) -> str:
    """A colour that black letters are read on."""
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return "#" + "".join(f"{(part + 255) // 2:02x}" for part in parts)
