"""The data pipelines of both sides of a comparison as one flow: what came, went or changed, and the work of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import msgspec

from pipeprof.escape import html as escape
from pipeprof.escape import line
from pipeprof.report.answer.shape import KINDS
from pipeprof.report.charts.chart import middle_cut
from pipeprof.report.pictures.flow import MOST_LETTERS
from pipeprof.units import format_count, format_ns, format_ratio

SIDES = ("base", "new")
MOST_WORK, MOST_FILL = 1.1, 0.1  # a tenth more or less work, or fill by a tenth of the queue, is marked
_KEY = "From the source to the training. A bar is a worker's time for a batch: grey of the base, blue of the new side."
_MARKED = (
    "Marked is what came or went, other workers, a tenth more or less work, a fill that moved by a tenth of the queue; "
    "whether a time changed beyond noise is in the tables."
)


class Operator(msgspec.Struct, frozen=True):
    """A stage of one side, as the comparison has it."""

    pipeline: str
    op_id: int
    name: str
    workers: int | None = None
    work_ns: float | None = None
    fill_ratio: float | None = None
    place: str | None = None

    @property
    def busy_ns(self) -> float:
        """A worker's time for a batch; 0 where it was not measured."""
        return (self.work_ns or 0.0) / max(self.workers or 1, 1)


class Pair(NamedTuple):
    """The same stage on both sides; None where a side has none."""

    base: Operator | None
    new: Operator | None

    @property
    def any(self) -> Operator:
        """That of the new side, where it has it."""
        return self.new or self.base  # type: ignore[return-value] # one of them is there

    @property
    def change(self) -> str:
        """What is another on the new side; "" for nothing."""
        if self.base is None or self.new is None:
            return "only in the new run" if self.base is None else "only in the base"
        return "changed" if any(_changes(self.base, self.new)) else ""


def _changes(base: Operator, new: Operator) -> Iterator[bool]:
    yield base.workers != new.workers
    yield bool(base.work_ns and new.work_ns) and not 1 / MOST_WORK < _ratio(new.work_ns, base.work_ns) < MOST_WORK
    if base.fill_ratio is not None and new.fill_ratio is not None:
        yield abs(new.fill_ratio - base.fill_ratio) >= MOST_FILL


def _ratio(new: float | None, base: float | None) -> float:
    return (new or 0.0) / (base or 1.0)


def pairs_of(pipelines: Mapping[str, Sequence[object]]) -> list[Pair]:
    """The stages of both sides, source first; none where one of the sides is not known."""
    base, new = (_busiest(msgspec.convert(pipelines.get(side) or [], list[Operator])) for side in SIDES)
    if not base or not new:
        return []
    names = [[operator.name for operator in side] for side in (base, new)]
    pairs = []
    for _, left, base_end, right, new_end in SequenceMatcher(None, names[0], names[1], autojunk=False).get_opcodes():
        alone = [operator for operator in base[left:base_end] if operator.name not in names[1]]
        pairs += [Pair(operator, None) for operator in alone]
        pairs += [Pair(_named(base, operator.name), operator) for operator in new[right:new_end]]
    return pairs


def _named(operators: Sequence[Operator], name: str) -> Operator | None:
    return next((operator for operator in operators if operator.name == name), None)


def _busiest(operators: Sequence[Operator]) -> list[Operator]:
    """Those of the pipeline with the most work, source first."""
    spent: dict[str, float] = {}
    for operator in operators:
        spent[operator.pipeline] = spent.get(operator.pipeline, 0.0) + (operator.work_ns or 0.0)
    most = max(spent, key=lambda key: (spent[key], key), default=None)
    own = [operator for operator in operators if operator.pipeline == most]
    return sorted(own, key=lambda operator: -operator.op_id)


def pipelines_of(pipelines: Mapping[str, Sequence[object]]) -> list[str]:
    """The lines of the picture; none where one of the sides is not known."""
    pairs = pairs_of(pipelines)
    if not pairs:
        return []
    changed = sum(bool(pair.change) for pair in pairs)
    said = f"{format_count(changed, 'stage')} changed" if changed else "no stage changed"
    most = max(side.busy_ns for pair in pairs for side in pair if side is not None)
    lines = [line for pair in pairs for line in _stage(pair, most)]
    note = f"{_KEY} {_MARKED}" if changed else _KEY
    return [
        '<div class="picture">', f"<h2>Data pipelines of both sides: {said}</h2>", '<ol class="flow">', *lines, "</ol>",
        f'<p class="soft">{note}</p>', "</div>",
    ]  # fmt: skip


def _stage(pair: Pair, most: float) -> list[str]:
    name = line(KINDS.get(pair.any.name, pair.any.name))
    short = escape(middle_cut(name, MOST_LETTERS))
    sides = [side for side in pair if side is not None]
    work = _both([format_ns(side.work_ns) for side in sides if side.work_ns is not None])
    fill = _both([format_ratio(side.fill_ratio) for side in sides if side.fill_ratio is not None])
    workers = _both([format_count(side.workers, "worker") for side in sides if side.workers])
    bars = "".join(
        f'<rect class="track" y="{row * 9}" width="100%" height="8" rx="3"/>'
        f'<rect class="{side}" y="{row * 9}" width="{100 * operator.busy_ns / (most or 1.0):.1f}%" height="8" rx="3"/>'
        for row, (side, operator) in enumerate(zip(SIDES, pair, strict=True)) if operator is not None
    )  # fmt: skip
    chip = f' <span class="chip limit">{escape(pair.change)}</span>' if pair.change else ""
    about = [workers, f"queue {fill} full" if fill else "", line(pair.any.place or "")]
    return [
        f'<li class="stage{" limit" if pair.change else ""}">',
        f'<span class="who"><strong title="{escape(name)}">{short}</strong>{chip}</span>',
        f'<span class="much">{escape(f"{work} a batch" if work else "not timed")}</span>',
        f'<svg width="100%" height="17" aria-hidden="true">{bars}</svg>',
        f'<span class="soft">{escape(", ".join(filter(None, about)))}</span>', "</li>",
    ]  # fmt: skip


def _both(values: Sequence[str]) -> str:
    """`4 ms -> 9 ms`; once where both sides say the same."""
    return " -> ".join(dict.fromkeys(values))
