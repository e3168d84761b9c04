"""`pipeprof headspace --op` and `--up-to`: what a part of the data pipeline costs, measured.

Side a is the unchanged script, unprofiled. On side b one operator hands out outputs that it made before, with its
input still flowing, or everything up to an operator does, with nothing behind it running any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pipeprof.collect.launch import command_path
from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment.headspace import SCHEMA_VERSION, step_notes, verdict
from pipeprof.experiment.pairs.facts import measured_facts
from pipeprof.experiment.runs import Measured, changed_probe, make_folder, measure_pairs, write_json
from pipeprof.experiment.signals import signals_held
from pipeprof.experiment.stages import find_op
from pipeprof.experiment.whatif import recorded_command
from pipeprof.report.words.experiments import noted
from pipeprof.verdict.gate.result import note
from pipeprof.verdict.loader import STAGES
from pipeprof.verdict.speedup import GAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.collect.launch import ProbeOptions
    from pipeprof.experiment.pairs.series import Plan, Side
    from pipeprof.experiment.stages import Pipeline
    from pipeprof.verdict.gate.result import Note

Mode = Literal["alone", "up_to"]
COUNTING: Mapping[str, Any] = {"stand_in": "count"}
WITHOUT_WORK = frozenset(
    f"{name}Op"
    for name in ("Shuffle", "Filter", "Repeat", "Take", "Skip", "Zip", "Concat", "Project", "Rename", "SyncWait",
                 "PaddedBatch", "BucketBatchByLength")
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """What is to cost nothing: an operator by number, name or type, alone or with everything up to it.

    `run` is the run in whose table the number stands; without one, an operator has no number.
    """

    op: str
    mode: Mode
    run: Path | None = None


def run_part(
    part: Part, command: Sequence[str], plan: Plan, folder: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure and write `folder`/headspace.json; returns its content.

    Raises UsageError for an operator that there is not, WorkloadError when the command fails, MeasureError when the
    operator cannot be replaced or nothing could be timed.
    """
    if part.run is None and part.op.isdigit():
        raise UsageError(
            f"`{part.op}` is the number of an operator of which run?", "name that run with --run, or the operator"
        )
    words, target = list(command), None
    if part.run is not None:
        with signals_held():
            words, target = _from_run(part, part.run, words)
    command_path(words)
    make_folder(folder)
    targets: list[Target] = [] if target is None else [target]

    def probe_of(side: Side, done: Sequence[Measured]) -> ProbeOptions:
        if side == "a":
            return changed_probe(override=COUNTING)
        if not targets:
            with signals_held():
                targets.append(target_of(part, described(done[0].path)))
        return changed_probe(override=targets[0].spec(source_rows(done)))

    def check(runs: Sequence[Measured]) -> None:
        _check_replaced(runs, targets[0])

    series = measure_pairs(folder, words, (plan, GAIN), probe_of, check, say)
    content: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "part": _facts(part, targets[0], series.runs)}
    content |= measured_facts(series, command=words)
    content["measured"]["verdict"] = verdict(content["measured"])
    content |= noted(notes(content["part"], series.runs))
    write_json(folder / "headspace.json", content)
    return content


@dataclass(frozen=True)
class Target:
    """The operator that is meant, and how the probe finds it."""

    op: Mapping[str, Any]
    site: str | None
    mode: Mode

    def spec(self, rows: Mapping[int, int]) -> dict[str, Any]:
        """The probe's wish; `rows` of sources that do not say themselves how many they have."""
        node = self.op["node"]
        return {"stand_in": self.mode, "node": node, "site": self.site, "rows": rows.get(node)}


def target_of(part: Part, pipelines: Sequence[Pipeline]) -> Target:
    """The operator that is meant. Raises UsageError when there is none or more than one."""
    if not pipelines:
        raise MeasureError(
            "no dataset pipeline fed the training, so none of its operators can be replaced",
            "in sink mode the batches go to the device directly: train with dataset_sink_mode=False",
        )
    pipeline, op = find_op(pipelines, part.op)
    if op.get("op_type") in STAGES:
        raise UsageError(f"`{part.op}` is a stage of a DataLoader, and can only be replaced with all others",
                         "leave out --op and --up-to")  # fmt: skip
    if op["node"] is None:
        raise UsageError(f"`{part.op}` is an operator that MindSpore added by itself", "choose one of your script's")
    if part.mode == "alone" and not can_be_alone(op):
        raise UsageError(
            f"`{op['name'] or op['op_type']}` runs no function whose output could be handed out instead",
            "choose a source, a map or a batch with a function, or --up-to",
        )
    return Target(op, pipeline.site, part.mode)


def can_be_alone(op: Mapping[str, Any]) -> bool:
    """Whether an operator of the table pipeline_op makes something of its input, or is a source."""
    moves_rows = op["op_type"] in WITHOUT_WORK or (op["op_type"] == "BatchOp" and not op["is_python"])
    return op["node"] is not None and not moves_rows


def described(path: Path) -> list[Pipeline]:
    """The training pipelines of a run, the one with the most batches first, each operator with its node."""
    from pipeprof.experiment.stages import described_pipelines  # noqa: PLC0415 - starts threads
    from pipeprof.read.spool.finish import open_run  # noqa: PLC0415

    return described_pipelines(open_run(path))


def source_rows(runs: Sequence[Measured]) -> dict[int, int]:
    """Rows of an epoch by node, of the sources that counted them in an unchanged run."""
    counted = [event for run in runs if run.side == "a" for event in run.events("source_rows")]
    return {int(event["node"]): int(event["rows"]) for event in counted}


def notes(part: Mapping[str, Any], runs: Sequence[Measured]) -> list[Note]:
    """What the reader should know about the figure, as codes."""
    outputs = part["outputs_per_step"]
    handed_out = [] if outputs is None else [note("handed_out", outputs_per_step=outputs)]
    return [note("outputs_repeat"), *handed_out, *step_notes(runs)]


def _from_run(part: Part, path: Path, words: list[str]) -> tuple[list[str], Target]:
    from pipeprof.read.spool.finish import open_run  # noqa: PLC0415 - starts threads

    return words or recorded_command(open_run(path)), target_of(part, described(path))


def _facts(part: Part, target: Target, runs: Sequence[Measured]) -> dict[str, Any]:
    """What was replaced, and how many outputs were handed out for each step of the changed runs."""
    changed = [run for run in runs if run.side == "b"]
    outputs = sum(int(event["rows"]) for run in changed for event in run.events("handed_out"))
    steps = sum(run.training_steps for run in changed)
    op = {name: target.op[name] for name in ("op_id", "op_type", "name", "node")}
    return {"op": op, "mode": part.mode, "outputs_per_step": outputs / steps if outputs and steps else None}


def _check_replaced(runs: Sequence[Measured], target: Target) -> None:
    """Raises MeasureError when a changed run was not changed."""
    for run in runs:
        if run.side == "b" and not run.events("stood_in"):
            missed = run.events("override_missed")
            why = missed[0]["why"] if missed else "no iterator was made where the first run made it"
            name = target.op["name"] or target.op["op_type"]
            raise MeasureError(f"`{name}` was not replaced in run `{run.path}`: {why}", "choose another operator")
