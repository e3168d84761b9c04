"""Floor 3: rules over rows of numbers. Pure: no files, no clock, no SQL.

The gate's names are here for others: `judge`, `judge_looks`, `Policy`, `Samples`, `Verdict`. They are loaded when first
asked for, because SciPy takes longer to import than most commands need.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeprof.verdict.gate.judge import judge
    from pipeprof.verdict.gate.policy import Policy
    from pipeprof.verdict.gate.result import Verdict
    from pipeprof.verdict.gate.samples import Samples
    from pipeprof.verdict.gate.sequential_test import judge_looks

__all__ = ["Policy", "Samples", "Verdict", "judge", "judge_looks"]

_ROOMS = {
    "judge": "judge",
    "judge_looks": "sequential_test",
    "Policy": "policy",
    "Samples": "samples",
    "Verdict": "result",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return getattr(importlib.import_module(f"pipeprof.verdict.gate.{_ROOMS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
