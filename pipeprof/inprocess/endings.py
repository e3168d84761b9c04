"""How blocks end, and what is said when recording goes wrong: the program always goes on."""

from __future__ import annotations

import sys

from pipeprof import escape
from pipeprof.collect.probe.redact import redacted
from pipeprof.errors import PipeprofError, is_interruption


def ends_well(error: BaseException | None) -> bool:
    """Whether a block that this ended is over as it should be: a generator was closed, a program exits with 0."""
    return error is None or isinstance(error, GeneratorExit) or (isinstance(error, SystemExit) and not error.code)


def reason(error: BaseException) -> str:
    """What ended a block, for the run."""
    what = f"{type(error).__name__} in the profiled block"
    return redacted(f"{what}: {error}") if str(error) else what


def message_of(error: Exception) -> str:
    """What went wrong, in one line. Raises KeyboardInterrupt where that is behind it."""
    if is_interruption(error):
        raise KeyboardInterrupt from error
    return error.message if isinstance(error, PipeprofError) else str(error) or type(error).__name__


def say(text: str) -> None:
    """A line on stderr."""
    sys.stderr.write(escape.line(f"pipeprof: {text}") + "\n")
