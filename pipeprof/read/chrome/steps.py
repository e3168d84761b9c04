"""Steps and the waits for a data loader: by their names (`ProfilerStep#N`), else between blocks that compute.

Where a trace marks its computing and its data loader, but no step, a step ends where its computing ends, and begins
where that of the step before ended.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.chrome.dialect import COMPUTING, LOADING, Marks
from pipeprof.read.chrome.spill import NONE
from pipeprof.read.tables.steps import outermost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.read.chrome.numbering import Texts
    from pipeprof.read.source.numbers import Ints

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


class Steps:
    """Steps of a rank in time order; times are ns since the repetition's zero.

    The data wait of a step is the time of the data loader's events that begin in it, and nothing else: it is put at
    the step's front (`fp_ns` = `start_ns` + wait), wherever in the step the loader was asked.
    """

    def __init__(self, steps: Sequence[Marks], loads: Sequence[Marks], names: Sequence[str]) -> None:
        self.marks = outermost(steps)
        self.starts = np.array([mark.start for mark in self.marks], np.int64)
        self.ends = np.array([mark.end for mark in self.marks], np.int64)
        self.loads = outermost(loads)
        self._names = names
        self._load_steps = self.of(np.array([mark.start for mark in self.loads], np.int64))

    def of(self, times: Ints) -> Ints:
        """The step that each time lies in; NONE for none."""
        if not len(self.starts):
            return np.full(len(times), NONE, np.int64)
        at = np.searchsorted(self.starts, times, "right") - 1
        return np.where((at >= 0) & (times < self.ends[np.maximum(at, 0)]), at, NONE)

    def part_rows(self) -> list[dict[str, object]]:
        """Rows of `run_part`: the steps, and what lies between those that follow each other; none without such gaps.

        Between two steps whose numbers do not follow each other the profiler was off.
        """
        pairs = [(last, mark) for last, mark in pairwise(self.marks) if mark.number in (NONE, last.number + 1)]
        gaps = [(last.end, mark.start - last.end) for last, mark in pairs if mark.start > last.end]
        if not gaps:
            return []
        lasted = sum(mark.end - mark.start for mark in self.marks)
        lasted -= sum(max(0, last.end - mark.start) for last, mark in pairs)
        times = {"training": (len(self.marks), self.marks[0].start, lasted)}
        times["between_steps"] = (len(gaps), gaps[0][0], sum(gap for _, gap in gaps))
        return [
            dict(zip(("part", "count", "start_ns", "dur_ns"), (part, *row), strict=True)) for part, row in times.items()
        ]

    def step_rows(self) -> list[dict[str, object]]:
        """Rows of `step`. Only recorded steps are in a trace: all count as training."""
        waits = np.zeros(len(self.marks), np.int64)
        for load, step in zip(self.loads, self._load_steps.tolist(), strict=True):
            if step != NONE:
                waits[step] += min(load.end, self.marks[step].end) - load.start
        rows = []
        for number, mark in enumerate(self.marks):
            wait = int(waits[number]) if self.loads else None
            rows.append(
                {
                    "step": number, "kind_step": number, "kind": "train", "in_window": False,
                    "pipeline_id": 0 if self.loads else None,
                    "start_ns": mark.start, "end_ns": mark.end, "data_wait_ns": wait, "fetch_wait_ns": wait,
                    "fp_ns": None if wait is None else mark.start + min(wait, mark.end - mark.start),
                    "fp_source": None if wait is None else "fetch",
                    "source_step": None if mark.number == NONE else mark.number,
                }
            )  # fmt: skip
        return rows

    def pipeline_rows(self) -> list[dict[str, object]]:
        """Rows of `pipeline`: one per name of a data loader's iterator."""
        return [
            {
                "pipeline_id": number, "pipeline_key": hashlib.sha256(name.encode()).hexdigest()[:16], "role": "train",
                "queues": "not_recorded: a trace has only the wait of the training process",
            }
            for name, number in self._pipelines().items()
        ]  # fmt: skip

    def fetch_rows(self) -> list[dict[str, object]]:
        """Rows of `fetch`: one per wait for a data loader."""
        pipelines, counts, rows = self._pipelines(), dict.fromkeys(self._pipelines().values(), 0), []
        for load, step in zip(self.loads, self._load_steps.tolist(), strict=True):
            number = pipelines[self._names[load.number]]
            rows.append(
                {
                    "pipeline_id": number, "fetch": counts[number], "step": None if step == NONE else step,
                    "start_ns": load.start, "wait_ns": load.end - load.start, "side": "iterator",
                }
            )  # fmt: skip
            counts[number] += 1
        return rows

    def _pipelines(self) -> dict[str, int]:
        names = dict.fromkeys(self._names[load.number] for load in self.loads)
        return {name: number for number, name in enumerate(names)}
