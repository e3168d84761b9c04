"""Asks everything a report shows, once, into a plain dict: what `--format json` prints and the other formats render."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import PipeprofError, UsageError
from pipeprof.query.answers import Answers
from pipeprof.query.engine import Engine
from pipeprof.query.part import Part
from pipeprof.query.rows import JudgedStage, typed
from pipeprof.record.trials import trials_of
from pipeprof.report import kept
from pipeprof.report.answer import answer_of
from pipeprof.report.answer.step import operators_of
from pipeprof.report.diagnosis import complete_commands, in_words
from pipeprof.report.memory.content import growth_of
from pipeprof.report.ranks import ranks_of
from pipeprof.report.run_verdict import find
from pipeprof.report.sections.block import focus_of
from pipeprof.verdict.capacity import Trial
from pipeprof.verdict.decision import with_kinds, with_stages
from pipeprof.verdict.storage import storage_of

if TYPE_CHECKING:
    from pipeprof.record.run import Run

REPORT_VERSION = 1
CURVE_POINTS = 1500
PARTED_STEPS = 1_000_000  # of all ranks: a report on them takes some 1 GiB, and as much again for each so many
SINK_POINTS = 10  # rows of the table of queue depths over time
_OF_THE_PIPELINE = ("rep", "rank", "pipeline_key", "pipeline_id", "role")


def build(
    run: Run, *, top: int = 10, step: int | None = None, answers: Answers | None = None, part: Part | None = None
) -> dict[str, Any]:
    """The report of a run. `top` bounds the rows of its longest tables; `step`: a training step to show.

    Tables are asked for what the answers kept with the run do not say, or those that are given; `part`: only that.

    Raises UsageError for a step that no rank has.
    """
    with Engine.open(run, lazily=True, part=part) as engine:
        engine.answers = kept.stored(run, engine) if answers is None else answers
        if not engine.answers:
            engine.make_all_tables()
        found = find(engine, run)
        load = with_kinds(engine.rows("diagnose/load"))
        cores = run.manifest.fingerprint.get("cpu_cores") or 0
        trials = [Trial(**one) for one in trials_of(run)] if load else []
        content = {
            "schema_version": REPORT_VERSION,
            "run": _run_facts(run),
            "top": top,
            "steps": {
                "summary": found.summary,
                "phases": engine.rows("step/phase_summary"),
                "data_wait": found.waits,
                "slowest": engine.rows("step/slowest", top=top),
                "syncs": engine.rows("step/sync"),
                "chosen": _chosen(engine, step),
                "rank_spread": engine.rows("step/rank_spread"),
                "stages": engine.rows("step/stages"),
                "communication": engine.rows("comm/summary"),
                "communication_split": engine.rows("comm/split"),
                "streams": engine.rows("comm/by_stream"),
                "collectives": engine.rows("comm/by_collective", top=top),
                "transports": engine.rows("comm/transport"),
                "split": found.split,
                "variation": engine.rows("step/variation"),
                "drift": found.drift,
                "trace": engine.rows("step/trace"),
                "passes": run.manifest.options.get("passes", {}),
                "points": run.manifest.options.get("points", {}),
            },
            "pipeline": {
                "pipelines": _fetched(run, _pipelines(engine, found.pipelines)),
                "made_ahead": bool(run.manifest.options.get("made_ahead", False)),
                "sink_depth": engine.rows("queue/sink_curve", points=SINK_POINTS),
                "sink": with_stages(engine.rows("diagnose/sink")),
                "load": load,
            },
            "storage": msgspec.to_builtins(storage_of(typed(JudgedStage, load), found.storage, float(cores), trials)),
            "ops": engine.rows("op/by_type"),
            "op_instances": engine.rows("op/by_instance", top=top),
            "op_devices": engine.rows("op/by_device"),
            "op_streams": engine.rows("op/by_stream"),
            "op_busy": engine.rows("op/busy"),
            "op_totals": engine.rows("op/totals", group_by="type", top=top),
            "op_total_instances": engine.rows("op/totals", group_by="name", top=top),
            "memory": engine.rows("host/memory_peak"),
            "memory_growth": growth_of(engine, run),
            "host": engine.rows("host/cpu_summary"),
            "cpu_account": found.account,
            "verdict": msgspec.to_builtins(found.verdict),
            "diagnosis": in_words(engine, run, found.pipelines, found.diagnosis),
            "run_account": found.run_account,
            "hang": found.hang,
            "not_measured": msgspec.to_builtins(run.manifest.not_measured),
        }
        steps = content["steps"]
        rep, rank = focus_of(content)
        steps["curve"] = engine.rows("step/curve", points=CURVE_POINTS, rep=rep, rank=rank)
        content["op_step"] = None
        content["ranks"] = ranks_of(
            engine, run.manifest.options.get("profiler", {}), found.ranks, top=top, several=found.several_ranks
        )
    if step is not None:
        content |= _operators_of(run, step, top)
    complete_commands(content["run"], content["diagnosis"])
    content["first_screen"] = answer_of(content).as_dict()
    return content


def keep_answers(run: Run, answers: Answers | None = None) -> bool:
    """Write what the page of a complete run asks into it, if it is not there; whether it is there now.

    `answers`: what they are, where that is known. A run that cannot be asked, or may not be written to, is left alone.
    """
    from pipeprof.report.charts.facts import facts_of  # noqa: PLC0415 - of many modules, for a page alone

    manifest = run.manifest
    if manifest.parts is None or manifest.state != "complete":
        return False
    try:
        if kept.stored(run) is None:
            if not answers:
                answers = _answers_of(run)
                facts_of(run, build(run, answers=answers), answers)
            kept.put(run, answers)
    except (PipeprofError, OSError):
        return False
    return True


def _answers_of(run: Run) -> Answers:
    """What a report of a very large run asks, answered in parts; of another one nothing, for it is asked as a whole.

    So is one of a single rank: what tells the questions would ask all of it, and then each again.
    """
    from pipeprof.report.by_parts import answered  # noqa: PLC0415 - Arrow is slow to import, and few runs are so large

    answers = Answers(filling=True)
    ranks = max((len(rep.ranks) for rep in run.manifest.reps), default=0)
    if run.manifest.tables.get("step", 0) < PARTED_STEPS or ranks == 1:
        return answers
    build(run, answers=answers, part=Part(ranks=(0, 1)))  # which tells the questions
    return answered(run, answers.questions())


def _chosen(engine: Engine, step: int | None) -> list[dict[str, Any]]:
    """The parts of one step on every rank that has it."""
    if step is None:
        return []
    rows = engine.rows("step/parts", step=step)
    if not rows:
        count: Counter[tuple[int, int]] = Counter()
        for row in engine.rows("step/summary"):
            count[row["rep"], row["rank"]] += row["steps"] if row["kind"] != "eval" else 0
        last = max(count.values(), default=0) - 1
        there = f"this run has 0 to {last}" if last >= 0 else "this run has none"
        raise UsageError(f"there is no training step {step}: {there}", "steps count from 0, warm-up steps included")
    return rows


def _operators_of(run: Run, step: int, top: int) -> dict[str, Any]:
    """The operators of a chosen step, and its number; of a step without any only why."""
    with Engine.open(run, lazily=True) as engine:
        try:
            return {"op_step": {"step": step, "why": None}, **operators_of(engine, step, top)}
        except UsageError as error:
            return {"op_step": {"step": step, "why": f"{error.message}; {error.hint}"}}


def _run_facts(run: Run) -> dict[str, Any]:
    manifest = run.manifest
    facts = {
        name: getattr(manifest, name)
        for name in (
            "run_id",
            "state",
            "reason",
            "reason_facts",
            "source",
            "command",
            "workdir",
            "started_at",
            "git",
            "fingerprint",
        )
    }
    return {
        "path": run.name,
        **facts,
        "tables": {name: rows for name, rows in manifest.tables.items() if name != kept.TABLE},
        "reps": msgspec.to_builtins(manifest.reps),
        "warnings": msgspec.to_builtins(manifest.warnings),
    }


def _pipelines(engine: Engine, pipelines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each pipeline with its operators, and each operator with its consumers and what was measured of it."""
    parts = {
        "queue": engine.rows("queue/utilisation"),
        "service": engine.rows("queue/service"),
        "cpu": engine.rows("queue/pipeline_cpu"),
    }
    by_op = {name: {_op_key(row): row for row in rows} for name, rows in parts.items()}
    consumers: dict[tuple[int, ...], list[int]] = {}
    for row in engine.rows("queue/edges"):
        producer = (row["rep"], row["rank"], row["pipeline_id"], row["producer_id"])
        consumers.setdefault(producer, []).append(row["consumer_id"])
    ops: dict[tuple[int, int, str], list[dict[str, Any]]] = {}
    for row in engine.rows("queue/tree"):
        measured = {name: _measures(rows.get(_op_key(row))) for name, rows in by_op.items()}
        own = {name: value for name, value in row.items() if name not in _OF_THE_PIPELINE}
        key = (row["rep"], row["rank"], row["pipeline_id"], row["op_id"])
        ops.setdefault((row["rep"], row["rank"], row["pipeline_key"]), []).append(
            {**own, "consumers": consumers.get(key, []), **measured}
        )
    return [{**row, "ops": ops.get((row["rep"], row["rank"], row["pipeline_key"]), [])} for row in pipelines]


def _fetched(run: Run, pipelines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pipelines, with null batches and waits where no batch could be recorded."""
    if not any(lack.what == "fetch" for lack in run.manifest.not_measured):
        return pipelines
    return [{**row, "batches": None, "wait_ns": None} for row in pipelines]


def _op_key(row: dict[str, Any]) -> tuple[int, int, str, int]:
    return row["rep"], row["rank"], row["pipeline_key"], row["op_id"]


def _measures(row: dict[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    identity = ("rep", "rank", "pipeline_key", "op_id", "op_type", "role", "workers", "capacity")
    return {name: value for name, value in row.items() if name not in identity}
