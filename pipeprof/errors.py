"""The one error root. Raised anywhere, caught once, in `cli/__init__.py`. And what a misspelt name gets as its hint."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

MOST_NAMES = 12  # of what there is, in a hint
BAD_PATTERN = (re.error, OverflowError, RecursionError)  # what `re.compile` raises for a text that is none
_NEAR = 0.6  # share of letters that two names have in common: one or two slips of the finger


def near_names(wrong: str, choices: Iterable[str]) -> list[str]:
    """Up to three of the names that `wrong` may stand for, the nearest first; upper and lower case are the same."""
    names = {name.lower(): name for name in choices}
    return [names[name] for name in difflib.get_close_matches(wrong.lower(), names, n=3, cutoff=_NEAR)]


def did_you_mean(wrong: str, choices: Iterable[str], otherwise: str = "") -> str:
    """The hint for an unknown name: `did you mean ...?`; without a near name, all there are.

    `otherwise` is the hint instead of more than MOST_NAMES names.
    """
    names = list(choices)
    near = near_names(wrong, names)
    if near:
        return f"did you mean {_either([f'`{name}`' for name in near])}?"
    if not names or (otherwise and len(names) > MOST_NAMES):
        return otherwise
    return f"choose from {', '.join(f'`{name}`' for name in names)}"


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


class PipeprofError(Exception):
    """An error for the user: one line that says what, where, found and expected, and a hint that can be done.

    `exit_code` is the process's: 2 for usage and configuration, 3 for data that cannot be judged.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint and hasattr(self, "add_note"):  # what a traceback of the user's program shows, from Python 3.11 on
            self.add_note(f"hint: {hint}")


class UsageError(PipeprofError):
    """The command line or the configuration asks for something that cannot be."""


class RunError(PipeprofError):
    """A run folder is missing, damaged, or of a version this pipeprof cannot read."""

    exit_code = 3


class SourceError(PipeprofError):
    """A profile file cannot be read: names the file, what was found and what was expected."""

    exit_code = 3


class QueryError(PipeprofError):
    """A SQL text is refused or fails."""


class WorkloadError(PipeprofError):
    """The user's command failed while it was being measured."""

    exit_code = 5


class MeasureError(PipeprofError):
    """The command ran, but what was asked for could not be measured."""

    exit_code = 3


def is_interruption(error: BaseException) -> bool:
    """Whether Ctrl-C is what ended it: a query of DuckDB that it ends raises a RuntimeError in its place."""
    return isinstance(error, KeyboardInterrupt) or (type(error) is RuntimeError and str(error) == "Query interrupted")
