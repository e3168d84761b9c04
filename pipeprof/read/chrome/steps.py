"""Steps (`ProfilerStep#N`) and the waits for a data loader, found by their names."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.chrome.spill import NONE
from pipeprof.read.tables.steps import outermost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipeprof.read.chrome.kinds import Marks


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

    def of(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
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
