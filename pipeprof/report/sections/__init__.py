"""A report's content as titled sections of text tables: what all formats but JSON have in common."""

from __future__ import annotations

from typing import Any

from pipeprof.report.sections.across import across_section
from pipeprof.report.sections.block import Block, Section, focus_of
from pipeprof.report.sections.communication import communication_section
from pipeprof.report.sections.diagnosis import diagnosis_section
from pipeprof.report.sections.operators import operators_section
from pipeprof.report.sections.pipeline import pipeline_section
from pipeprof.report.sections.queues import queues_section
from pipeprof.report.sections.ranks import ranks_section
from pipeprof.report.sections.resources import resources_section
from pipeprof.report.sections.run import run_section
from pipeprof.report.sections.split import split_section
from pipeprof.report.sections.steps import steps_section

__all__ = ["Block", "Section", "sections"]


def sections(content: dict[str, Any]) -> list[Section]:
    """All sections that have something to say, the answer first."""
    focus = focus_of(content)
    found = [
        run_section(content, focus),
        diagnosis_section(content),
        steps_section(content, focus),
        split_section(content),
        ranks_section(content),
        across_section(content),
        pipeline_section(content, focus),
        queues_section(content, focus),
        operators_section(content, focus),
        communication_section(content, focus),
        resources_section(content, focus),
        _missing(content),
    ]
    return [section for section in found if section.strong or section.notes or section.blocks]


def _missing(content: dict[str, Any]) -> Section:
    section = Section("Not measured")
    section.notes += [f"{item['what']}: {item['why']}" for item in content["not_measured"]]
    return section
