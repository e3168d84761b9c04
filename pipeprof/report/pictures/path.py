"""The path of a tuning: for each change what it was predicted to bring, and what pairs of runs measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words

HEIGHT = 18  # px of a drawing
MARGIN = 0.05  # of the scale, at either end
MOST = 4.0  # times: where the scale ends, at the latest
_KEY = "Band: predicted. Dot with its line: measured. Upright line: the speed before the change."


class Step(NamedTuple):
    """A change that was tried, or all that were accepted; ratios are of the speed before it."""

    name: str
    about: str
    kind: str  # its look: good | low | bad
    came: str
    predicted: tuple[float, float] | None
    measured: tuple[float, float, float] | None  # ratio, and the ends of its interval


def path_of(steps: Sequence[Step]) -> list[str]:
    """The lines of the picture, in the order of the trials; none without a trial."""
    if not steps:
        return []
    known = [value for step in steps for value in (1.0, *(step.predicted or ()), *(step.measured or ()))]
    scale = min(known), min(max(known), MOST)
    lines = [line for step in steps for line in _step(step, scale)]
    return [
        '<div class="picture">', "<h2>The path taken</h2>", '<ol class="flow">', *lines, "</ol>",
        f'<p class="soft">{_KEY}</p>', "</div>",
    ]  # fmt: skip


def _step(step: Step, scale: tuple[float, float]) -> list[str]:
    drawn = [f'<line class="edge" x1="{_at(1.0, scale)}" x2="{_at(1.0, scale)}" y2="{HEIGHT}"/>']
    if step.predicted:
        low, high = (_share(end, scale) for end in step.predicted)
        drawn.append(f'<rect class="entries" x="{low:.1f}%" width="{max(high - low, 0.5):.1f}%" y="5" height="8"/>')
    if step.measured:
        dot, begin, end = (_at(value, scale) for value in step.measured)
        drawn.append(f'<line class="spread" x1="{begin}" x2="{end}" y1="9" y2="9"/><circle cx="{dot}" cy="9" r="5"/>')
    figure = f"measured x{step.measured[0]:.2f}" if step.measured else "not measured"
    return [
        f'<li class="stage {step.kind}">',
        f'<span class="who"><strong>{words(step.name)}</strong></span><span class="much">{figure}</span>',
        f'<svg width="100%" height="{HEIGHT}" aria-hidden="true">', *drawn, "</svg>",
        f'<span class="soft"><strong>{escape(step.came)}</strong> {escape(step.about)}</span>', "</li>",
    ]  # fmt: skip


def _share(value: float, scale: tuple[float, float]) -> float:
    """Per cent of the width."""
    low, high = scale
    inside = (min(max(value, low), high) - low) / ((high - low) or 1.0)
    return 100 * (MARGIN + inside * (1 - 2 * MARGIN))


def _at(value: float, scale: tuple[float, float]) -> str:
    return f"{_share(value, scale):.1f}%"
