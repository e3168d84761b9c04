"""From which line of the program PyNative operators were launched, by the one step that was run line by line."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.read.mindspore_ops import Execution
    from pipeprof.read.spool.operators import Placed
    from pipeprof.read.spool.process import Process


def by_line(process: Process) -> list[tuple[int, int]]:
    """When the program ran line by line, and so more slowly."""
    return [(int(event["rows"][0][0]), int(event["t"])) for event in process.all("lines") if event["rows"]]


class CallSites:
    """file:line of the k-th execution of each type in a step, for steps that launch as many of the type."""

    def __init__(self, process: Process, led: Sequence[Execution]) -> None:
        self._sites: dict[str, list[str]] = {}
        for event in process.all("lines"):
            begins = [int(begin) for begin, _ in event["rows"]]
            for execution in sorted(led, key=lambda item: item.start_ns):
                place = bisect_right(begins, execution.start_ns) - 1
                number = event["rows"][place][1] if place >= 0 else len(event["sites"])
                if number < len(event["sites"]) and execution.start_ns < int(event["t"]):
                    self._sites.setdefault(execution.name, []).append(event["sites"][number])

    def of(self, placed: Sequence[Placed]) -> list[str | None]:
        """The site of each execution; None where the step launched another number of its type, or in a graph."""
        counts: Counter[tuple[int | None, str]] = Counter((item.step, item.execution.name) for item in placed)
        seen: Counter[tuple[int | None, str]] = Counter()
        found: list[str | None] = []
        for item in placed:
            key = (item.step, item.execution.name)
            sites = self._sites.get(item.execution.name, ())
            fits = item.step is not None and counts[key] == len(sites) and "/" not in item.execution.name
            found.append(sites[seen[key]] if fits else None)
            seen[key] += 1
        return found
