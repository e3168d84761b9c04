"""The report of a run as titled sections, in their order: what all formats but JSON have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from pipeprof.report.answer import Answer, answer_of, verdict_in
from pipeprof.report.answer.screen import lines
from pipeprof.report.answer.shape import measured
from pipeprof.report.sections.block import Section, focus_of
from pipeprof.report.sections.communication import communication_section
from pipeprof.report.sections.cpu import cpu_section, resources_section
from pipeprof.report.sections.diagnosis import diagnosis_section
from pipeprof.report.sections.operators import operators_section
from pipeprof.report.sections.pipeline import pipeline_section, queues_section
from pipeprof.report.sections.ranks import causes_section, ranks_section
from pipeprof.report.sections.run import run_section, whole_run_section
from pipeprof.report.sections.steps import split_section, steps_section
from pipeprof.report.sections.storage import storage_section
from pipeprof.report.sections.stragglers import stragglers_section
from pipeprof.report.words import training
from pipeprof.units import format_count
from pipeprof.verdict.ranking import FAILED


def _not_measured(content: dict[str, Any], _focus: tuple[int, int]) -> Section:
    section = Section("Not measured")
    section.notes += [f"{item['what']}: {item['why']}" for item in content["not_measured"]]
    return section


_SECTIONS: dict[str, Callable[[dict[str, Any], tuple[int, int]], Section]] = {
    "run": run_section,
    "diagnosis": lambda content, _: diagnosis_section(content),
    "whole-run": whole_run_section,
    "steps": steps_section,
    "profiler-steps": lambda content, _: split_section(content),
    "causes": lambda content, _: causes_section(content),
    "ranks": lambda content, _: ranks_section(content),
    "stragglers": lambda content, _: stragglers_section(content),
    "pipeline": pipeline_section,
    "queues": queues_section,
    "storage": storage_section,
    "operators": operators_section,
    "communication": communication_section,
    "cpu": cpu_section,
    "resources": resources_section,
    "not-measured": _not_measured,
}
NAMES = tuple(_SECTIONS)


def sections(content: dict[str, Any]) -> list[Section]:
    """All sections that have something to say, each sentence once."""
    return chosen(content, NAMES)


def chosen(content: dict[str, Any], names: Collection[str]) -> list[Section]:
    """The sections of these names that have something to say, in the report's order."""
    focus = focus_of(content)
    chosen_sections = []
    worded = training.wording(content["run"])
    said: set[str] = set()
    for name in NAMES:
        if name in names:
            section = _SECTIONS[name](content, focus)
            section.name = name
            section.strong = _new(map(worded, section.strong), said)
            section.notes = _new(map(worded, section.notes), said)
            chosen_sections.append(section)
    return [section for section in chosen_sections if section.says_something]


def _new(sentences: Iterable[str], said: set[str]) -> list[str]:
    new = []
    for sentence in sentences:
        if sentence not in said:
            said.add(sentence)
            new.append(sentence)
    return new


def first_lines(content: dict[str, Any], answer: Answer | None = None) -> list[str]:
    """The first screen: at most 20 lines of 80 columns. `answer`, where the caller has it."""
    names = [section.name for section in sections(content)]
    more = f"More: --full shows everything, --section NAME one part: {', '.join(names)}."
    return lines(answer or answer_of(content), _state(content), more)


def _state(content: dict[str, Any]) -> str:
    """What the lines above rest on, and what was out of order."""
    run = content["run"]
    none = "only warm-up steps" if content["steps"]["summary"] else "no timed steps"
    said = f"{run['path']}: {measured(content) or none}"
    if run["state"] != "complete" and verdict_in(content).lead.code != FAILED:
        said += f"; {run['state']}" + (f": {run['reason']}" if run["reason"] else "")
    warnings = len({warning["message"] for warning in run["warnings"]})
    if warnings:
        said += f"; {format_count(warnings, 'warning')} (--section run)"
    return said + "."
