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
    from pipeprof.report.charts import op_table, operators, pipeline, whole_run
    from pipeprof.report.sections.block import focus_of

    rep, rank = focus_of(content)
    with Engine.open(run) as engine:
        over_time = _over_time(engine, content, rep, rank)
        ranks = _ranks(engine, content, rep)
        queues = engine.rows("queue/curve", points=pipeline.POINTS, rep=rep, rank=rank)
        histogram = engine.rows("queue/histogram", bins=pipeline.BINS, rep=rep, rank=rank)
        places = engine.rows("queue/place", rep=rep, rank=rank)
        instances = engine.rows("op/by_instance", top=op_table.MOST)
    account = (content.get("run_account") or {}).get("parts", [])
    return [
        over_time,
        pipeline.chart(_of(content["pipeline"]["pipelines"], rep, rank), queues, histogram, places),
        whole_run.chart(_of(account, rep, rank)),
        operators.chart(_of(content["ops"], rep, rank), _of(instances, rep, rank)),
        ranks,
    ]


def _over_time(engine: Engine, content: dict[str, Any], rep: int, rank: int) -> Chart:
    from pipeprof.report.charts import overtime, samples, steps

    at = {"rep": rep, "rank": rank}
    trace = engine.rows("step/trace_curve", points=steps.POINTS, **at)
    panels = {
        "Steps": steps.panel(trace),
        "Waits for a batch": samples.waits(trace),
        "Queues": samples.queues(engine.rows("queue/curve", points=samples.POINTS, **at)),
        "Queues to the device": samples.sink(_of(engine.rows("queue/sink_curve", points=samples.POINTS), rep, rank)),
        "CPU": samples.cpu(engine.rows("host/cpu_curve", points=samples.POINTS, **at)),
        "Memory": samples.memory(_of(engine.rows("memory/curve", points=samples.POINTS), rep, rank)),
    }
    why = {item["what"]: item["why"] for item in content["not_measured"]}
    absent = []
    for name, (said, what) in _PANELS.items():
        if panels[name] is None:
            absent.append(f"{said[:-1]}: {why[what]}." if what in why else said)
    return overtime.chart(panels, trace, absent)


def _ranks(engine: Engine, content: dict[str, Any], rep: int) -> Chart:
    from pipeprof.report.charts import ranks

    several = len({row["rank"] for row in content["steps"]["summary"] if row["rep"] == rep})
    points = ranks.points_for(several)
    return ranks.chart(engine.rows("step/curve", points=points, rep=rep, rank=-1) if several > 1 else [])


def _of(rows: Rows, rep: int, rank: int) -> Rows:
    return [row for row in rows if (row["rep"], row["rank"]) == (rep, rank)]
