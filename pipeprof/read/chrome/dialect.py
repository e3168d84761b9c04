"""What differs between the programs that write Chrome traces: which events are calls, and which mark a step."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeprof.errors import BAD_PATTERN, UsageError
from pipeprof.read.chrome.kinds import API, CALLS, STEP, STEPS

LINES, RECORDS, PLANES = "lines", "records", "planes"
_LONGEST = 18  # digits of a step's number


@dataclass(frozen=True)
class Dialect:
    """`calls`: the categories of what is called and calls; None: all that are not certainly others.

    `step`: what a step is named, if the user has said so. `form`: events | lines (each is an event, as DFTracer
    writes them) | records (of rocprofv3) | planes (of XLA's profiler).
    """

    calls: frozenset[str] | None
    step: re.Pattern[str] | None = None
    form: str = "events"

    @property
    def lines(self) -> bool:
        """Whether it is DFTracer's, whose steps are found by what computes."""
        return self.form == LINES

    def step_of(self, name: str) -> tuple[int | None, str] | None:
        """The number of the step that an event of this name is, and the name that all steps share; None for no step."""
        if self.step is None:
            return (_number(name[len(STEP) :]), STEPS) if name.startswith(STEP) else None
        match = self.step.fullmatch(name)
        if match is None:
            return None
        if not self.step.groups or match[1] is None:
            return None, name
        begin, end = match.span(1)
        return _number(match[1]), f"{name[:begin]}*{name[end:]}"


def torch(step: str | None = None) -> Dialect:
    """Traces of torch.profiler and its relatives."""
    return Dialect(CALLS, pattern(step))


def generic(step: str | None = None) -> Dialect:
    """Any other trace: every interval of a thread is a call, whatever its category."""
    return Dialect(None, pattern(step))


def dftracer(step: str | None = None) -> Dialect:
    """Traces of DFTracer: as of any other program, an event a line."""
    return Dialect(None, pattern(step), LINES)


def rocprof(step: str | None = None) -> Dialect:
    """Traces of rocprofv3: calls of HIP and RCCL are operators of the host, and ranges of roctx their callers."""
    return Dialect(API | {"user_annotation"}, pattern(step), RECORDS)


def xplane(step: str | None = None) -> Dialect:
    """Profiles of JAX and TensorFlow: as of any other program."""
    return Dialect(None, pattern(step), PLANES)


def pattern(text: str | None) -> re.Pattern[str] | None:
    """What `--step` means. Raises UsageError for what is no regular expression."""
    if text is None:
        return None
    try:
        return re.compile(text)
    except BAD_PATTERN as error:
        raise UsageError(
            f"`{text}` is not a regular expression: {error}", "such as --step 'train_step ([0-9]+)'"
        ) from error


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < _LONGEST else None
