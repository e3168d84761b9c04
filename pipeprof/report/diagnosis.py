"""The part `diagnosis` of a report: which queries it asks, and what judges their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.verdict import compatible
from pipeprof.verdict.network import diagnose_network
from pipeprof.verdict.pipeline import diagnose

if TYPE_CHECKING:
    from pipeprof.query.engine import Engine
    from pipeprof.record.run import Run


def diagnosis_of(
    engine: Engine, run: Run, waits: list[dict[str, Any]], pipelines: list[dict[str, Any]]
) -> dict[str, Any]:
    """The verdict on a run with its evidence and suggestions, and what other programs would say.

    `waits`: rows of step/data_wait; `pipelines`: of queue/pipelines.
    """
    main = _main_pipelines(pipelines)
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
