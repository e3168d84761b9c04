"""Whether groups count calls of Python functions, as torch's `key_averages(include_python_functions=)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from pipeprof.record.run import Run
    from pipeprof.report.ops.question import Question

TORCH = "torch"  # option of the manifest of an imported trace that has Python functions: who wrote it
_COUNTS_THEM = "2.12 or 2.13"
_CURE = "--python-functions shows them"


def are_counted(run: Run, question: Question) -> bool:
    """What was asked; else what the torch that wrote the trace does, or most versions where this is not known.

    Raises UsageError when it was asked of a run that can have none.
    """
    if question.python_functions is None:
        return bool(run.manifest.options.get(TORCH) == _COUNTS_THEM)
    if not run.manifest.source.startswith("import:kineto"):
        raise UsageError(
            "only traces of torch.profiler have Python functions",
            "leave out --python-functions and --no-python-functions",
        )
    return question.python_functions


def notes(run: Run, question: Question) -> list[str]:
    """What to say of Python functions that are left out without having been asked for."""
    if question.python_functions is not None or TORCH not in run.manifest.options or are_counted(run, question):
        return []
    return ["Python functions are left out, as in key_averages() of all torch versions but 2.12 and 2.13: " + _CURE]
