"""What two sides must be before they are compared: numbers, and not the same measurement twice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pipeprof.errors import RunError, UsageError

if TYPE_CHECKING:
    from pipeprof.record.measures import Measures

_HINT = "compare with a run that was measured on its own"


def check_sides(base: Measures, new: Measures) -> None:
    """Raises UsageError when a repetition is on both sides, RunError for a value that is no finite number.

    A run compared with itself, or with a copy, is unchanged whatever the code does.
    """
    runs = set(base.run_ids) & set(new.run_ids)
    if runs:
        raise UsageError(f"both sides hold the run {min(runs)}: `{base.label}` and `{new.label}`", _HINT)
    if set(base.digests) & set(new.digests):
        raise UsageError(f"a repetition of `{new.label}` is a copy of one of `{base.label}`", _HINT)
    for side in (base, new):
        _check_numbers(side)


def _check_numbers(side: Measures) -> None:
    for metric, values in side.values.items():
        for rep, value in values.items():
            if not math.isfinite(value):
                raise RunError(
                    f"`{side.label}` is damaged: `{metric}` of repetition {rep} is {value}", "measure it again"
                )
