"""Steps of a training whose trace marks its computing and its data loader, but no step: what lies between two blocks.

A step ends where its computing ends, and begins where that of the step before ended.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from pipeprof.read.chrome.kinds import COMPUTING, LOADING, Marks
from pipeprof.read.chrome.spill import NONE
from pipeprof.read.tables.steps import outermost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.read.chrome.texts import Texts

_FETCH = re.compile(r"dataloader\.fetch(?:\.iter)?")
_PAUSE = re.compile(r"\w+\.checkpoint|checkpoint\..*|.*\beval(?:uate|uation)?\b.*")
_LOADER = "data loader"


class LoopMarks:
    """Events by what they are to a training loop, in file times."""

    def __init__(self) -> None:
        self._computing: dict[int, list[Marks]] = defaultdict(list)  # by track
        self._fetches: dict[int, list[Marks]] = defaultdict(list)
        self._pauses: list[Marks] = []
        self._loading_from: int | None = None
        self._loading: set[int] = set()  # tracks

    def add(self, name: str, start: int, end: int, track: int) -> None:
        """Note an event, if its name tells what it is to the loop."""
        mark = Marks(NONE, start, end)
        if COMPUTING.fullmatch(name):
            self._computing[track].append(mark)
        elif _PAUSE.fullmatch(name):
            self._pauses.append(mark)
        elif LOADING.match(name):
            self._loading.add(track)
            self._loading_from = start if self._loading_from is None else min(start, self._loading_from)
            if _FETCH.fullmatch(name):
                self._fetches[track].append(mark)

    def loader_tracks(self) -> set[int]:
        """Threads that load data, and compute nothing."""
        return self._loading - self._computing.keys()

    def other_trainings(self) -> int:
        """Threads that compute, too, beside the one whose steps are told."""
        return max(0, len(self._computing) - 1)

    def steps(self, texts: Texts) -> tuple[list[Marks], list[Marks]]:
        """The steps, and the waits for the data loader, of the thread that computes longest.

        Where no wait is recorded, all of a step counts as one that is no computing, checkpoint or evaluation.
        """
        if not self._computing:
            return [], []
        track = max(self._computing, key=lambda number: sum(mark.end - mark.start for mark in self._computing[number]))
        blocks = outermost(self._computing[track])
        begin = blocks[0].start if self._loading_from is None else min(self._loading_from, blocks[0].start)
        begins = [begin, *(block.end for block in blocks)]
        steps = [Marks(number, begins[number], block.end) for number, block in enumerate(blocks)]
        loader = texts.number(_LOADER)
        waits = self._fetches.get(track) or [
            gap
            for step, block in zip(steps, blocks, strict=True)
            for gap in without(Marks(loader, step.start, block.start), self._pauses)
        ]
        return steps, [mark._replace(number=loader) for mark in waits]


def without(interval: Marks, pauses: Sequence[Marks]) -> list[Marks]:
    """The parts of an interval that lie in none of the others."""
    parts, begin = [], interval.start
    for pause in outermost(pauses):
        if pause.end <= begin or pause.start >= interval.end:
            continue
        if pause.start > begin:
            parts.append(interval._replace(start=begin, end=pause.start))
        begin = pause.end
    if begin < interval.end:
        parts.append(interval._replace(start=begin))
    return parts
