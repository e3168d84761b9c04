"""`pipeprof headspace`: what the whole data pipeline costs the training, or a part of it, measured.

Side a is the unchanged script, unprofiled. Side b is the same, but its training iterators hand out their first batch
again and again, so that the training never waits: the upper bound of any repair of the pipeline. The epochs of side b
are as long as those of the first run. With --op one operator hands out outputs that it made before, with its input
still flowing; with --up-to everything up to an operator does, with nothing behind it running any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pipeprof.collect.launch import command_path, signals_held
from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment.pairs import measured_facts
from pipeprof.experiment.runs import Measured, changed_probe, make_folder, measure_pairs, write_json
from pipeprof.experiment.stages import described_pipelines, find_op
from pipeprof.experiment.whatif import recorded_command
from pipeprof.report.words.experiments import noted
from pipeprof.verdict.gate.result import note
from pipeprof.verdict.loader import STAGES
from pipeprof.verdict.speedup import GAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.collect.launch import ProbeOptions
    from pipeprof.experiment.pairs import Plan, Side
    from pipeprof.experiment.runs import Series
    from pipeprof.experiment.stages import Pipeline
    from pipeprof.read.spool.process import Process
    from pipeprof.verdict.gate.result import Note

SCHEMA_VERSION = 1
Mode = Literal["alone", "up_to"]
COUNTING: Mapping[str, Any] = {"stand_in": "count"}
WITHOUT_WORK = frozenset(
    f"{name}Op"
    for name in ("Shuffle", "Filter", "Repeat", "Take", "Skip", "Zip", "Concat", "Project", "Rename", "SyncWait",
                 "PaddedBatch", "BucketBatchByLength")
)  # fmt: skip


def run_headspace(command: Sequence[str], plan: Plan, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure and write `folder`/headspace.json; returns its content.

    Raises WorkloadError when the command fails, MeasureError when there is no training iterator to replace.
    """
    command_path(command)
    make_folder(folder)
    wishes: list[dict[str, Any]] = []

    def probe_of(side: Side, done: Sequence[Measured]) -> ProbeOptions:
        if side == "a":
            return changed_probe()
        if not wishes:
            wishes.extend(training_iterators(done[0].processes))
        return changed_probe(cached=wishes)

    series = measure_pairs(folder, command, (plan, GAIN), probe_of, _check_cached, say)
    return _written(folder, {}, series, command, [note("same_batch")])


def _check_cached(runs: Sequence[Measured]) -> None:
    """Raises MeasureError when a changed run waited for data as the unchanged one does."""
    if not all(run.events("cached") for run in runs if run.side == "b"):
        raise MeasureError(
            "the dataset iterators of the first run were not found in the second",
            "does the script make them at random?",
        )


def training_iterators(processes: Sequence[Process]) -> list[dict[str, Any]]:
    """What the probe needs to know the training's iterators again, for each place that makes some.

    Their numbers, the lengths of the epochs that each went through, the usual length, and whether the place makes no
    others. Raises MeasureError when no training iterator was seen.
    """
    from pipeprof.read.spool.steps import has_trained  # noqa: PLC0415

    places: dict[str, dict[str, Any]] = {}
    mixed: set[str] = set()
    trains = any(has_trained(process.marks) for process in processes)
    for process in processes:
        roles = _roles(process, beside_training=trains)
        for event in process.all("iterator"):
            site, number = event.get("site") or "", int(event["number"])
            if event.get("hidden"):
                continue
            if roles.get(number) != "train":
                mixed |= {site} if number in roles else set()
                continue
            place = places.setdefault(site, {"site": site, "epochs": {}, "usual": None, "only": True})
            place["epochs"][str(number)] = epoch_lengths(process, number)
    if not places:
        raise MeasureError(
            "no training batch came through a dataset iterator, so none can be replaced",
            "in sink mode the batches go to the device directly: train with dataset_sink_mode=False",
        )
    for place in places.values():
        lengths = {length for epochs in place["epochs"].values() for length in epochs}
        place["usual"] = lengths.pop() if len(lengths) == 1 else None
        place["only"] = place["site"] not in mixed
    return sorted(places.values(), key=lambda place: str(place["site"]))


def epoch_lengths(process: Process, number: int) -> list[int]:
    """Batches of each epoch of an iterator that went to its end."""
    from pipeprof.read.spool.marks import OTHER_THREAD, Kind  # noqa: PLC0415

    lengths, batches = [], 0
    for mark in process.marks.only(Kind.FETCH):
        if mark.subject != number:
            continue
        flag = mark.flag & ~OTHER_THREAD
        if flag == 0:
            batches += 1
        elif flag == 1 and batches:
            lengths.append(batches)
            batches = 0
    return lengths


def _roles(process: Process, *, beside_training: bool) -> dict[int, str]:
    from pipeprof.read.spool.pipelines import pipeline_keys, roles_from_steps  # noqa: PLC0415
    from pipeprof.read.spool.steps import find_steps  # noqa: PLC0415

    hidden = [int(event["number"]) for event in process.all("iterator") if event.get("hidden")]
    steps = find_steps(process.marks, hidden, pipeline_keys(process), beside_training=beside_training)
    return roles_from_steps(steps.steps)


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
    words, targets = list(command), list[Target]()
    if part.run is not None:
        with signals_held():
            from pipeprof.read.spool.finish import open_run  # noqa: PLC0415 - starts threads

            words = words or recorded_command(open_run(part.run))
            targets.append(target_of(part, described(part.run)))
    command_path(words)
    make_folder(folder)

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
    facts = _facts(part, targets[0], series.runs)
    return _written(folder, {"part": facts}, series, words, part_notes(facts))


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
    from pipeprof.read.spool.finish import open_run  # noqa: PLC0415 - starts threads

    return described_pipelines(open_run(path))


def source_rows(runs: Sequence[Measured]) -> dict[int, int]:
    """Rows of an epoch by node, of the sources that counted them in an unchanged run."""
    counted = [event for run in runs if run.side == "a" for event in run.events("source_rows")]
    return {int(event["node"]): int(event["rows"]) for event in counted}


def part_notes(part: Mapping[str, Any]) -> list[Note]:
    """What the reader should know about the figure of a part, as codes."""
    outputs = part["outputs_per_step"]
    return [note("outputs_repeat"), *([] if outputs is None else [note("handed_out", outputs_per_step=outputs)])]


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


def _written(
    folder: Path, about: Mapping[str, Any], series: Series, command: Sequence[str], notes: Sequence[Note]
) -> dict[str, Any]:
    """The content of `folder`/headspace.json, which is written."""
    content = {"schema_version": SCHEMA_VERSION, **about} | measured_facts(series, command=command)
    content["measured"]["verdict"] = verdict(content["measured"])
    steps = sorted({run.training_steps for run in series.runs})
    content |= noted([*notes, *([note("different_steps", steps=steps)] if len(steps) > 1 else [])])
    write_json(folder / "headspace.json", content)
    return content


def verdict(measured: Mapping[str, Any]) -> str:
    """Whether there is something to gain (5 % at least), or nothing; undecided where the pairs do not decide that.

    An interval that is narrow around these 5 % is a gain where all of it is above none.
    """
    if measured["decided"] == "narrow":
        return "faster" if measured["interval"][0] > 1 else "no gain"
    return {"above": "faster", "below": "no gain"}.get(measured["decided"], "undecided")
