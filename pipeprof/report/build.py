"""Asks everything a report shows, once, into a plain dict: what `--format json` prints and the other formats render."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.query.engine import Engine
from pipeprof.verdict import compatible
from pipeprof.verdict.network import diagnose_network
from pipeprof.verdict.pipeline import diagnose

if TYPE_CHECKING:
    from pipeprof.record.run import Run

REPORT_VERSION = 1
SKIP_SHARE = 0.25  # of each pipeline's sampled time: queues fill while the training has not begun


def build(run: Run, *, top: int = 10) -> dict[str, Any]:
    """The report of a run. `top` bounds the slowest steps and the operator instances."""
    with Engine.open(run) as engine:
        usage = engine.rows("queue/utilisation", skip_share=SKIP_SHARE)
        waits = engine.rows("step/data_wait")
        pipelines = engine.rows("queue/pipelines")
        return {
            "schema_version": REPORT_VERSION,
            "run": _run_facts(run),
            "steps": {
                "summary": engine.rows("step/summary"),
                "phases": engine.rows("step/phase_summary"),
                "data_wait": waits,
                "slowest": engine.rows("step/slowest", top=top),
                "rank_spread": engine.rows("step/rank_spread"),
                "stages": engine.rows("step/stages"),
                "communication": engine.rows("comm/summary"),
                "points": run.manifest.options.get("points", {}),
            },
            "pipeline": {"pipelines": _pipelines(engine, pipelines, usage)},
            "ops": engine.rows("op/by_type"),
            "op_instances": engine.rows("op/by_instance", top=top),
            "memory": engine.rows("host/memory_peak"),
            "host": engine.rows("host/cpu_summary"),
            "diagnosis": _diagnosis(engine, run, waits, _main_pipelines(pipelines)),
            "not_measured": msgspec.to_builtins(run.manifest.not_measured),
        }


def _diagnosis(
    engine: Engine, run: Run, waits: list[dict[str, Any]], main: dict[tuple[int, int], str]
) -> dict[str, Any]:
    cores = run.manifest.fingerprint.get("cpu_cores") or 0
    verdict = diagnose(
        waits,
        _of(main, engine.rows("diagnose/bottleneck", cores=float(cores))),
        _of(main, engine.rows("diagnose/load")),
        sink=_of(main, engine.rows("diagnose/sink")),
        cores=float(cores),
    )
    verdict["compatible"] = compatible.verdicts(
        mindinsight=_of(main, engine.rows("diagnose/mindinsight")),
        advice=engine.rows("diagnose/mindinsight_advice"),
        mindspore=_of(main, engine.rows("diagnose/mindspore")),
        autotune=_of(main, engine.rows("diagnose/autotune")),
        cpu_threads=cores or None,
    )
    if verdict["verdict"] != "input_bound":
        verdict["network"] = diagnose_network(
            engine.rows("diagnose/network_phase"),
            engine.rows("diagnose/rank_imbalance"),
            engine.rows("diagnose/network_top", top=10),
            engine.rows("diagnose/op_growth", top=50),
            engine.rows("diagnose/warmup_share"),
            engine.rows("comm/summary"),
            mode=run.manifest.fingerprint.get("mode"),
        )
    return verdict


def _run_facts(run: Run) -> dict[str, Any]:
    manifest = run.manifest
    facts = {
        name: getattr(manifest, name)
        for name in ("run_id", "state", "reason", "source", "command", "started_at", "git", "fingerprint", "tables")
    }
    return {
        "path": str(run.path),
        **facts,
        "reps": msgspec.to_builtins(manifest.reps),
        "warnings": msgspec.to_builtins(manifest.warnings),
    }


def _main_pipelines(pipelines: list[dict[str, Any]]) -> dict[tuple[int, int], str]:
    """The training pipeline that each rank waited for longest."""
    main: dict[tuple[int, int], dict[str, Any]] = {}
    for row in pipelines:
        key = (row["rep"], row["rank"])
        if row["role"] == "train" and (key not in main or row["wait_ns"] > main[key]["wait_ns"]):
            main[key] = row
    return {key: row["pipeline_key"] for key, row in main.items()}


def _of(main: dict[tuple[int, int], str], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if main.get((row["rep"], row["rank"])) == row["pipeline_key"]]


def _pipelines(engine: Engine, pipelines: list[dict[str, Any]], usage: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each pipeline with its operators, and each operator with what was measured of it."""
    parts = {
        "queue": usage,
        "service": engine.rows("queue/service"),
        "cpu": engine.rows("queue/pipeline_cpu"),
    }
    found = {name: {_op_key(row): row for row in rows} for name, rows in parts.items()}
    ops: dict[tuple[int, int, str], list[dict[str, Any]]] = {}
    for row in engine.rows("queue/tree"):
        measured = {name: _measures(rows.get(_op_key(row))) for name, rows in found.items()}
        kept = {name: value for name, value in row.items() if name not in ("rep", "rank", "pipeline_key", "role")}
        ops.setdefault((row["rep"], row["rank"], row["pipeline_key"]), []).append({**kept, **measured})
    return [{**row, "ops": ops.get((row["rep"], row["rank"], row["pipeline_key"]), [])} for row in pipelines]


def _op_key(row: dict[str, Any]) -> tuple[int, int, str, int]:
    return row["rep"], row["rank"], row["pipeline_key"], row["op_id"]


def _measures(row: dict[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    identity = ("rep", "rank", "pipeline_key", "op_id", "op_type", "role", "workers", "capacity")
    return {name: value for name, value in row.items() if name not in identity}
