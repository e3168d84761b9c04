"""The charts of a run's page: facts in, Vega-Lite out, by the descriptions in `specs/`, which are filled with rows."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeprof.query.answers import Answers
    from pipeprof.record.run import Run
    from pipeprof.report.charts.chart import Chart
    from pipeprof.report.charts.facts import Facts
    from pipeprof.report.charts.overtime import Panel

    Rows = list[dict[str, Any]]

INSTALL = "pip install 'pipeprof[charts]'"
MISSING = f"The charts are left out: install them with <code>{INSTALL}</code>."  # as HTML
_FIRST_STEP = "the first step"
PANELS = "Each stage, from the source to the training: where it is, what it needs, and the queue behind it."
STEPS = "No step of a training was recorded."
_ELSEWHERE = "`pipeprof timeline` shows it all the same."
_PANELS = {  # what is said where a panel is left out, and what the record calls it
    "Waits for a batch": ("No wait for a batch was recorded.", "fetch"),
    "Queues": ("No depth of a queue was recorded.", "queue"),
    "CPU": ("What the CPU time was used for was not recorded.", "cpu"),
    "Memory": ("No memory was recorded.", "memory"),
}


def can_draw() -> bool:
    """Whether what draws the charts of a page is here, of the extra `charts`."""
    return find_spec("vl_convert") is not None


def charts_of(run: Run, content: dict[str, Any], answers: Answers | None = None) -> list[Chart]:
    """The charts of a run, in the order of its page. `content` is its report; `answers` as of `facts.facts_of`."""
    from pipeprof.report.charts import flame, lanes, memory, ranks, steps
    from pipeprof.report.charts.facts import facts_of
    from pipeprof.report.sections.block import focus_of
    from pipeprof.report.words.memory import reconstructed
    from pipeprof.report.words.training import origin_of

    rep, rank = focus_of(content)
    facts = facts_of(run, content, answers)
    account = (content.get("run_account") or {}).get("parts", [])
    origin = _FIRST_STEP if facts.origin_ns else origin_of(content)
    note = reconstructed(facts.evidence)
    return [
        _over_time(facts, content, origin),
        *lanes.charts(facts.shown, _stage_names(content)),
        _stages(content, facts, origin),
        steps.chart(_of(account, rep, rank)),
        _operators(content, facts, _of(content["ops"], rep, rank)),
        flame.chart(run, rep, rank),
        memory.chart(facts.live, facts.peaks, facts.alive, facts.blocks, origin, note),
        ranks.chart(facts.cells),
    ]


def _stages(content: dict[str, Any], facts: Facts, origin: str) -> Chart:
    """A panel for each stage of the data pipeline."""
    from pipeprof.report.answer import Answer
    from pipeprof.report.answer.screen import labelled
    from pipeprof.report.charts.chart import Chart
    from pipeprof.report.pictures.flow import pipeline_of, stages_of
    from pipeprof.report.pictures.panels import panels

    found, texts = pipeline_of(content), dict(labelled(Answer.of(content["first_screen"])))
    key = (found or {}).get("pipeline_key")
    advice: dict[str, str] = {name: texts[name] for name in ("Do", "Gain") if name in texts}
    curve, histogram = ([row for row in rows if row["pipeline_key"] == key] for rows in (facts.fills, facts.histogram))
    lines = panels(stages_of(content), curve, histogram, advice, origin)
    none = "No data pipeline was recorded."
    return Chart("chart-pipeline", "Data pipeline", PANELS if lines else none, table=lines)


def _operators(content: dict[str, Any], facts: Facts, rows: Rows) -> Chart:
    """Those of the step that was asked for, without the table, which is of all steps."""
    from pipeprof.report.charts import operators

    chosen = content["op_step"]
    if chosen is None or chosen["why"] is not None:
        return operators.chart(rows, facts.operators)
    return operators.chart(rows, title=f"Operators of step {chosen['step']} by type")


def _over_time(facts: Facts, content: dict[str, Any], origin: str) -> Chart:
    from pipeprof.report.answer.since import course_of
    from pipeprof.report.charts import overtime, samples, steps
    from pipeprof.report.ops.groups import OWN
    from pipeprof.report.sections.block import focus_of

    course = course_of(content) or {}
    shown = (course.get("rep"), course.get("rank")) == focus_of(content) and course["at_ns"] is not None
    slower_ns = course["at_ns"] - facts.origin_ns if shown else None
    parts = {} if content["run"]["source"] in OWN else steps.curves(facts.steps, facts.communication)
    queues = partial(samples.queues, names=_stage_names(content))
    panels = {
        "Steps": steps.panel(facts.steps, facts.communication, slower_ns),
        **parts,
        "Waits for a batch": samples.waits(facts.steps),
        "Queues": queues(facts.fills),
        "Queues to the device": samples.sink(facts.sink),
        "CPU": samples.cpu(facts.cpu),
        "Memory": samples.memory(facts.memory),
    }
    outside = overtime.without_those_outside(panels, facts.steps)
    sampled: dict[str, tuple[Callable[..., Panel | None], Rows]] = {
        "Queues": (queues, facts.fills),
        "Queues to the device": (samples.sink, facts.sink),
        "Memory": (samples.memory, facts.memory),
    }
    panels |= {name: draw(rows, apart=True) for name, (draw, rows) in sampled.items() if name in outside}
    why = {item["what"]: item["why"] for item in content["not_measured"]}
    absent = [f"{STEPS[:-1]}: {why['step']}." if "step" in why else STEPS] if not facts.steps else []
    recorded = [name for name, panel in panels.items() if panel is not None]
    if not facts.steps and recorded:
        absent.append(f"Without a step there is nothing to draw over: {', '.join(recorded)}. {_ELSEWHERE}")
    absent += [
        f"{name}: samples are from before the first or after the last step, on their own axis." for name in outside
    ]
    for name, (said, what) in _PANELS.items():
        if panels[name] is None and (facts.steps or what != "fetch" or what in why):
            absent.append(f"{said[:-1]}: {why[what]}." if what in why else said)
    return overtime.chart(panels, facts.steps, absent, origin)


def _stage_names(content: dict[str, Any]) -> dict[tuple[str, int], str]:
    """What each operator of the pipelines of the rank in focus is called, by the pipeline's key and the op_id."""
    from pipeprof.report.answer.shape import stage_names
    from pipeprof.report.sections.block import focus_of

    return {
        (row["pipeline_key"], op_id): name
        for row in _of(content["pipeline"]["pipelines"], *focus_of(content))
        for op_id, name in stage_names(row["ops"]).items()
    }


def _of(rows: Rows, rep: int, rank: int) -> Rows:
    return [row for row in rows if (row["rep"], row["rank"]) == (rep, rank)]
