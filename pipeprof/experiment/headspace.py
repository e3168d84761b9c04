"""`pipeprof headspace`: the upper bound of any repair of the data pipeline, measured.

Side a is the unchanged script, unprofiled. Side b is the same, but its training iterators hand out their first batch
again and again, so that the training never waits. The epochs of side b are as long as those of the first run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.collect.launch import command_path
from pipeprof.errors import MeasureError
from pipeprof.experiment.pairs.facts import measured_facts
from pipeprof.experiment.runs import Measured, changed_probe, make_folder, measure_pairs, write_json
from pipeprof.report.words.experiments import noted
from pipeprof.verdict.gate.result import note
from pipeprof.verdict.speedup import GAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.collect.launch import ProbeOptions
    from pipeprof.experiment.pairs.series import Plan, Side
    from pipeprof.read.spool.process import Process
    from pipeprof.verdict.gate.result import Note

SCHEMA_VERSION = 1


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
    content = {"schema_version": SCHEMA_VERSION} | measured_facts(series, command=command)
    content["measured"]["verdict"] = verdict(content["measured"])
    content |= noted(notes(series.runs))
    write_json(folder / "headspace.json", content)
    return content


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


def notes(runs: Sequence[Measured]) -> list[Note]:
    """What the reader should know about the bound, as codes."""
    return [note("same_batch"), *step_notes(runs)]


def step_notes(runs: Sequence[Measured]) -> list[Note]:
    """What is to be said when the runs did not train for the same number of steps."""
    steps = sorted({run.training_steps for run in runs})
    return [note("different_steps", steps=steps)] if len(steps) > 1 else []


def verdict(measured: Mapping[str, Any]) -> str:
    """Whether there is something to gain (5 % at least), or nothing; undecided where the pairs do not decide that.

    An interval that is narrow around these 5 % is a gain where all of it is above none.
    """
    if measured["decided"] == "narrow":
        return "faster" if measured["interval"][0] > 1 else "no gain"
    return {"above": "faster", "below": "no gain"}.get(measured["decided"], "undecided")


def _roles(process: Process, *, beside_training: bool) -> dict[int, str]:
    from pipeprof.read.spool.pipelines import pipeline_keys, roles_from_steps  # noqa: PLC0415
    from pipeprof.read.spool.steps import find_steps  # noqa: PLC0415

    hidden = [int(event["number"]) for event in process.all("iterator") if event.get("hidden")]
    steps = find_steps(process.marks, hidden, pipeline_keys(process), beside_training=beside_training)
    return roles_from_steps(steps.steps)
