"""`pipeprof whatif`: predict what other settings of one dataset operator, or of a DataLoader, buy, then measure it.

The script is run unchanged and unprofiled, in turn with its own settings (side a) and with the changed ones (side b).
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.collect.launch import command_path, signals_held
from pipeprof.collect.probe.redact import LEFT_OUT
from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment.pairs import measured_facts
from pipeprof.experiment.runs import Measured, changed_probe, kept_nothing, make_folder, measure_pairs, write_json
from pipeprof.experiment.stages import find_op, loop_of, storage_advice, training_pipelines, uses_of
from pipeprof.query.engine import Engine
from pipeprof.query.rows import StorageUse
from pipeprof.record.machine import host_name
from pipeprof.record.trials import trials_of
from pipeprof.report.words import speedup
from pipeprof.report.words.speedup import prediction_lines
from pipeprof.verdict.candidate import Candidate, cached, kept_rows, key_of
from pipeprof.verdict.capacity import SOURCE, Change, Loop, Stage, as_predicted, settings_now
from pipeprof.verdict.options import options, order
from pipeprof.verdict.predict import Prediction, predict
from pipeprof.verdict.speedup import CHANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeprof.collect.launch import ProbeOptions
    from pipeprof.experiment.pairs import Plan, Side
    from pipeprof.experiment.stages import Pipeline
    from pipeprof.record.run import Run
    from pipeprof.verdict.storage import CachePoint

SCHEMA_VERSION = 1
HAVE_PROCESSES = frozenset(["MapOp", "BatchOp", SOURCE])
CAN_SET = ("workers", "prefetch", "processes", "persistent", "cache")
OPERATOR_ARGUMENTS = {"workers": "num_parallel_workers", "prefetch": "prefetch size"}
LOADER_ARGUMENTS = {"workers": "num_workers", "prefetch": "prefetch_factor", "persistent": "persistent_workers"}


@dataclass(frozen=True)
class Wish:
    """What the user asks for; None is left as it is."""

    op: str
    workers: int | None = None
    prefetch: int | None = None
    processes: bool | None = None
    persistent: bool | None = None
    cache: bool | None = None


@dataclass(frozen=True)
class Target:
    """The operator that is meant, the change, what is set now, what it should buy, and how the probe finds it."""

    op: Mapping[str, Any]
    change: Change
    now: Mapping[str, Any]
    prediction: Prediction
    spec: Mapping[str, Any]


def run_whatif(
    path: Path, wish: Wish, command: Sequence[str], plan: Plan, folder: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Predict, measure and write `folder`/whatif.json; returns its content.

    Raises UsageError for an operator or a change that cannot be, WorkloadError when the command fails, MeasureError
    when the change was not applied or nothing could be timed.
    """
    with signals_held():
        run, target = _prepare(path, wish)
    words = list(command) or recorded_command(run)
    command_path(words)
    make_folder(folder)
    for line in prediction_lines(_facts(run, target)):
        say(line)

    def probe_of(side: Side, _done: Sequence[Measured]) -> ProbeOptions:
        return changed_probe(override=target.spec) if side == "b" else changed_probe()

    plan = replace(plan, later=target.change.cache is not None)
    series = measure_pairs(folder, words, (plan, CHANGE), probe_of, _check_applied, say)
    content = _facts(run, target) | measured_facts(series, command=words)
    content["measured"]["verdict"] = verdict(content["measured"])
    predicted, measured = target.prediction.ratio, content["measured"]["ratio"]
    content["error"] = None if predicted is None or target.prediction.trial else predicted / measured - 1
    write_json(folder / "whatif.json", content)
    return content


