"""Steps of a MegEngine timeline: `step()` of its profiler leaves an event `StopStep` at the end of each."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.read.megengine.outcome import Outcome

MARK = "StopStep"


class Steps:
    """Intervals between marks, in time order; the first begins where the recording does. Times in ns."""

    def __init__(self, begin: int, stops: Sequence[int]) -> None:
        ends = sorted({stop for stop in stops if stop > begin})
        self.starts = [begin, *ends[:-1]] if ends else []
        self.ends = ends

    def of(self, time: int) -> int | None:
        """The step that a time lies in; None for none."""
        at = bisect_right(self.starts, time) - 1
        return at if at >= 0 and time < self.ends[at] else None

    def add_to(self, out: Outcome) -> None:
        """Rows of `step`. The profiler was started on purpose, so all of them count as training."""
        for number, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            out.kept.add(
                "step", step=number, kind_step=number, kind="train", start_ns=start, end_ns=end, in_window=False,
                source_step=number,
            )  # fmt: skip
