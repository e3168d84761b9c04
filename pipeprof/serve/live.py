"""Runs that are recorded now: what `pipeprof top` says of each, in parts that a page asks for again."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report import status, top
from pipeprof.report.answer import Answer, verdict_in
from pipeprof.report.answer.screen import labelled
from pipeprof.report.page import chip
from pipeprof.report.words.verdict import phrase
from pipeprof.units import format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.record.run import Run

FEW_RANKS = 2  # of each run on the page of all
LEAST_POINTS = 2  # of a line


class Live:
    """A run that is recorded: looks at it, and how fast each of its processes was in those before."""

    def __init__(self, run: Run) -> None:
        self._watch = top.Watch(run)
        self._last: dict[str, Any] | None = None
        self._past: top.Past = defaultdict(lambda: deque(maxlen=top.PAST))

    def look(self) -> Shown:
        """What is known now; as often as it is asked for, it costs little."""
        content = self._watch.now()
        if content is not self._last:
            top.remember(self._past, content)
            self._last = content
        return Shown(top.seen(content), status.run_sentence(content), self._past)


class Shown(NamedTuple):
    """What is known of a run, the same as a sentence, and its steps/s in the looks up to this one, by process."""

    look: top.Look
    sentence: str
    past: Mapping[int | None, Sequence[float]]

    @property
    def verdict(self) -> dict[str, Any]:
        """The verdict so far; empty where there is none."""
        return (self.look.verdict or {}) if self.is_recorded else {}

    @property
    def is_recorded(self) -> bool:
        """Whether it still is."""
        return self.look.state == status.RECORDING


def place(address: str, mark: str, lines: Sequence[str]) -> list[str]:
    """Where looks are shown. The page asks `address` for the next, and begins anew when `mark` has changed."""
    facts = f'data-live="{address}" data-mark="{escape(mark)}" aria-label="recorded now"'
    return [f"<section {facts}{'' if lines else ' hidden'}>", *lines, "</section>"]


def card(title: str, shown: Shown) -> list[str]:
    """The figures of a run among others; `title` is HTML."""
    return [
        '<li class="card">',
        f"<p>{title} {_chip(shown)}</p>",
        *_said(shown)[:1],
        *_ranks(shown, FEW_RANKS),
        "</li>",
    ]


def whole(shown: Shown) -> list[str]:
    """All figures of a run."""
    return [*(["<p>", _chip(shown), "</p>"] if _chip(shown) else []), *_said(shown), *_ranks(shown, None)]


def sparkline(values: Sequence[float], said: str) -> str:
    """The values from left to right on an axis from 0, so that twice as much is twice as high."""
    if len(values) < LEAST_POINTS:
        return ""
    most, last = max(values) or 1.0, len(values) - 1
    points = " ".join(f"{2 + 116 * at / last:.1f},{26 - 24 * value / most:.1f}" for at, value in enumerate(values))
    look = f'class="sparkline" width="120" height="28" role="img" aria-label="{escape(said)}"'
    return f'<svg {look}><polyline points="{points}"/></svg>'


def step_times(times: Sequence[float]) -> str:
    """The step times of runs, the oldest first."""
    if not times:
        return ""
    ends = f"the first {format_ns(times[0])}, the last {format_ns(times[-1])}"
    return sparkline(times, f"{len(times)} step times, {ends}")


def _chip(shown: Shown) -> str:
    """What limits it so far."""
    if not shown.verdict.get("verdict"):
        return ""
    return chip(phrase(verdict_in(shown.verdict).lead), "limit")


def _said(shown: Shown) -> list[str]:
    """The verdict so far: its sentence, then the rest of the first screen."""
    sentence = next(filter(None, top.so_far(shown.verdict or None)), "")
    screen = shown.verdict.get("first_screen")
    rows = labelled(Answer.of(screen)) if screen else []
    lines = [f'<p class="strong">{words(sentence)}</p>'] if sentence else []
    lines += ['<dl class="answer">'] if rows else []
    lines += [f"<dt>{escape(label)}</dt><dd>{words(text)}</dd>" for label, text in rows]
    return [*lines, *(["</dl>"] if rows else [])]


def _ranks(shown: Shown, most: int | None) -> list[str]:
    """The pace and the queues of each rank, and the machine."""
    ranks = shown.look.ranks
    lines = [] if ranks else [f"<p>{words(shown.sentence)}</p>"]
    for rank in ranks[:most]:
        paces = list(shown.past.get(rank.pid, ()))
        drawn = sparkline(paces, f"steps per second of the last {format_count(len(paces), 'look')}")
        lines += [f'<p class="pace"><span>{words(rank.text)}</span>{drawn}</p>']
        lines += [f'<p class="soft">{escape(line.strip())}</p>' for line in top.pace_lines(rank.pace)]
        lines += ['<ul class="flow">', *map(_queue, rank.queues), "</ul>"] if rank.queues else []
    if most is not None and len(ranks) > most:
        lines.append(f'<p class="soft">and {format_count(len(ranks) - most, "more rank")}</p>')
    machine = " ".join(filter(None, top.machine_lines(shown.look.machine)))
    return [*lines, *([f'<p class="soft">{escape(machine)}</p>'] if machine else [])]


def _queue(queue: top.Queue) -> str:
    wide = 100 * min(queue.depth / queue.capacity, 1.0)
    return (
        '<li class="queue"><svg width="84" height="8" aria-hidden="true"><rect class="track" width="100%" height="8"/>'
        f'<rect class="entries" width="{wide:.1f}%" height="8"/></svg>'
        f"{queue.depth} of {queue.capacity} in the queue behind {escape(queue.op_type)}</li>"
    )
