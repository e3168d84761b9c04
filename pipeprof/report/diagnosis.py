"""The part `diagnosis` of a report: which queries it asks, and what judges their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.query.rows import (
    Autotune,
    CommSummary,
    DataWait,
    FetchCall,
    HostCall,
    JudgedSink,
    JudgedStage,
    LoopCall,
    Mindinsight,
    MindinsightAdvice,
    Mindspore,
    NetworkPhase,
    NetworkTop,
    NetworkTypes,
    OpGrowth,
    PhaseSummary,
    RankImbalance,
    StepLengths,
    StorageUse,
    WarmupShare,
    typed,
)
from pipeprof.record.trials import trials_of
from pipeprof.report.answer import command, doubts
from pipeprof.report.words import evidence, network, suggestions
from pipeprof.report.words import verdict as other_programs
from pipeprof.units import format_ratio
from pipeprof.verdict import compatible
from pipeprof.verdict.account import lower
from pipeprof.verdict.calls import (
    LIBRARY,
    LISTED,
    NETWORK_FRAMES,
    TRAINING_FRAMES,
    WAIT_FRAMES,
    host_call,
    loop_calls,
    loop_site,
    take_calls,
)
from pipeprof.verdict.capacity import Trial
from pipeprof.verdict.decision import decisions, with_kinds, with_stages
from pipeprof.verdict.interval import judge_interval
from pipeprof.verdict.modes import of_one_mode, two_modes
from pipeprof.verdict.network import RECORDED, diagnose_network, take_sleep
from pipeprof.verdict.network_advice import on_call
from pipeprof.verdict.pipeline import diagnose
from pipeprof.verdict.verdict_from_queues import judge_fills

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.query.engine import Engine
    from pipeprof.record.run import Run


BUBBLE_SHARE = 0.1  # of a step: from here on pipeline stages that wait for each other are worth a word
NOTHING_IMPORTED = (
    "the imported files do not say what runs in a step: import the profiler's whole output folder, or profile with a "
    "level that records operators or step_trace_time"
)
OPERATORS_ALONE = (
    "operators were imported, but not in which step each ran: `pipeprof ops` shows what takes longest, and "
    "`--section not-measured` why the steps are missing"
)
DIVIDED = "step/split"


def in_words(engine: Engine, run: Run, pipelines: list[dict[str, Any]], verdict: dict[str, Any]) -> dict[str, Any]:
    """A verdict of `judged` in words, with what other programs would say."""
    main = _main_pipelines(pipelines)
    verdict["compatible"] = compatible.verdicts(
        mindinsight=typed(Mindinsight, _of(main, engine.rows(Mindinsight.query))),
        advice=engine.typed(MindinsightAdvice),
        mindspore=typed(Mindspore, _of(main, engine.rows(Mindspore.query))),
        autotune=typed(Autotune, _of(main, engine.rows(Autotune.query))),
        cpu_threads=run.manifest.fingerprint.get("cpu_cores") or None,
    )
    return _worded(verdict)


def judged(
    engine: Engine,
    run: Run,
    waits: list[dict[str, Any]],
    pipelines: list[dict[str, Any]],
    contention: dict[str, Any] | None = None,
    storage: Sequence[StorageUse] = (),
    loop_cores: float | None = None,
) -> dict[str, Any]:
    """The verdict on a run's data and step, with codes in place of words, and nothing of other programs.

    `waits`: rows of step/data_wait; `pipelines`: of queue/pipelines; `contention`: a process that takes too much CPU;
    `storage`: what caches are judged by; `loop_cores`: that the threads of the loop used or wanted, where known.
    """
    verdict = data_verdict(engine, run, waits, pipelines, storage)
    frames = {"library": LIBRARY, "network": NETWORK_FRAMES, "training": TRAINING_FRAMES, "waits": WAIT_FRAMES}
    called = engine.typed(LoopCall, least=LISTED, **frames)
    verdict["loop_calls"], verdict["loop_site"] = loop_calls(called), loop_site(called)
    modes = two_modes(engine.typed(StepLengths))
    verdict["modes"] = msgspec.to_builtins(modes)
    steady = verdict["data_wait_share"]
    # Who waits for data sleeps, too, also where the steady state leaves that out: at the beginning of each epoch.
    beside = max(0.0, (verdict.get("data_wait_share_all_steps") or 0.0) - (steady or 0.0))
    awake = None if loop_cores is None else loop_cores + beside
    verdict["network"] = of_one_mode(_network(engine, run, verdict["doubts"], steady, awake), modes)
    lower(verdict, contention)
    return verdict


def _worded(verdict: dict[str, Any]) -> dict[str, Any]:
    """With doubts, evidence, suggestions and other programs' advice in words; their codes and numbers are kept."""
    verdict["compatible"] = other_programs.worded(verdict["compatible"])
    verdict["suggestions"] = [suggestions.worded(item) for item in verdict["suggestions"]]
    for part in (verdict, verdict["network"]):
        if part is not None:
            part["doubt_facts"] = part["doubts"]
            part["doubts"] = doubts.clauses(part["doubt_facts"])
            part["evidence"] = evidence.worded(part["evidence"])
    return verdict


