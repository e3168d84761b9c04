"""Tables of one rank while they are being written: rows leave memory as they come.

Times go in as ns of their own clock. Files of one rank may be on several: `counter` (the device's, from files of
10 ns ticks), `epoch`, `raw` (CLOCK_MONOTONIC_RAW). Each clock has its own zero; nothing relates them. What must hold
within the files is checked: a violation is a warning that names file, row and numbers.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pipeprof.read.mindspore_ops import graph_collective
from pipeprof.read.source.numbers import LARGEST, integer
from pipeprof.read.tables.rows import FULL, LONGEST, Key
from pipeprof.read.tables.share import Notes, RankTables
from pipeprof.read.tables.steps import Steps
from pipeprof.record.schema import BY_NAME
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeprof.record.run import Run

NS_PER_TICK = 10  # of the device counter, 100 MHz


def ticks(text: str) -> int | None:
    """Ticks of the device counter as ns; None for anything that is not a whole number of them."""
    value = integer(text)
    return None if value is None or not 0 <= value < LARGEST // NS_PER_TICK else value * NS_PER_TICK


def phase_of(name: str, kind: str | None) -> str:
    """Phase of an operator of a graph by its full name, else `other`."""
    if name.startswith("hcom_") or (kind or "").startswith("hcom") or graph_collective(kind or name):
        return "communication"
    if "/optimizer" in name:
        return "optimizer"
    if name.startswith("Gradients/") or "/gradients/" in name:
        return "backward"
    return "forward" if name.startswith("Default/network") else "other"


_SPELLED_OUT = 3  # violations of one rule in one file; the others are counted


class Checks:
    """Violations found in the files of a rank."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._counts: Counter[tuple[str, str]] = Counter()

    def that(self, holds: bool, path: Path, row: object, rule: str, seen: str) -> bool:  # noqa: FBT001 - reads as a sentence
        """Whether a rule holds; when not, the first few rows are named."""
        if not holds:
            self._counts[path.name, rule] += 1
            if self._counts[path.name, rule] <= _SPELLED_OUT:
                self._notes.add("self_check", f"`{path.name}`, row {row}: {rule}, found {seen}")
        return holds

    def close(self) -> None:
        """Say how many more there are."""
        for (name, rule), count in self._counts.items():
            if count > _SPELLED_OUT:
                more = format_count(count - _SPELLED_OUT, "more row")
                self._notes.add("self_check", f"`{name}`: {rule}: the same in {more}")
        self._counts.clear()


class Out(RankTables):
    """One rank's tables. `steps` is what is known of the rank's steps, `info` of its operators before they are seen."""

    def __init__(self, run: Run, rank: int, zeros: Mapping[str, int], progress: Callable[[str], None]) -> None:
        super().__init__(run, rank, zeros, progress)
        self.checks = Checks(self.notes)
        self.steps = Steps()
        self.sources: str | None = None
        self._before: dict[str, int] = {}
        self.info: dict[str, dict[str, Any]] = {}

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

    def step_of(self, number: int | None) -> int | None:
        """Position of the step with this number; where no file tells the steps, a new number is the next one."""
        if number is None or self.steps.source:
            return self.steps.position(number)
        return self.steps.know(number)

    def add_step(self, number: int, times: tuple[int, int | None, int | None, int], clock: str, **more: Any) -> int:
        """The next step, by its start, FP, BP and end; the first is warm-up unless `more` says otherwise."""
        start, fp, _, end = times
        position = self.steps.add(number, start, end, clock)
        start_ns, fp_ns, bp_ns, end_ns = (None if time is None else self.at(time, clock) for time in times)
        values = {
            "kind": "warmup" if position == 0 else "train", "fp_source": None if fp is None else "op",
            "data_wait_ns": None if fp is None else fp - start,
        }  # fmt: skip
        self.add(
            "step", step=position, kind_step=position, start_ns=start_ns, fp_ns=fp_ns, bp_ns=bp_ns, end_ns=end_ns,
            **values | more,
        )  # fmt: skip
        return position

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
        facts = dict(self.info.get(name, {})) if name else {}
        facts.update({key: value for key, value in more.items() if value is not None})
        scope = name.rpartition("/")[0] if name else ""
        self.add(
            "op_info", op_id=number, name=_short(name), type=_short(kind or facts.pop("type", None)), device=device,
            scope=_short(scope or None), phase=phase_of(name or "", kind),
            in_shapes=_short(shapes or facts.pop("in_shapes", None)),
            **{key: _short(value) for key, value in facts.items() if key in ("out_shapes", "flops")},
        )  # fmt: skip


def _short(value: Any) -> Any:
    return value[:LONGEST].encode("utf-8", "replace").decode() if isinstance(value, str) else value
