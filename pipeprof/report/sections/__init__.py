"""Titled sections of text tables, common to all formats but JSON. Those of the report of a run are in `of_run`."""

from __future__ import annotations

from pipeprof.report.sections.block import Block, Section

__all__ = ["Block", "Section"]
