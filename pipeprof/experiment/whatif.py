"""`pipeprof whatif`: predict what other settings of one dataset operator would buy, then measure it.

The script is run unchanged and unprofiled, in turn with its own settings (side a) and with the changed ones (side b).
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.collect.probe.redact import LEFT_OUT
from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment.pairs.facts import measured_facts
from pipeprof.experiment.runs import Measured, changed_probe, make_folder, measure_pairs, write_json
from pipeprof.experiment.signals import signals_held
from pipeprof.record.machine import host_name
from pipeprof.record.trials import trials_of
from pipeprof.report.words import speedup
from pipeprof.report.words.speedup import prediction_lines
from pipeprof.verdict.capacity import SOURCE, Change, Loop, as_predicted
from pipeprof.verdict.options import options
from pipeprof.verdict.predict import Prediction, predict
from pipeprof.verdict.speedup import CHANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeprof.collect.launch import ProbeOptions
    from pipeprof.experiment.pairs.series import Plan, Side
    from pipeprof.record.run import Run

SCHEMA_VERSION = 1
HAVE_PROCESSES = frozenset(["MapOp", "BatchOp", SOURCE])


@dataclass(frozen=True)
class Wish:
    """What the user asks for; None is left as it is."""

    op: str
    workers: int | None = None
    prefetch: int | None = None
    processes: bool | None = None


@dataclass(frozen=True)
class Target:
    """The operator that is meant, the change, what it should buy, and how the probe finds the operator."""

    op: Mapping[str, Any]
    change: Change
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
    make_folder(folder)
    for line in prediction_lines(_facts(run, target)):
        say(line)

    def probe_of(side: Side, _done: Sequence[Measured]) -> ProbeOptions:
        return changed_probe(override=target.spec) if side == "b" else changed_probe()

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
    from pipeprof.experiment.stages import find_op, loop_of, training_pipelines  # noqa: PLC0415 - starts threads
    from pipeprof.query.engine import Engine  # noqa: PLC0415
    from pipeprof.read.spool.finish import open_run  # noqa: PLC0415

    run = open_run(path)
    with Engine.open(run) as engine:
        pipelines = training_pipelines(engine)
        if not pipelines:
            raise MeasureError(
                f"`{path}` holds no dataset pipeline that fed a training", "record a training that iterates a dataset"
            )
        pipeline, op = find_op(pipelines, wish.op)
        loop = loop_of(pipeline, trials_of(run))
    change = _change(wish, op, loop)
    same = [other["op_id"] for other in pipeline.ops if other["op_type"] == op["op_type"]]
    spec = {
        "node": op["node"],
        "op_type": op["op_type"],
        "ordinal": same.index(op["op_id"]),
        "of": len(same),
        "site": pipeline.site,
        "workers": change.workers,
        "prefetch": change.prefetch,
        "processes": change.processes,
    }
    return run, Target(op, change, predict(loop, change), spec)


def _change(wish: Wish, op: Mapping[str, Any], loop: Loop) -> Change:
    """The change; without one asked for, the one that promises most. Raises UsageError."""
    name, limit = op["name"] or op["op_type"], os.cpu_count() or 1
    if wish.workers is None and wish.prefetch is None and wish.processes is None:
        best = next((one.changes[0] for one in options(loop, op["op_id"]) if not one.is_unknown and one.may_pay), None)
        if best is None:
            raise UsageError(
                f"no setting is predicted to be better for `{name}`", "name a setting to try, such as --workers 2"
            )
        wish = replace(wish, workers=best.workers, prefetch=best.prefetch, processes=best.processes)
    workers = wish.workers
    if workers is not None and not 1 <= workers <= limit:
        raise UsageError(
            f"--workers {workers}: MindSpore takes 1 to {limit} on this machine", "it allows one worker for each CPU"
        )
    if wish.processes is not None and (op["op_type"] not in HAVE_PROCESSES or op["is_python"] is False):
        raise UsageError(f"`{name}` runs no Python that could be moved to processes", "try --workers")
    depths = {stage.capacity for stage in loop.stages if stage.capacity is not None}
    if (
        workers in (None, op["workers"])
        and wish.processes in (None, bool(op["uses_processes"]))
        and (wish.prefetch is None or depths == {wish.prefetch})  # it is of all operators
    ):
        has = f"num_parallel_workers {op['workers']}" + (f", prefetch size {wish.prefetch}" if wish.prefetch else "")
        raise UsageError(f"`{name}` already has these settings ({has})", "name another setting to try")
    return as_predicted(Change(op["op_id"], workers, wish.prefetch, wish.processes), op)


def _check_applied(runs: Sequence[Measured]) -> None:
    """Raises MeasureError when a changed run was not changed, or an unchanged one was."""
    for run in runs:
        applied, missed = run.events("override"), run.events("override_missed")
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
    old = {"workers": op["workers"], "prefetch": op["capacity"], "processes": op["uses_processes"]}
    new = {"workers": change.workers, "prefetch": change.prefetch, "processes": change.processes}
    return {
        "schema_version": SCHEMA_VERSION,
        "run": {"path": run.name, "run_id": run.manifest.run_id},
        "op": {name: op[name] for name in ("op_id", "op_type", "name", "node")},
        "change": {name: [old[name], value] for name, value in new.items() if value is not None},
        "prediction": speedup.worded(json.loads(json.dumps(asdict(target.prediction)))),
    }
