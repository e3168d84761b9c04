"""The charts of a run's page: facts in, Vega-Lite out. Made with Altair, which the extra `charts` installs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeprof.record.run import Run
    from pipeprof.report.charts.chart import Chart

INSTALL = "pip install 'pipeprof[charts]'"
_NEEDED = ("altair", "vl_convert")


def can_draw() -> bool:
    """Whether what the extra `charts` installs is here; nothing is imported."""
    return all(find_spec(name) for name in _NEEDED)


def charts_of(run: Run, content: dict[str, Any]) -> list[Chart]:
    """The charts that a run has data for, in the order of the page. `content` is its report."""
    from pipeprof.query.engine import Engine
    from pipeprof.report.charts import memory, operators, ranks, steps
    from pipeprof.report.sections.block import focus_of

    rep, rank = focus_of(content)
    with Engine.open(run) as engine:
        levels = engine.rows("memory/curve", points=memory.POINTS)
        several = len({row["rank"] for row in content["steps"]["summary"]}) > 1
        rows = engine.rows("step/curve", points=ranks.POINTS, rep=rep, rank=-1) if several else []
    drawn = (
        steps.chart(_of(content["steps"]["curve"], rep, rank)),
        ranks.chart(rows),
        operators.chart(_of(content["ops"], rep, rank)),
        memory.chart(_of(levels, rep, rank)),
    )
    return [chart for chart in drawn if chart is not None]


def _of(rows: list[dict[str, Any]], rep: int, rank: int) -> list[dict[str, Any]]:
    return [row for row in rows if (row["rep"], row["rank"]) == (rep, rank)]
