"""The charts of a run one by one, as Altair objects, for notebooks: `run.plot`."""

from __future__ import annotations

import sys
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from pipeprof.errors import MeasureError, UsageError
from pipeprof.report.charts import INSTALL, can_draw, charts_of

if TYPE_CHECKING:
    import altair as alt

    from pipeprof.record.run import Run
    from pipeprof.report.charts.chart import Chart


_GRAMMAR = "rfc3987_syntax"
_KINDS = {"layer": "LayerChart", "vconcat": "VConcatChart"}  # of Altair, by what they hold


class Plots:
    """The charts of the page of a run, each as an Altair chart, which a notebook shows and which can be changed.

    Each raises MeasureError where the run has nothing to draw, UsageError without the extra `charts`.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._charts: dict[str, Chart] = {}

    def steps(self) -> alt.TopLevelMixin:
        """Every step as a stack of its phases; below it waits, queues, CPU and memory, on one axis of time."""
        return self._drawn("chart-time")

    def step(self) -> alt.TopLevelMixin:
        """A usual step as a timeline: its parts, batches, queues, operators and communication."""
        return self._drawn("chart-step")

    def slowest_step(self) -> alt.TopLevelMixin:
        """The slowest step as a timeline, where it took much longer than a usual one."""
        return self._drawn("chart-slowest")

    def whole_run(self) -> alt.TopLevelMixin:
        """What the time from the launch to the end was spent on."""
        return self._drawn("chart-run")

    def operators(self) -> alt.TopLevelMixin:
        """Operators by type, most own time first, and the share of each type as a ring."""
        return self._drawn("chart-operators")

    def flame(self) -> alt.TopLevelMixin:
        """What called the operators, as a flame graph."""
        return self._drawn("chart-flame")

    def memory(self) -> alt.TopLevelMixin:
        """Memory of tensors and blocks: how much was alive, what held it at the peak, and the life of each block."""
        return self._drawn("chart-memory")

    def ranks(self) -> alt.TopLevelMixin:
        """The steps of every rank, a row for each."""
        return self._drawn("chart-ranks")

    def _drawn(self, name: str) -> alt.TopLevelMixin:
        if not (can_draw() and find_spec("altair")):
            raise UsageError("charts need the libraries of the extra `charts`", INSTALL)
        if not self._charts:
            from pipeprof.report.build import build

            self._charts = {chart.name: chart for chart in charts_of(self._run, build(self._run))}
        chart = self._charts.get(name)
        if chart is None or chart.drawn is None:
            why = "no step took much longer than a usual one" if chart is None else chart.caption
            raise MeasureError(f"`{self._run.path}` has nothing for this chart: {why}")
        kind = getattr(_altair(), next((kind for name, kind in _KINDS.items() if name in chart.drawn), "Chart"))
        return cast("alt.TopLevelMixin", kind.from_dict(deepcopy(chart.drawn), validate=False))


def _altair() -> Any:
    """Altair, imported; its check of specifications loads a grammar of addresses for seconds where there is one."""
    if "altair" in sys.modules or _GRAMMAR in sys.modules:
        return import_module("altair")
    sys.modules[_GRAMMAR] = None  # type: ignore[assignment] # as if it were not installed, which it need not be
    try:
        return import_module("altair")
    finally:
        del sys.modules[_GRAMMAR]
