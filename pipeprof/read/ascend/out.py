"""Tables of one rank while they are being written: rows leave memory as they come.

Times go in as ns of their own clock. Files of one rank may be on several: `counter` (the device's, from files of
10 ns ticks), `epoch`, `raw` (CLOCK_MONOTONIC_RAW). Each clock has its own zero; nothing relates them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.read.ascend.values import phase_of
from pipeprof.read.source.notes import Notes
from pipeprof.read.tables.operators import FULL, LONGEST
from pipeprof.read.tables.steps import Steps
from pipeprof.read.tables.streamed import Streamed
from pipeprof.record.schema import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeprof.read.tables.operators import Key
    from pipeprof.record.run import Run


class Out(Streamed):
    """One rank's tables. `notes` gathers what was odd, `steps` what is known of the rank's steps."""

    def __init__(self, run: Run, rank: int, zeros: Mapping[str, int], progress: Callable[[str], None]) -> None:
        super().__init__(run, rank)
        self.zeros = zeros
        self.progress = progress
        self.notes = Notes()
        self.steps = Steps()
        self.sources: str | None = None
        self.first: dict[str, int] = {}
        self.last: dict[str, int] = {}
        self._odd: dict[tuple[str, str], str] = {}
        self._before: dict[str, int] = {}
        self.info: dict[str, dict[str, Any]] = {}

    def odd(self, path: Path, what: str, where: str) -> None:
        """One more value of a file that was left out for this reason; of all these, the place of the first is said."""
        first = self._odd.setdefault((path.name, what), where)
        self.notes.count(path, f"{what} (first: {first})")

    def at(self, time_ns: int, clock: str) -> int:
        """A time of a clock as ns since that clock's zero; remembers the first and the last."""
        value = time_ns - self.zeros.get(clock, 0)
        self.first[clock] = min(self.first.get(clock, value), value)
        self.last[clock] = max(self.last.get(clock, value), value)
        return value

    def has(self, table: str) -> bool:
        """Whether a row of this capture was added to a table."""
        return self.total(table) > self._before.get(table, 0)

    def next_capture(self) -> None:
        """What comes now is another capture of the rank, later in time: its steps follow those that are known."""
        self._before = {table: self.total(table) for table in BY_NAME}
        source, more = self.steps.source, self.steps.more
        self.steps = Steps(self.steps.base + max(len(self.steps), self.steps.added))
        self.steps.more = more
        self.sources = self.sources or source

    def operator(
        self, name: str | None, kind: str | None, device: str | None, shapes: str | None = None, **more: Any
    ) -> int:
        """Identity of an operator; its row in op_info is made the first time."""
        number = self.operators.numbers.get((name, kind, device, shapes))
        if number is not None:
            return number
        nothing = (None, None, None, None)
        number, made = self.operators.take((name, kind, device, shapes), (None, kind, device, None), nothing)
        if self.operators.full:
            self.notes.add("operators", FULL)
        if made is not None:
            self._describe(number, made, more)
        return number

    def _describe(self, number: int, key: Key, more: Mapping[str, Any]) -> None:
        name, kind, device, shapes = key
        known = dict(self.info.get(name, {})) if name else {}
        known.update({key: value for key, value in more.items() if value is not None})
        scope = name.rpartition("/")[0] if name else ""
        self.add(
            "op_info", op_id=number, name=_short(name), type=_short(kind or known.pop("type", None)), device=device,
            scope=_short(scope or None), phase=phase_of(name or "", kind),
            in_shapes=_short(shapes or known.pop("in_shapes", None)),
            **{key: _short(value) for key, value in known.items() if key in ("out_shapes", "flops")},
        )  # fmt: skip


def _short(value: Any) -> Any:
    return value[:LONGEST].encode("utf-8", "replace").decode() if isinstance(value, str) else value
