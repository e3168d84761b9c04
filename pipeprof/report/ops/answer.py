"""Which table a question is answered with, and the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeprof.query.engine import Engine
from pipeprof.report.one_step import take_operators
from pipeprof.report.ops import groups, python_functions, single
from pipeprof.report.ops.totals import has_totals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeprof.record.run import Run
    from pipeprof.report.ops.content import Content
    from pipeprof.report.ops.question import Question

TORCH = "import:kineto"
TRACES = (TORCH, "import:megengine")


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
        counted = replace(question, python_functions=python_functions.are_counted(run, question))
        content = groups.build(
            engine, counted, training=not run.manifest.source.startswith(TRACES), elsewhere=elsewhere
        )
        content.notes += python_functions.notes(run, question)
        if run.manifest.source.startswith(TORCH):
            content.footer = torch_footer(content.total)
        return content


def torch_footer(total: Mapping[str, float | None]) -> dict[str, float | None]:
    """The lines below the table of torch's `key_averages()`, in ns: the device's where anything ran on one."""
    lines = {"Self CPU time total": total["self_ns"]}
    if total.get("device_self_ns"):
        lines["Self device time total"] = total["device_self_ns"]
    return lines
