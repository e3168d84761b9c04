"""Logs of MegEngine's benchmark program load_and_run, three generations.

Stages: load the model, configure ("prepare"), warm up, timed iterations of each test case. All times are ms in the log
and integer ns here. A log may end anywhere: what is there is kept, and `complete` says whether the end was seen.
Source: the program's `lite/load_and_run` (2022 to 2024) and logs in MegEngine's documentation.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeprof.errors import SourceError
from pipeprof.read.megengine.files import FileRows
from pipeprof.read.source.content import Content
from pipeprof.units import ns_from_text

PRINTED_US = 2  # printed means are rounded to 1 us, and so are the iterations they are of
_LARGEST = 1 << 26  # bytes of a log
_NUMBER = r"(?:-(?=nan))?([0-9]+(?:\.[0-9]+)?|nan)"  # C prints a sign before what 0 / 0 is on x86
_MS = _NUMBER + r" ?ms"
_PREFIX = re.compile(r"\[\d\d \d\d:\d\d:\d\d [^\]]*\]\[[A-Za-z]+\] ?")
_LOAD = re.compile(rf"load model: {_MS}")
_PREPARE = re.compile(rf"=== prepare: {_MS}; going to warmup")
_WARMUP = re.compile(rf"warm ?up (\d+):? +{_MS}")
_START = re.compile(r"(?:=== going to run (?:input|test #(\d+)) for \d+ times|run testcase: (\d+) *)")
_ITERATION = re.compile(
    rf"iter \d+/\d+: (?:e2e=)?{_MS} \((?:exec|host)={_NUMBER}(?: ?ms)?(?:,device={_NUMBER}(?: ?ms)?)?\)"
)
_END = re.compile(rf"=== finished test #(\d+): time={_MS} avg_time={_MS} (?:sd|sexec|standard_deviation)={_MS} .*")
_IGNORED = re.compile(
    r"|=== (?:total time: |going to run \d+ testcases; ).*|mgb load-and-run: .*|\./load_and_run .*|assertequal: err=.*",
    re.IGNORECASE,
)


@dataclass
class Printed:
    """What the program says at the end of a test case; None for nan, which it prints for a single iteration."""

    mean_ns: int | None
    deviation_ns: int | None


@dataclass
class TestCase:
    """One test case; of an iteration the time until it was waited for."""

    __test__ = False  # for pytest: this is no test

    number: int = 0
    configure_ns: int | None = None
    warmup_ns: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    printed: Printed | None = None

    @property
    def mean_ns(self) -> float | None:
        """Mean of the iterations; None without one."""
        return statistics.fmean(self.iterations) if self.iterations else None

    @property
    def deviation_ns(self) -> float | None:
        """Sample deviation (n - 1) of the iterations; None for fewer than two."""
        return statistics.stdev(self.iterations) if len(self.iterations) > 1 else None


@dataclass
class Log:
    """A log: `unknown_lines` were not understood."""

    load_ns: int | None = None
    tests: list[TestCase] = field(default_factory=list)
    unknown_lines: int = 0

    @property
    def complete(self) -> bool:
        """Whether every test case came to its end, and there is one."""
        return bool(self.tests) and all(test.printed is not None for test in self.tests)


def read_log(path: Path) -> Log:
    """Read a log file. Raises SourceError when it cannot be read, or nothing in it is of load_and_run."""
    with Content(path) as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise SourceError(f"`{path}` is larger than {_LARGEST >> 20} MiB", "give the log of one run")
    log = parse_log(text.decode("utf-8", "replace").splitlines())
    if log.load_ns is None and not log.tests:
        raise SourceError(f"no line of load_and_run in `{path}`", "give what load_and_run printed")
    return log


def parse_log(lines: Iterable[str]) -> Log:
    """A log from its lines."""
    reading = _Reading()
    for line in lines:
        reading.take(line.strip())
    reading.finish()
    return reading.log


class _Reading:
    """The state while lines go by: what was printed before a test case belongs to it."""

    def __init__(self) -> None:
        self.log = Log()
        self._test = TestCase()  # in the log when it is open
        self._is_open = False

    def take(self, line: str) -> None:
        """Use one line."""
        text = _PREFIX.sub("", line, count=1)
        if match := _ITERATION.fullmatch(text):
            self._go_on(len(self.log.tests))
            total = _ns(match[1])
            if total is None or match[2] == "nan":
                self.log.unknown_lines += 1
            else:
                self._test.iterations.append(total)
        elif match := _END.fullmatch(text):
            self._go_on(int(match[1]))
            self._test.printed = Printed(_ns(match[3]), _ns(match[4]))
            self._test, self._is_open = TestCase(), False
        elif match := _WARMUP.fullmatch(text):
            self._test.warmup_ns += [] if match[2] == "nan" else [ns_from_text(match[2], "ms")]
        elif match := _PREPARE.fullmatch(text):  # later ones only tell the time since the line before them
            self._test.configure_ns = _ns(match[1]) if self._test.configure_ns is None else self._test.configure_ns
        elif match := _START.fullmatch(text):
            self._test, self._is_open = TestCase() if self._is_open else self._test, False
            self._go_on(int(match[1] or match[2] or len(self.log.tests)))
        elif match := _LOAD.fullmatch(text):
            self.log.load_ns = _ns(match[1])
        elif text == line and not _IGNORED.fullmatch(line):  # else it is a warning of the program, or says nothing
            self.log.unknown_lines += 1

    def finish(self) -> None:
        """A log that ended before its first iteration has what came before it as a test case."""
        if self._test.configure_ns is not None or self._test.warmup_ns:
            self._go_on(len(self.log.tests))

    def _go_on(self, number: int) -> None:
        """Open the test case, with this number, if it is not."""
        if not self._is_open:
            self._test.number, self._is_open = number, True
            self.log.tests.append(self._test)


def _ns(ms: str) -> int | None:
    return None if ms == "nan" else ns_from_text(ms, "ms")


def read_log_steps(path: Path) -> tuple[FileRows, list[dict[str, Any]]]:
    """Rows of `step` and `stage`, and per test case what was computed beside what the program printed.

    Lines that are not understood are counted as problems. A log that ends before its last line has its damage. Raises
    SourceError when it cannot be read, or nothing in it is of load_and_run.
    """
    log = read_log(path)
    out = _rows(log)
    if log.unknown_lines:
        out.problems["line that is not of load_and_run"] = log.unknown_lines
    if not log.complete:
        out.damage = SourceError(f"the log `{path}` ends before its test case does")
    checks = [_check(test) for test in log.tests]
    pairs = [(check[name], check[f"printed_{name}"]) for check in checks for name in ("mean_ns", "deviation_ns")]
    if any(None not in pair and abs(pair[0] - pair[1]) > PRINTED_US * 1000 for pair in pairs):
        out.problems["mean or deviation that is printed is not that of the iterations"] += 1
    return out, checks


def _rows(log: Log) -> FileRows:
    """A log, which has lengths and no times of day, laid out one behind the other from 0 on."""
    out = FileRows()
    _add_stage(out, "build", [log.load_ns])
    for test in log.tests:
        _add_stage(out, "compile", [test.configure_ns])
        _add_stage(out, "warmup", test.warmup_ns, "warmup")
        _add_stage(out, "steady", test.iterations, "train")
    return out


def _add_stage(out: FileRows, name: str, lengths: Sequence[int | None], kind: str = "") -> None:
    began = out.end_ns
    present = [length for length in lengths if length is not None]
    for length in present:
        end = out.end_ns + length
        if kind:
            number = len(out.tables.rows["step"])
            out.tables.add(
                "step", step=number, kind_step=number, kind=kind, start_ns=out.end_ns, end_ns=end, in_window=False
            )
        out.end_ns = end
    if present:
        out.tables.add("stage", stage=name, start_ns=began, dur_ns=out.end_ns - began)


def _check(test: TestCase) -> dict[str, Any]:
    return {
        "test": test.number,
        "iterations": len(test.iterations),
        "mean_ns": test.mean_ns,
        "deviation_ns": test.deviation_ns,
        "printed_mean_ns": None if test.printed is None else test.printed.mean_ns,
        "printed_deviation_ns": None if test.printed is None else test.printed.deviation_ns,
    }
