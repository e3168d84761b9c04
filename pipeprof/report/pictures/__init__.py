"""The answer as a picture: a step as a bar of its phases, the data pipeline as a flow; HTML and SVG alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report.pictures.flow import LIMITS, busiest, stages_of
from pipeprof.report.pictures.parts import bar_of
from pipeprof.units import format_count, format_ns, format_ratio
from pipeprof.verdict.capacity import CONSUMER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.report.pictures.flow import Stage
    from pipeprof.report.pictures.parts import Bar, Part

INSIDE = 0.14  # of the bar: a part as wide as this has its share written in it
HEIGHT = 34  # px of the bar
_BUSY = "The length of a bar is the share of the time in which the stage is busy, from the source to the training."
_BUSIER = (
    " The busiest one is not always the one that limits: a thread counts as busy while it waits for the interpreter's "
    "lock."
)


def picture_of(content: dict[str, Any], *, linked: bool = False) -> list[str]:
    """The lines of the picture beside the answer; none where nothing was measured that it could show.

    `linked`: each stage leads to its panel.
    """
    bar, stages = bar_of(content), stages_of(content)
    lines = [*(_bar(bar) if bar else []), *(_flow(stages, linked=linked) if stages else [])]
    return ['<div class="picture">', *lines, "</div>"] if lines else []


def _bar(bar: Bar) -> list[str]:
    total = sum(part.share for part in bar.parts)
    at, drawn, marks = 0.0, [], []
    for part in bar.parts:
        wide = 100 * part.share / total
        place = f'x="{at:.2f}%" width="{wide:.2f}%"'
        drawn.append(
            f'<rect {place} height="{HEIGHT}" fill="{part.colour}"><title>{escape(_said(part))}</title></rect>'
        )
        if part.share / total >= INSIDE:
            middle = f'x="{at + wide / 2:.2f}%" y="{HEIGHT / 2 + 5:.0f}" text-anchor="middle"'
            drawn.append(f'<text {middle} fill="#000">{format_ratio(part.share)}</text>')
        if part.limits:
            marks.append(f'<rect class="marked" {place} y="1" height="{HEIGHT - 2}"/>')
        at += wide
    label = f"{bar.title}: {', '.join(map(_said, bar.parts))}"
    return [
        f"<h2>{words(bar.title)}</h2>",
        f'<svg width="100%" height="{HEIGHT}" role="img" aria-label="{escape(label)}">', *drawn, *marks, "</svg>",
        '<ul class="keys">', *map(_key, bar.parts), "</ul>",
    ]  # fmt: skip


def _said(part: Part) -> str:
    time = "" if part.ns is None else f"{format_ns(part.ns)}, "
    return f"{part.name} {time}{format_ratio(part.share)}"


def _key(part: Part) -> str:
    look = ' class="limit"' if part.limits else ""
    size = 'width="11" height="11"'
    square = f'<svg {size} aria-hidden="true"><rect {size} rx="2" fill="{part.colour}"/></svg>'
    return f"<li{look}>{square}{escape(_said(part))}</li>"


def _flow(stages: Sequence[Stage], *, linked: bool) -> list[str]:
    shown = busiest(stages)
    lines = [line for stage in shown for line in _stage(stage, linked=linked)]
    note = "" if len(shown) == len(stages) else f" {len(stages) - len(shown)} of them that are less busy are left out."
    if any(stage.limits and (other.busy or 0) > (stage.busy or 1) for stage in shown for other in shown):
        note += _BUSIER
    title = f"Data pipeline of {format_count(len(stages) - 1, 'stage')}"
    return [f"<h2>{title}</h2>", '<ol class="flow">', *lines, "</ol>", f'<p class="soft">{_BUSY}{note}</p>']


def anchor(stage: Stage) -> str:
    """The id of its panel."""
    return "stage-training" if stage.op_id == CONSUMER else f"stage-{stage.op_id}"


def name_of(stage: Stage, *, linked: bool = False) -> str:
    """Its name, and whether it limits, or takes most of a CPU that is short."""
    mark = f' <strong class="chip limit">{stage.limits}</strong>' if stage.limits else ""
    name = f'<strong title="{escape(stage.name)}">{escape(stage.short)}</strong>'
    return (f'<a href="#{anchor(stage)}">{name}</a>' if linked else name) + mark


def _stage(stage: Stage, *, linked: bool) -> list[str]:
    wide = 0.0 if stage.busy is None else min(stage.busy, 1.0) * 100
    about = [
        stage.kind, format_count(stage.workers, "worker") if stage.workers else "", stage.place,
        f"feeds {stage.feeds}" if stage.feeds else "",
    ]  # fmt: skip
    bar = (
        '<svg width="100%" height="10" aria-hidden="true"><rect class="track" width="100%" height="10" rx="3"/>'
        f'<rect class="busy" width="{wide:.1f}%" height="10" rx="3"/></svg>'
    )
    lines = [
        f'<li class="stage{(" limit" if stage.limits == LIMITS else " limit cpu") if stage.limits else ""}">',
        f'<span class="who">{name_of(stage, linked=linked)}</span><span class="much">{escape(_much(stage))}</span>',
        bar,
        f'<span class="soft">{escape(", ".join(filter(None, about)))}</span>',
        "</li>",
    ]
    return [*lines, *_queue(stage)]


def _much(stage: Stage) -> str:
    parts = [
        "not timed" if stage.busy is None else f"busy {format_ratio(stage.busy)}",
        "" if stage.work_ns is None else f"{format_ns(stage.work_ns)} a batch",
    ]
    return ", ".join(filter(None, parts))


def _queue(stage: Stage) -> list[str]:
    """The queue behind a stage, which the next one reads from."""
    if stage.fill is None:
        return []
    drawn = (
        '<svg width="84" height="8" aria-hidden="true"><rect class="track" width="100%" height="8"/>'
        f'<rect class="entries" width="{100 * min(stage.fill, 1.0):.1f}%" height="8"/></svg>'
    )
    of = f" of capacity {stage.capacity}" if stage.capacity else ""
    return [f'<li class="queue">{drawn}its queue{of} is {format_ratio(stage.fill)} full</li>']
