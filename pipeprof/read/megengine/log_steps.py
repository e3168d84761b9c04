"""A log of load_and_run as one repetition of a run: its stages, its warm-up and timed iterations as steps.

The log has lengths and no times of day: what it tells is laid one behind the other, from 0 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read.megengine.load_and_run import read_log
from pipeprof.read.megengine.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeprof.read.megengine.load_and_run import Log, TestCase

PRINTED_US = 2  # printed means are rounded to 1 us, and so are the iterations they are of


def read_log_steps(path: Path) -> tuple[Outcome, list[dict[str, Any]]]:
    """Rows of `step` and `stage`, and per test case what was computed beside what the program printed.

    Lines that are not understood are counted as problems. A log that ends before its last line has its damage. Raises
    SourceError when it cannot be read, or nothing in it is of load_and_run.
    """
    log = read_log(path)
    out = _Rows(log).out
    if log.unknown_lines:
        out.problems["line that is not of load_and_run"] = log.unknown_lines
    if not log.complete:
        out.damage = SourceError(f"the log `{path}` ends before its test case does")
    checks = [_check(test) for test in log.tests]
    if any(_differs(check) for check in checks):
        out.problems["mean or deviation that is printed is not that of the iterations"] += 1
    return out, checks


class _Rows:
    """Lays out a log; `out` has its rows."""

    def __init__(self, log: Log) -> None:
        self.out = Outcome()
        self._stage("build", [log.load_ns])
        for test in log.tests:
            self._stage("compile", [test.configure_ns])
            self._stage("warmup", test.warmup_ns, "warmup")
            self._stage("steady", test.iterations, "train")

    def _stage(self, name: str, lengths: Sequence[int | None], kind: str = "") -> None:
        began = self.out.end_ns
        present = [length for length in lengths if length is not None]
        for length in present:
            end = self.out.end_ns + length
            if kind:
                number = len(self.out.tables.rows["step"])
                self.out.tables.add(
                    "step", step=number, kind_step=number, kind=kind, start_ns=self.out.end_ns, end_ns=end,
                    in_window=False,
                )  # fmt: skip
            self.out.end_ns = end
        if present:
            self.out.tables.add("stage", stage=name, start_ns=began, dur_ns=self.out.end_ns - began)


def _check(test: TestCase) -> dict[str, Any]:
    return {
        "test": test.number,
        "iterations": len(test.iterations),
        "mean_ns": test.mean_ns,
        "deviation_ns": test.deviation_ns,
        "printed_mean_ns": None if test.printed is None else test.printed.mean_ns,
        "printed_deviation_ns": None if test.printed is None else test.printed.deviation_ns,
    }


def _differs(check: dict[str, Any]) -> bool:
    pairs = [(check[name], check[f"printed_{name}"]) for name in ("mean_ns", "deviation_ns")]
    return any(None not in pair and abs(pair[0] - pair[1]) > PRINTED_US * 1000 for pair in pairs)
