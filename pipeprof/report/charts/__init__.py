"""The charts of a run's page: facts in, Vega-Lite out. Made with Altair, which the extra `charts` installs."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeprof.query.engine import Engine
    from pipeprof.record.run import Run
    from pipeprof.report.charts.chart import Chart

    Rows = list[dict[str, Any]]

INSTALL = "pip install 'pipeprof[charts]'"
MISSING = f"The charts are left out: install them with <code>{INSTALL}</code>."  # as HTML
_GRAMMAR = "rfc3987_syntax"
_NEEDED = ("altair", "vl_convert")
_CLOCK = 86_400_000_000_000  # ns: who begins later counts from when its machine started, not from a launch
_TIMES = ("t_ns", "start_ns", "end_ns", "max_start_ns", "high_ns", "produced_ns", "released_ns")
_ORIGINS = ("the launch", "the first step")
_PANELS = {  # what is said where a panel is left out, and what the record calls it
    "Waits for a batch": ("No wait for a batch was recorded.", "fetch"),
    "Queues": ("No depth of a queue was recorded.", "queue"),
    "CPU": ("What the CPU time was used for was not recorded.", "cpu"),
    "Memory": ("No memory was recorded.", "memory"),
}


def is_installed() -> bool:
    """Whether what the extra `charts` installs is here."""
    return all(find_spec(name) for name in _NEEDED)


def can_draw() -> bool:
    """The same; if so, it is imported."""
    if not is_installed():
        return False
    altair()
    return True


def altair() -> Any:
    """Altair, imported; its check of specifications loads a grammar of addresses for seconds where there is one."""
    if "altair" in sys.modules or _GRAMMAR in sys.modules:
        return import_module("altair")
    sys.modules[_GRAMMAR] = None  # type: ignore[assignment] # as if it were not installed, which it need not be
    try:
        return import_module("altair")
    finally:
        del sys.modules[_GRAMMAR]


def charts_of(run: Run, content: dict[str, Any]) -> list[Chart]:
    """The charts of a run, in the order of its page. `content` is its report."""
    from pipeprof.query.engine import Engine
    from pipeprof.report.charts import flame, op_table, operators, pipeline, steps, whole_run
    from pipeprof.report.sections.block import focus_of

    rep, rank = focus_of(content)
    with Engine.open(run) as engine:
        trace = engine.rows("step/trace_curve", points=steps.POINTS, rep=rep, rank=rank)
        begin = min((row["start_ns"] for row in trace), default=0)
        origin = begin if begin > _CLOCK else 0
        over_time = _over_time(engine, content, _since(origin, trace), origin)
        memory = _memory(engine, rep, rank, origin)
        ranks = _ranks(engine, content, rep)
        queues = engine.rows("queue/curve", points=pipeline.POINTS, rep=rep, rank=rank)
        histogram = engine.rows("queue/histogram", bins=pipeline.BINS, rep=rep, rank=rank)
        places = engine.rows("queue/place", rep=rep, rank=rank)
        instances = engine.rows("op/by_instance", top=op_table.MOST)
    account = (content.get("run_account") or {}).get("parts", [])
    of_rank = _of(content["pipeline"]["pipelines"], rep, rank)
    return [
        over_time,
        pipeline.chart(of_rank, _since(origin, queues), histogram, places),
        whole_run.chart(_of(account, rep, rank)),
        operators.chart(_of(content["ops"], rep, rank), _of(instances, rep, rank)),
        flame.chart(run, rep, rank),
        memory,
        ranks,
    ]


def _over_time(engine: Engine, content: dict[str, Any], trace: Rows, origin: int) -> Chart:
    from pipeprof.report.charts import overtime, samples, steps
    from pipeprof.report.sections.block import focus_of

    rep, rank = focus_of(content)
    at = {"rep": rep, "rank": rank}
    queues = engine.rows("queue/curve", points=samples.POINTS, **at)
    cpu = engine.rows("host/cpu_curve", points=samples.POINTS, **at)
    memory = _of(engine.rows("memory/curve", points=samples.POINTS), rep, rank)
    sink = _of(engine.rows("queue/sink_curve", points=samples.POINTS), rep, rank)
    tables = content["run"]["tables"]
    communicates = any(tables.get(name) for name in ("collective", "step_split"))
    points = engine.rows("step/communication_curve", points=steps.POINTS, **at) if communicates else []
    panels = {
        "Steps": steps.panel(trace, points),
        "Waits for a batch": samples.waits(trace),
        "Queues": samples.queues(_since(origin, queues)),
        "Queues to the device": samples.sink(_since(origin, sink)),
        "CPU": samples.cpu(_since(origin, cpu)),
        "Memory": samples.memory(_since(origin, memory)),
    }
    why = {item["what"]: item["why"] for item in content["not_measured"]}
    absent = []
    for name, (said, what) in _PANELS.items():
        if panels[name] is None:
            absent.append(f"{said[:-1]}: {why[what]}." if what in why else said)
    return overtime.chart(panels, trace, absent, _ORIGINS[bool(origin)])


def _memory(engine: Engine, rep: int, rank: int, origin: int) -> Chart:
    from pipeprof.report.charts import memory
    from pipeprof.report.words.memory import reconstructed

    curve = _of(engine.rows("memory/live_curve", points=memory.POINTS), rep, rank)
    if not curve:
        return memory.chart([], [], [], [])
    peaks = _of(engine.rows("memory/peak"), rep, rank)
    alive = _of(engine.rows("memory/alive_at_peak", top=memory.OPERATORS), rep, rank)
    blocks = _of(engine.rows("memory/lifetime", top=memory.BLOCKS), rep, rank)
    note = reconstructed(_of(engine.rows("memory/evidence"), rep, rank))
    curve, peaks, alive, blocks = (_since(origin, rows) for rows in (curve, peaks, alive, blocks))
    return memory.chart(curve, peaks, alive, blocks, _ORIGINS[bool(origin)], note)


def _since(origin: int, rows: Rows) -> Rows:
    """Rows whose times count from there."""
    if not origin:
        return rows
    return [row | {name: row[name] - origin for name in _TIMES if row.get(name) is not None} for row in rows]


def _ranks(engine: Engine, content: dict[str, Any], rep: int) -> Chart:
    from pipeprof.report.charts import ranks

    several = len({row["rank"] for row in content["steps"]["summary"] if row["rep"] == rep})
    points = ranks.points_for(several)
    return ranks.chart(engine.rows("step/curve", points=points, rep=rep, rank=-1) if several > 1 else [])


def _of(rows: Rows, rep: int, rank: int) -> Rows:
    return [row for row in rows if (row["rep"], row["rank"]) == (rep, rank)]