def recorded_command(run: Run) -> list[str]:
    """The command that the run recorded. Raises UsageError when it cannot be run again from here.

    Also when it was not recorded here: whoever made the run would choose what is run.
    """
    command = run.manifest.command
    hint = "give the command after `--`"
    if not command:
        raise UsageError(f"`{run.path}` does not say which command it recorded", hint)
    if any(LEFT_OUT in word for word in command):
        raise UsageError("the recorded command holds a secret that was not stored", hint)
    folder = run.manifest.workdir or ""
    if not Path(folder).is_absolute() or Path(folder).resolve() != Path.cwd().resolve():
        raise UsageError(f"the command was recorded in `{folder}`", f"go there first, or {hint}")
    if run.manifest.fingerprint.get("host") != host_name():
        raise UsageError("the command was recorded on another machine", hint)
    if shutil.which(command[0]) is None:
        raise UsageError(f"command not found: `{command[0]}`", hint)
    return list(command)


def verdict(measured: Mapping[str, Any]) -> str:
    """Faster or slower when the pairs decide that, by at least 2 %, else undecided."""
    return {"above": "faster", "below": "slower"}.get(measured["decided"], "undecided")


def _prepare(path: Path, wish: Wish) -> tuple[Run, Target]:
    from pipeprof.read.spool.finish import open_run  # noqa: PLC0415 - its libraries start threads

    run = open_run(path)
    with Engine.open(run) as engine:
        pipelines = training_pipelines(engine)
        if not pipelines:
            raise MeasureError(
                f"`{path}` holds no dataset pipeline that fed a training", "record a training that iterates a dataset"
            )
        pipeline, op = find_op(pipelines, wish.op)
        loop = loop_of(pipeline, trials_of(run))
        _, points = storage_advice(pipeline, uses_of(pipeline, engine.typed(StorageUse)), loop)
    chosen, now = _chosen(wish, op, loop, points), _now(op, loop)
    change = chosen.changes[0]
    if all(now[name] == value for name, value in _settings(change).items()):
        raise UsageError(f"{_titled(op, loop)} already has these settings ({_listed(now, change)})",
                         "name another setting to try")  # fmt: skip
    spec = {"loader": True, "site": pipeline.site} if _loader_stage(op, loop) else _place(op, pipeline)
    return run, Target(op, change, now, chosen.prediction, spec | _settings(change))


def _place(op: Mapping[str, Any], pipeline: Pipeline) -> dict[str, Any]:
    """How the probe finds an operator of a dataset."""
    same = [other["op_id"] for other in pipeline.ops if other["op_type"] == op["op_type"]]
    return {
        "node": op["node"],
        "op_type": op["op_type"],
        "ordinal": same.index(op["op_id"]),
        "of": len(same),
        "site": pipeline.site,
    }


def _now(op: Mapping[str, Any], loop: Loop) -> dict[str, Any]:
    """The settings as they are; `persistent` where that is known."""
    stage = _loader_stage(op, loop)
    if stage is not None:
        return settings_now(loop, stage) | {"cache": None}
    depths = {stage.capacity for stage in loop.stages if stage.capacity is not None}  # it is of all operators
    prefetch = min(depths, default=None) if len(depths) < 2 else None
    now = {"workers": op["workers"], "processes": bool(op["uses_processes"])}
    return now | {"prefetch": prefetch, "cache": None}


def _settings(change: Change) -> dict[str, Any]:
    """The settings that are changed, by name."""
    return {name: value for name in CAN_SET if (value := getattr(change, name)) is not None}


def _listed(now: Mapping[str, Any], change: Change) -> str:
    names = OPERATOR_ARGUMENTS if "processes" in now else LOADER_ARGUMENTS
    wanted = {"workers", *_settings(change)}
    return ", ".join(f"{title} {now[name]}" for name, title in names.items() if name in wanted)


def _titled(op: Mapping[str, Any], loop: Loop) -> str:
    return "the DataLoader" if _loader_stage(op, loop) else f"`{op['name'] or op['op_type']}`"


def _loader_stage(op: Mapping[str, Any], loop: Loop) -> Stage | None:
    """The stage of a DataLoader that an operator is, if it is one."""
    return next((stage for stage in loop.stages if stage.op_id == op["op_id"] and stage.chained), None)


