"""Which table a question is answered with, and the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeprof.errors import UsageError
from pipeprof.query.engine import Engine
from pipeprof.report.answer.step import take_operators
from pipeprof.report.ops import groups, single
from pipeprof.report.ops.content import has_totals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeprof.record.run import Run
    from pipeprof.report.ops.content import Content
    from pipeprof.report.ops.question import Question

TORCH = "import:kineto"
TRACES = (TORCH, "import:megengine")
WRITER = "torch"  # option of the manifest of an imported trace that has Python functions: who wrote it
_COUNTS_THEM = "2.12 or 2.13"
_CURE = "--python-functions shows them"


def answer(run: Run, question: Question) -> Content:
    """The operator table of a run. Raises UsageError for a question that cannot be answered."""
    question.check()
    if question.top is None:
        question = replace(question, top=groups.usual_top(run, question))
    with Engine.open(run, lazily=True) as engine:
        if question.step is not None:
            take_operators(engine, question.step)
        if groups.is_single(run, question):
            if question.one_by_one or question.aggregate or question.step is not None or not has_totals(engine):
                return single.build(engine, question, either_side=groups.PROFILE not in run.manifest.options)
            question = replace(question, group_by="type" if question.by_type and not question.by_name else "name")
        elsewhere = groups.of_single(run, question)
        counted = replace(question, python_functions=_counts_python_functions(run, question))
        content = groups.build(
            engine, counted, training=not run.manifest.source.startswith(TRACES), elsewhere=elsewhere
        )
        content.notes += _notes(run, question)
        if run.manifest.source.startswith(TORCH):
            content.footer = torch_footer(content.total)
        return content


def torch_footer(total: Mapping[str, float | None]) -> dict[str, float | None]:
    """The lines below the table of torch's `key_averages()`, in ns: the device's where anything ran on one."""
    lines = {"Self CPU time total": total["self_ns"]}
    if total.get("device_self_ns"):
        lines["Self device time total"] = total["device_self_ns"]
    return lines


def _counts_python_functions(run: Run, question: Question) -> bool:
    """What was asked; else what the torch that wrote the trace does, or most versions where this is not known.

    Raises UsageError when it was asked of a run that can have none.
    """
    if question.python_functions is None:
        return bool(run.manifest.options.get(WRITER) == _COUNTS_THEM)
    if not run.manifest.source.startswith(TORCH):
        raise UsageError(
            "only traces of torch.profiler have Python functions",
            "leave out --python-functions and --no-python-functions",
        )
    return question.python_functions


def _notes(run: Run, question: Question) -> list[str]:
    """What to say of Python functions that are left out without having been asked for."""
    written = question.python_functions is None and WRITER in run.manifest.options
    if not written or _counts_python_functions(run, question):
        return []
    return ["Python functions are left out, as in key_averages() of all torch versions but 2.12 and 2.13: " + _CURE]
