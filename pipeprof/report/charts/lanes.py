"""Single steps as a timeline: the parts of a step, batches, queues, operators and communication, a lane for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.escape import line
from pipeprof.query.rows import QueueDepth, ShownStep, StepPart, TimelineEvent, typed
from pipeprof.report.charts.chart import COLOURS, PHASES, Chart, middle_cut, sentence
from pipeprof.report.charts.flame import SEARCH, framed
from pipeprof.report.words.names import title
from pipeprof.units import NS_PER_MS, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipeprof.query.engine import Engine

    Names = Mapping[tuple[str, int], str]  # of operators of pipelines, by the pipeline's key and op_id

NAME, NAME_SLOWEST = "Timeline of a step", "Timeline of the slowest step"
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
_LANES = {"op": "operators", "collective": "communication", "span": "spans"}  # in this order


class Shown(NamedTuple):
    """A step, and what happened in it."""

    step: ShownStep
    parts: Sequence[StepPart] = ()
    queues: Sequence[QueueDepth] = ()
    events: Sequence[TimelineEvent] = ()

    @property
    def end_ns(self) -> int:
        """Its end."""
        return self.step.start_ns + self.step.dur_ns


class Bar(NamedTuple):
    """Something that lasted; `lasted_ns` may reach beyond the step, None where it is no event."""

    start_ns: int
    until_ns: int
    name: str
    colour: str
    depth: int = 0
    high: float = 1.0
    lasted_ns: int | None = None


def shown_steps(engine: Engine, rep: int, rank: int) -> list[Shown]:
    """The usual and the slowest step of a rank, with the parts, events and samples of queues of each."""
    at = {"rep": rep, "rank": rank}
    steps = typed(ShownStep, engine.rows("timeline/shown_step", **at))
    return [_with_events(engine, at, step) for step in steps]


def _with_events(engine: Engine, at: Mapping[str, int], step: ShownStep) -> Shown:
    window = {**at, "first_ns": step.start_ns, "last_ns": step.start_ns + step.dur_ns}
    fed, number = step.pipeline_id, step.kind_step
    queues = [] if fed is None else engine.rows("timeline/queue_depth", pipeline_id=fed, top=SAMPLES, **window)
    parts = [] if number is None else engine.rows("step/parts", step=number)
    own = [row for row in parts if row.items() >= at.items()]
    events = engine.rows("timeline/event", top=MOST, **window)
    return Shown(step, typed(StepPart, own), typed(QueueDepth, queues), typed(TimelineEvent, events))


def charts(shown: Sequence[Shown], names: Names) -> list[Chart]:
    """A chart of the usual step, one of the slowest where it took much longer."""
    by_kind = {one.step.shown: one for one in shown}
    usual, slowest = by_kind.get(USUAL), by_kind.get(SLOWEST)
    drawn = [Chart("chart-step", NAME, NONE) if usual is None else _chart("chart-step", usual, slowest, names)]
    if slowest is not None and slowest.step.dur_ns > SLOW * slowest.step.middle_ns:
        drawn.append(_chart("chart-slowest", slowest, None, names))
    return drawn


def _chart(name: str, shown: Shown, slowest: Shown | None, names: Names) -> Chart:
    step = shown.step
    lanes, marks, left_out = _placed(shown, names)
    if len(marks) < LEAST_BARS:
        return Chart(name, NAME, NONE)
    is_slowest = step.shown == SLOWEST
    which = "the slowest" if is_slowest else "a usual one"
    of = " of the steps with operators" if step.operators and not is_slowest else ""
    took, middle = format_ns(step.dur_ns), format_ns(step.middle_ns)
    said = f"step {step.position}, {which}: {took}, beside a median of {middle}{of}"
    notes = [sentence(said)]
    if step.in_window:
        notes.append("Operators were being recorded in it, which makes it longer.")
    elif not step.operators:
        notes.append("Operators were not recorded in it.")
    if slowest is not None and slowest.step.step != step.step:
        notes.append(f"The slowest was step {slowest.step.position}, {format_ns(slowest.step.dur_ns)}.")
    how = ["Click on a bar to widen it, a double click shows all again; by keyboard: arrows, Enter and Escape."]
    if shown.queues:
        how.append("A queue is drawn as high as it is full; what a stage was doing at which time is not recorded.")
    if left_out:
        how.append(f"Not drawn: {format_count(left_out, 'event')} too short to be seen, or of lanes with less time.")
    params: list[dict[str, Any]] = [SEARCH, {"name": "turned", "value": False}]
    drawn = framed(
        marks,
        dict(enumerate(map(_light, _PALETTE))),
        params,
        whole=step.dur_ns / NS_PER_MS,
        unit="milliseconds since the step began",
        lanes=lanes,
    )
    caption = f"{' '.join(notes)}\n{' '.join(how)}"
    return Chart(name, NAME_SLOWEST if is_slowest else NAME, caption, said, drawn)


def _placed(shown: Shown, names: Names) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """Titles of the lanes, the bars below them, and how many events are not drawn."""
    titles, marks = [], []
    begin, least = shown.step.start_ns, LEAST * shown.step.dur_ns
    row = drawn = 0
    for name, bars in _lanes(shown, names):
        seen = [bar for bar in bars if bar.until_ns - bar.start_ns >= least]
        if seen:
            titles.append({"top": row, "name": middle_cut(line(name), LETTERS)})
            marks += [_mark(bar, row + 1 + bar.depth, begin) for bar in seen]
            drawn += sum(bar.lasted_ns is not None for bar in seen)
            row += 2 + max(bar.depth for bar in seen)
    return titles, marks, len(shown.events) - drawn


def _mark(bar: Bar, row: int, begin: int) -> dict[str, Any]:
    lasted = bar.until_ns - bar.start_ns if bar.lasted_ns is None else bar.lasted_ns
    left, right = (round((at - begin) / NS_PER_MS, 6) for at in (bar.start_ns, bar.until_ns))
    return {
        "left": left, "right": right, "top": round(row + _HEIGHT * (1 - bar.high), 3), "bottom": row + _HEIGHT,
        "name": line(bar.name), "heat": _PALETTE.index(bar.colour), "turned": False,
        "told": line(f"{bar.name}: {format_ns(lasted)}"),
    }  # fmt: skip


def _lanes(shown: Shown, names: Names) -> Iterator[tuple[str, list[Bar]]]:
    begin = shown.step.start_ns
    yield (
        "parts of the step",
        [
            Bar(begin + part.from_ns, begin + part.until_ns, _word(part.phase), PHASES.get(part.phase, _OTHER))
            for part in shown.parts
        ],
    )
    tracks: dict[tuple[str, str], list[TimelineEvent]] = {}
    for event in shown.events:
        tracks.setdefault((event.kind, event.track or ""), []).append(event)
    for (kind, side), events in tracks.items():
        if kind == "fetch":
            name = "batches that the loop waited for" if side in ("", "iterator") else f"batches: {side}"
            yield name, _nested(events, shown, lambda _: "batch", lambda _: _BATCH)
    yield from _queues(shown, names)
    others = {key: events for key, events in tracks.items() if key[0] in _LANES}
    largest = sorted(others.items(), key=lambda pair: -sum(event.dur_ns for event in pair[1]))[:MOST_LANES]
    for (kind, track), events in sorted(largest, key=lambda pair: list(_LANES).index(pair[0][0])):
        name = f"{_LANES[kind]}: {track}" if track else _LANES[kind]
        yield name, _nested(events, shown, lambda event: event.name or event.kind, _coloured)


def _queues(shown: Shown, names: Names) -> Iterator[tuple[str, list[Bar]]]:
    """A lane for each queue, that of the source first: how full it was from one sample to the next."""
    by_op: dict[int, list[tuple[QueueDepth, float]]] = {}
    for sample in shown.queues:
        if sample.fill_ratio is not None:
            by_op.setdefault(sample.op_id, []).append((sample, sample.fill_ratio))
    for op_id, samples in sorted(by_op.items(), reverse=True):
        ends = [*(sample.t_ns for sample, _ in samples[1:]), shown.end_ns]
        name = names.get((samples[0][0].pipeline_key, op_id), f"operator {op_id}")
        yield f"queue behind {name}", [
            Bar(
                max(sample.t_ns, shown.step.start_ns), until, f"{sample.depth} of {sample.capacity}", _QUEUE,
                high=max(min(full, 1.0), 1 - _HEIGHT),
            )
            for (sample, full), until in zip(samples, ends, strict=True)
        ]  # fmt: skip


def _nested(
    events: Sequence[TimelineEvent],
    shown: Shown,
    name: Callable[[TimelineEvent], str],
    colour: Callable[[TimelineEvent], str],
) -> list[Bar]:
    """Bars of one lane; what lies within another, or overlaps it, is a row below, down to DEEPEST."""
    open_until: list[int] = []
    bars = []
    for event in sorted(events, key=lambda one: (one.start_ns, -one.dur_ns)):
        until = event.start_ns + event.dur_ns
        depth = next((at for at, last in enumerate(open_until) if last <= event.start_ns), len(open_until))
        if depth < DEEPEST:
            open_until[depth:] = [until]
            start, end = max(event.start_ns, shown.step.start_ns), min(until, shown.end_ns)
            bars.append(Bar(start, end, name(event), colour(event), depth, lasted_ns=event.dur_ns))
    return bars


def _coloured(event: TimelineEvent) -> str:
    phase = event.phase or "other"
    return PHASES["communication_exposed" if phase == "communication" else phase if phase in PHASES else "other"]


def _word(phase: str) -> str:
    return "the whole step: its parts were not recorded" if phase == "whole" else title(phase)


def _light(colour: str) -> str:
    """A colour that black letters are read on."""
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return "#" + "".join(f"{(part + 255) // 2:02x}" for part in parts)
