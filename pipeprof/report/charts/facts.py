"""What the charts of a run's page are drawn from: rows of queries, of a number that a run's length does not change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.query.engine import Engine
from pipeprof.query.part import Part
from pipeprof.report.charts import lanes, memory, operators, ranks, samples, steps
from pipeprof.report.pictures.panels import BINS
from pipeprof.report.sections.block import focus_of
from pipeprof.report.words.training import FROM_BOOT_NS

if TYPE_CHECKING:
    from pipeprof.query.answers import Answers
    from pipeprof.record.run import Run

Rows = list[dict[str, Any]]

_TIMES = ("t_ns", "start_ns", "end_ns", "max_start_ns", "high_ns", "last_ns", "produced_ns", "released_ns")


class Facts(NamedTuple):
    """Rows by what they are drawn as, of the one rank that is shown in detail; `cells` are of all ranks."""

    origin_ns: int  # that the times count from; 0 is what the recording counts from, else it is the first step
    steps: Rows
    communication: Rows
    fills: Rows
    sink: Rows
    cpu: Rows
    memory: Rows
    histogram: Rows
    operators: Rows
    live: Rows
    peaks: Rows
    alive: Rows
    blocks: Rows
    evidence: Rows
    cells: Rows
    shown: list[lanes.Shown]  # their times are the recording's own


def facts_of(run: Run, content: dict[str, Any], answers: Answers | None = None) -> Facts:
    """What a run's charts show. `content` is its report; tables are asked for what the answers do not say."""
    rep, rank = focus_of(content)
    with Engine.open(run, lazily=True, part=Part.of_rank(rep, rank)) as engine:
        engine.answers = answers
        rows = _of_rank(engine, content["run"]["tables"], {"rep": rep, "rank": rank})
        shown = lanes.shown_steps(engine, rep, rank)
    begin = min((row["start_ns"] for row in rows["steps"]), default=0)
    origin = begin if begin > FROM_BOOT_NS else 0
    if origin:
        rows = {name: [_since(origin, row) for row in table] for name, table in rows.items()}
    return Facts(origin, **rows, cells=_cells(run, content, rep, answers), shown=shown)


def _of_rank(engine: Engine, tables: dict[str, int], at: dict[str, int]) -> dict[str, Rows]:
    communicates = any(tables.get(name) for name in ("collective", "step_split"))
    live = engine.rows("memory/live_curve", points=memory.POINTS)
    return {
        "steps": engine.rows("step/trace_curve", points=steps.POINTS, **at),
        "communication": engine.rows("step/communication_curve", points=steps.POINTS, **at) if communicates else [],
        "fills": engine.rows("queue/curve", points=samples.POINTS, **at),
        "sink": engine.rows("queue/sink_curve", points=samples.POINTS),
        "cpu": engine.rows("host/cpu_curve", points=samples.POINTS, **at),
        "memory": engine.rows("memory/curve", points=samples.POINTS),
        "histogram": engine.rows("queue/histogram", bins=BINS, **at),
        "operators": engine.rows("op/by_instance", top=operators.INSTANCES),
        "live": live,
        "peaks": engine.rows("memory/peak") if live else [],
        "alive": engine.rows("memory/alive_at_peak", top=memory.OPERATORS) if live else [],
        "blocks": engine.rows("memory/lifetime", top=memory.BLOCKS) if live else [],
        "evidence": engine.rows("memory/evidence") if live else [],
    }


def _cells(run: Run, content: dict[str, Any], rep: int, answers: Answers | None) -> Rows:
    several = len({row["rank"] for row in content["steps"]["summary"] if row["rep"] == rep})
    if several < 2:
        return []
    with Engine.open(run, lazily=True) as engine:
        engine.answers = answers
        return engine.rows("step/curve", points=ranks.points_for(several), rep=rep, rank=-1)


def _since(origin: int, row: dict[str, Any]) -> dict[str, Any]:
    """A row whose times count from there."""
    return row | {name: row[name] - origin for name in _TIMES if row.get(name) is not None}