def data_verdict(
    engine: Engine,
    run: Run,
    waits: list[dict[str, Any]],
    pipelines: list[dict[str, Any]],
    storage: Sequence[StorageUse] = (),
) -> dict[str, Any]:
    """The part of the diagnosis that says whether the training waits for its data, and for which operator."""
    main = _main_pipelines(pipelines)
    cores = float(run.manifest.fingerprint.get("cpu_cores") or 0)
    sink = typed(JudgedSink, with_stages(_of(main, engine.rows(JudgedSink.query))))
    loads = typed(JudgedStage, with_kinds(_of(main, engine.rows(JudgedStage.query))))
    steps = typed(DataWait, waits)
    alone = all(len(rep.ranks) <= 1 for rep in run.manifest.reps)
    trials = [Trial(**one) for one in trials_of(run)] if loads else []
    decided = decisions(loads, steps, cores, alone=alone)
    verdict = diagnose(
        steps, decided, loads, sink=sink, cores=cores, trials=trials,
        storage=storage, environment=run.manifest.fingerprint.get("environment"),
    )  # fmt: skip
    if run.manifest.source.startswith("import:"):
        verdict = judge_interval(verdict, engine.typed(PhaseSummary), sink)
        verdict = judge_fills(verdict, loads, cores)
        if verdict["verdict"] == "input_bound" and verdict["op_id"] is None:
            take_calls(verdict, engine.typed(FetchCall, least=LISTED))
    return verdict


def complete_commands(run: dict[str, Any], verdict: dict[str, Any]) -> None:
    """Put the run and its command into the checks of the suggestions."""
    for item in verdict["suggestions"]:
        if item["verify"]:
            item["verify"] = command.verification(run, item["verify"])


def _network(
    engine: Engine, run: Run, beside: list[dict[str, Any]], waits: float | None, awake: float | None
) -> dict[str, Any]:
    """What limits the step: by its recorded operators, else as a profiler divided it.

    `beside`, `waits`: doubts of the verdict on the data, and the share of the time that the training waits for it;
    `awake`: cores that the threads of the loop used or wanted, where known.
    """
    imported = run.manifest.source.startswith("import:")
    phases, origin = engine.typed(NetworkPhase), RECORDED
    split = [] if phases else engine.rows("step/split")
    if split:
        phases, origin = _divided(split), DIVIDED
    diagnosis = diagnose_network(
        phases,
        engine.typed(RankImbalance),
        engine.typed(NetworkTop, top=10),
        engine.typed(OpGrowth, top=50),
        () if imported else engine.typed(WarmupShare),  # a profile is no whole run
        engine.typed(CommSummary),
        types=engine.typed(NetworkTypes, top=20),
        mode=run.manifest.fingerprint.get("mode"),
        origin=origin,
        beside=beside,
        waits=waits if sum(len(rep.ranks) for rep in run.manifest.reps) == 1 else None,
        damaged=imported and run.manifest.state == "partial",
    )
    take_sleep(diagnosis, awake)
    diagnosis["host_call"] = None
    if imported and diagnosis["limit"] == "host_gap":
        rows = engine.typed(HostCall, least=LISTED, library=LIBRARY)
        diagnosis["host_call"] = host_call(rows, diagnosis["limit_share"])
        diagnosis["actions"] = [*on_call(diagnosis["host_call"]), *diagnosis["actions"]]
    diagnosis["actions"], diagnosis["suggestions"] = network.worded(diagnosis["actions"])
    diagnosis["suggestions"] += _stage_advice(split)
    if not phases and imported:
        diagnosis["actions"], diagnosis["suggestions"] = [], [OPERATORS_ALONE if run.has("op") else NOTHING_IMPORTED]
    return diagnosis


def _stage_advice(rows: list[dict[str, Any]]) -> list[str]:
    """What to do when pipeline stages wait for each other."""
    waits = [(row["receive_ns"] or 0) / row["step_ns"] for row in rows if row["step_ns"]]
    share = sum(waits) / len(waits) if waits else 0.0
    if share < BUBBLE_SHARE:
        return []
    what = f"{format_ratio(share)} of a step is receiving from other pipeline stages"
    return [f"use more micro-batches in a step, or stages that take equally long: {what}"]


def _divided(rows: list[dict[str, Any]]) -> list[NetworkPhase]:
    """Rows of step/split as those of steps with operators: computing, exposed communication and free time.

    Means stand for medians, which are not known.
    """
    parts = {"other": "computing_ns", "communication_exposed": "exposed_ns", "host_gap": "free_ns"}
    divided = [
        {
            "rep": row["rep"], "rank": row["rank"], "part": part, "adds_up": True, "kind": "train",
            "steps": row["steps"], "total_ns": (row[column] or 0) * row["steps"],
            "step_ns": row["step_ns"] * row["steps"], "median_ns": row[column] or 0,
            "share": (row[column] or 0) / row["step_ns"], "inside_work_ns": None, "outside_work_ns": None,
            "device_ops": None, "device_op_ns": None, "stalled": None,
        }
        for row in rows
        if row["step_ns"]
        for part, column in parts.items()
    ]  # fmt: skip
    return typed(NetworkPhase, divided)


def _main_pipelines(pipelines: list[dict[str, Any]]) -> dict[tuple[int, int], str]:
    """The training pipeline that each rank waited for longest."""
    main: dict[tuple[int, int], dict[str, Any]] = {}
    for row in pipelines:
        key = (row["rep"], row["rank"])
        if row["role"] == "train" and (key not in main or (row["wait_ns"] or 0) > (main[key]["wait_ns"] or 0)):
            main[key] = row
    return {key: row["pipeline_key"] for key, row in main.items()}


def _of(main: dict[tuple[int, int], str], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if main.get((row["rep"], row["rank"])) == row["pipeline_key"]]