def _chosen(wish: Wish, op: Mapping[str, Any], loop: Loop, points: Sequence[CachePoint]) -> Candidate:
    """The change and its prediction; without one asked for, the one that promises most. Raises UsageError."""
    asked = {name: getattr(wish, name) for name in CAN_SET if getattr(wish, name) is not None}
    kept = [cached(one, loop) for one in kept_rows(points) if one.op_id == op["op_id"]]
    if not asked:
        ranked = sorted([*options(loop, op["op_id"]), *kept], key=order)
        best = next((one for one in ranked if not one.is_unknown and one.may_pay), None)
        if best is None:
            raise UsageError(
                f"no setting is predicted to be better for {_titled(op, loop)}",
                "name a setting to try, such as --workers 2",
            )
        asked = _settings(best.changes[0])
    if "cache" in asked:
        return _cache(asked, kept, _titled(op, loop))
    (_check_loader if _loader_stage(op, loop) else _check_operator)(wish, op, loop)
    change = as_predicted(Change(op["op_id"], **asked), op)
    return Candidate(key_of(change), (change,), prediction=predict(loop, change))


def _cache(asked: Mapping[str, Any], kept: Sequence[Candidate], title: str) -> Candidate:
    """The cache behind the operator. Raises UsageError where other settings are asked for with it, or none can be."""
    if len(asked) > 1:
        raise UsageError("--cache is tried alone", "leave out the other settings")
    if not kept:
        raise UsageError(
            f"no cache behind {title} is predicted to bring anything, or can be tried",
            "it has to stand behind a source in Python and its maps, before the shuffle, the batch and random rows; "
            "`pipeprof report RUN --section storage` lists what caches bring",
        )
    return kept[0]


def _check_operator(wish: Wish, op: Mapping[str, Any], loop: Loop) -> None:
    """Raises UsageError for settings that MindSpore's operator cannot have."""
    limit = os.cpu_count() or 1
    if wish.workers is not None and not 1 <= wish.workers <= limit:
        raise UsageError(
            f"--workers {wish.workers}: MindSpore takes 1 to {limit} on this machine",
            "it allows one worker for each CPU",
        )
    if wish.processes is not None and (op["op_type"] not in HAVE_PROCESSES or op["is_python"] is False):
        raise UsageError(f"{_titled(op, loop)} runs no Python that could be moved to processes", "try --workers")
    if wish.persistent is not None:
        raise UsageError("only the workers of a DataLoader can be made to live on", "leave out --persistent")


def _check_loader(wish: Wish, _op: Mapping[str, Any], loop: Loop) -> None:
    """Raises UsageError for settings that a DataLoader cannot have."""
    workers = loop.loader_workers if wish.workers is None else wish.workers
    if wish.processes is not None:
        raise UsageError("the workers of a DataLoader are processes", "choose their number with --workers")
    if not workers and (wish.prefetch is not None or wish.persistent):
        option = "--prefetch" if wish.prefetch is not None else "--persistent"
        raise UsageError(f"{option} needs worker processes, and the DataLoader has none", "add --workers 2")


def _check_applied(runs: Sequence[Measured]) -> None:
    """Raises MeasureError when a changed run was not changed, or an unchanged one was."""
    for run in runs:
        applied, missed = run.events("override"), run.events("override_missed")
        nothing = kept_nothing(run)
        if nothing:
            raise MeasureError(nothing)
        if run.side == "b" and not applied:
            why = missed[0]["why"] if missed else "no iterator was made where the recorded run made it"
            raise MeasureError(
                f"the change was not applied in run `{run.path}`: {why}",
                "was the script changed since the run was recorded? collect it again",
            )
        if run.side == "a" and applied:
            raise MeasureError(f"the change was applied in the unchanged run `{run.path}`", "please report this")


def _facts(run: Run, target: Target) -> dict[str, Any]:
    op, change = target.op, target.change
    old = dict(target.now)
    if not target.spec.get("loader"):
        old["prefetch"] = op["capacity"]
    return {
        "schema_version": SCHEMA_VERSION,
        "run": {"path": run.name, "run_id": run.manifest.run_id},
        "op": {name: op[name] for name in ("op_id", "op_type", "name", "node")},
        "change": {name: [old[name], value] for name, value in _settings(change).items()},
        "prediction": speedup.worded(json.loads(json.dumps(asdict(target.prediction)))),
    }
