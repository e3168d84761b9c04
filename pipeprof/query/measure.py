"""What is compared of a run: its metrics per repetition, by the queries of the family `compare`."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import PurePath
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import RunError
from pipeprof.query.engine import Engine
from pipeprof.query.rows import RepCommunication, RepCount, RepCurve, RepMemory, RepOp, RepPhase, RepPipelineOp, RepStep
from pipeprof.record.measures import Measures, Repetition, digests_of
from pipeprof.record.note import note

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pipeprof.record.note import Note
    from pipeprof.record.run import Manifest, Run

MOST_OPS = 200  # with the most own time; the others are summed up
CURVE_POINTS = 150  # of the steps of a repetition, for a picture
OTHERS = "(others)"
BATCH_ROWS, INSTRUCTIONS = "count/rows_per_batch", "instructions"
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
KINETO, LOADER = "import:kineto", "DataLoader"
_NUMBER = re.compile(r"-op[0-9]+(#[0-9]+)?$")  # MindSpore counts all operators of a process; the count says nothing


def measure(run: Run) -> Measures:
    """Metrics of every repetition that ended well, and what never varies; names and units: docs/gate.md.

    Raises RunError when no repetition ended well, none has a training step, or a file of the run is damaged or gone.
    """
    manifest = run.manifest
    ends = {rep.exit_code for rep in manifest.reps}
    well = 0 if ends - {None} else None  # an import knows no ends; a repetition without one beside others was cut off
    ended_well = {rep.rep: rep for rep in manifest.reps if rep.exit_code == well}
    measures = Measures(
        label=run.name, workload=workload_of(manifest), fingerprint=fingerprint_of(manifest), git=manifest.git,
        created_at=manifest.started_at, notes=_notes(run, len(ended_well)),
        reps={
            number: Repetition(order=rep.zero_realtime_ns, job=manifest.job, calibration_ns=rep.calibration_ns)
            for number, rep in ended_well.items()
        },
        command=list(manifest.command), run_ids=[manifest.run_id],
    )  # fmt: skip
    with Engine.open(run) as engine:
        engine.check_whole()
        ops = engine.typed(RepOp) if run.has("op") else []
        stages = engine.typed(RepPipelineOp) if run.has("pipeline_op") else []
        values = _values(engine, ops, stages)
        curve = engine.typed(RepCurve, points=CURVE_POINTS)
    if manifest.source.startswith(KINETO) and "fetch" in manifest.tables and "phase/data_wait" in values:
        values[f"pipeline/{LOADER}"] = dict(values["phase/data_wait"])  # seen from outside: what it makes wait
    measures.facts, measures.places = _facts(ops, stages), _places(stages, manifest.workdir)
    measures.stages = _stages(stages, ended_well, measures.places)
    measures.seconds = sum(rep.dur_ns or 0 for rep in manifest.reps) / 1e9 or None
    measures.values = {
        metric: counted
        for metric, by_rep in values.items()
        if (counted := {rep: by_rep[rep] for rep in by_rep if rep in ended_well})
    }
    if not measures.values:
        why = manifest.reason or "it holds no training step"
        raise RunError(f"nothing to compare in `{run.path}`: {why}", "look at it with `pipeprof report`")
    measures.digests = digests_of(measures)
    for row in curve:
        measures.curves.setdefault(row.rep, []).append(row.dur_ns)
        if row.rep in ended_well:
            measures.steps[row.rep] = measures.steps.get(row.rep, 0) + row.steps
    return measures


def with_same_operators(base: Measures, new: Measures) -> tuple[Measures, Measures]:
    """Both sides with the same operators by name, as far as both ran them.

    Each side names the operators with the most time. One at the edge may be named on one side and among the others on
    the other side: it goes to the others here too, or it would seem to have vanished.
    """
    return _without_edge(base, new), _without_edge(new, base)


def _without_edge(side: Measures, other: Measures) -> Measures:
    rest = f"op/{OTHERS}"
    if rest not in other.values:
        return side
    names = {metric.removeprefix("op/") for metric in side.values if metric.startswith("op/")}
    edge = {name for name in names if f"op/{name}" not in other.values and f"op {name}" in other.facts}
    moved = {f"{family}/{name}" for family in ("op", "count") for name in edge}
    by_metric = {metric: dict(values) for metric, values in side.values.items() if metric not in moved}
    for name in sorted(edge):
        for rep, value in side.values[f"op/{name}"].items():
            others = by_metric.setdefault(rest, {})
            others[rep] = others.get(rep, 0.0) + value
    return msgspec.structs.replace(side, values=by_metric)


def workload_of(manifest: Manifest) -> str:
    """A short name of what was run: the script or module of the command, without its folder and ending."""
    words = [word for word in manifest.command if not word.startswith("-")]
    script = next((word for word in words if word.endswith(".py")), None)
    if script is None and "-m" in manifest.command[:-1]:
        script = manifest.command[manifest.command.index("-m") + 1]
    if script is None and words and PurePath(words[0]).name in SHELLS:
        script = next((word for word in words if word.endswith(".sh")), None)
        script = script or next((word for word in manifest.command[1:2] if not word.startswith("-")), None)
    return PurePath(script or (words[0] if words else "run")).name.removesuffix(".py").removesuffix(".sh")


def _values(engine: Engine, ops: Sequence[RepOp], stages: Sequence[RepPipelineOp]) -> dict[str, dict[int, float]]:
    values: dict[str, dict[int, float]] = defaultdict(dict)

    def add(metric: str, rep: int, value: float | None) -> None:
        if value is not None:
            values[metric][rep] = float(value)

    for step in engine.typed(RepStep):
        add("step_time_median", step.rep, step.median_ns)
        add("step_time_p90", step.rep, step.p90_ns)
        add("data_wait", step.rep, step.data_wait_ns)
        add("first_step_time", step.rep, step.first_step_ns)
    for communication in engine.typed(RepCommunication):
        add("communication/exposed", communication.rep, communication.exposed_ns)
        add("communication/tail", communication.rep, communication.tail_ns)
    for count in engine.typed(RepCount):
        add("count/compilations", count.rep, count.compilations)
        add("count/batches_per_epoch", count.rep, count.epoch_batches)
        add(BATCH_ROWS, count.rep, count.batch_rows)
        add("bytes/batch", count.rep, count.batch_bytes)
        add("count/allocations", count.rep, count.allocations)
    for memory in engine.typed(RepMemory):
        add("peak_memory", memory.rep, memory.peak_bytes)
    for phase in engine.typed(RepPhase):
        add(f"phase/{phase.phase}", phase.rep, phase.mean_ns)
    names = stage_names(stages)
    for stage in stages:  # work for a batch, rows of a source, and bytes of a row
        name = names[stage.pipeline_key, stage.op_id]
        add(f"pipeline/{name}", stage.rep, stage.work_ns)
        add(f"count/rows/{name}", stage.rep, stage.source_rows)
        add(f"bytes/row/{name}", stage.rep, stage.row_bytes)
        add(f"{INSTRUCTIONS}/{name}", stage.rep, stage.instructions)
    _add_instructions(values, stages)
    _add_ops(values, ops)
    return dict(values)


def _add_instructions(values: dict[str, dict[int, float]], stages: Sequence[RepPipelineOp]) -> None:
    """Of all stages together, for a row: what a batch operator takes for a batch is shared by its rows."""
    for stage in stages:
        if stage.instructions is not None:
            rows = values[BATCH_ROWS].get(stage.rep) if stage.op_type == "BatchOp" else 1
            total = values[INSTRUCTIONS]
            total[stage.rep] = total.get(stage.rep, 0.0) + stage.instructions / (rows or 1)


def _add_ops(values: dict[str, dict[int, float]], rows: Sequence[RepOp]) -> None:
    """Own time and executions of the operators with the most time; the time of all others as one."""
    named = [(op_name(row.name), row) for row in rows]
    total: dict[str, float] = defaultdict(float)
    for name, row in named:
        total[name] += row.self_ns or 0.0
    top = set(sorted(total, key=lambda name: (-total[name], name))[:MOST_OPS])
    for name, row in named:
        rep, shown = row.rep, name if name in top else OTHERS
        if row.self_ns is not None:
            times = values[f"op/{shown}"]
            times[rep] = times.get(rep, 0.0) + row.self_ns
        if row.executions is not None and name in top:
            counts = values[f"count/{name}"]
            counts[rep] = round(counts.get(rep, 0.0) + row.executions, 9)


def _facts(ops: Sequence[RepOp], stages: Sequence[RepPipelineOp]) -> dict[str, str]:
    """`op NAME`: types and shapes; `stage NAME`: settings; of the first repetition."""
    facts: dict[str, str] = {}
    first = min((row.rep for row in ops), default=0)
    forms: dict[str, set[str]] = defaultdict(set)
    for row in ops:
        if row.rep == first:
            shapes = f"{row.in_shapes} -> {row.out_shapes}" if row.in_shapes or row.out_shapes else ""
            forms[op_name(row.name)].add(f"{row.type} {shapes}".strip())
    facts |= {f"op {name}": " | ".join(sorted(texts)) for name, texts in forms.items()}
    names, first = stage_names(stages), min((stage.rep for stage in stages), default=0)
    for stage in stages:
        if stage.rep == first:
            facts[f"stage {names[stage.pipeline_key, stage.op_id]}"] = _settings(stage, names)
    return facts


def _settings(row: RepPipelineOp, names: Mapping[tuple[str, int], str]) -> str:
    after = names.get((row.pipeline_key, row.consumer_id if row.consumer_id is not None else -1))
    parts = [row.op_type, f"workers {row.workers}"]
    parts += [f"queue {row.capacity}"] if row.capacity is not None else []
    parts += ["processes"] if row.uses_processes else []
    return ", ".join(parts) + f", feeds {after or 'the training'}"


def _stages(rows: Sequence[RepPipelineOp], reps: Collection[int], places: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each stage once: settings of the last repetition that counts, medians of what was measured."""
    names = stage_names(rows)
    by_stage: dict[tuple[str, int], list[RepPipelineOp]] = defaultdict(list)
    for row in rows:
        if row.rep in reps:
            by_stage[row.pipeline_key, row.op_id].append(row)
    return [
        {
            "pipeline": key, "op_id": op_id, "name": names[key, op_id], "label": own[-1].name,
            "place": places.get(f"stage {names[key, op_id]}"),
            "op_type": own[-1].op_type, "workers": own[-1].workers, "consumer_id": own[-1].consumer_id,
            "work_ns": _middle([row.work_ns for row in own]), "fill_ratio": _middle([row.fill_ratio for row in own]),
        }
        for (key, op_id), own in by_stage.items()
    ]  # fmt: skip


def _middle(values: Sequence[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return median(measured) if measured else None


def _places(stages: Sequence[RepPipelineOp], workdir: str | None) -> dict[str, str]:
    """`stage NAME` -> file:line of its function, or else of the call that made it, as seen from `workdir`."""
    names = stage_names(stages)
    places = {}
    for row in stages:
        place = row.code or row.site
        if place:
            places[f"stage {names[row.pipeline_key, row.op_id]}"] = seen_from(workdir, place)
    return places


def seen_from(workdir: str | None, place: str) -> str:
    """A path below a folder without it; of any other one the file's name: machines keep libraries in many places."""
    path = PurePath(place)
    if workdir is not None and path.is_relative_to(workdir):
        return str(path.relative_to(workdir))
    return path.name if path.is_absolute() else place


def stage_names(rows: Sequence[RepPipelineOp]) -> dict[tuple[str, int], str]:
    """(pipeline_key, op_id) -> a name that survives a change of settings: what the stage does, else its type.

    Of several pipelines each name begins with the pipeline's number, in the order of their keys.
    """
    keys = sorted({row.pipeline_key for row in rows})
    named: dict[tuple[str, int], str] = {}
    for number, key in enumerate(keys):
        mine = {row.op_id: row for row in rows if row.pipeline_key == key}
        names = [row.name or row.op_type for row in mine.values()]
        for op_id, row in mine.items():
            name = row.name or row.op_type
            unique = name if names.count(name) == 1 else f"{name} {op_id}"
            named[key, op_id] = unique if len(keys) == 1 else f"{number}: {unique}"
    return named


def op_name(name: str | None) -> str:
    """An operator's full name without the number that MindSpore gives it in each process; `-` for none."""
    return "-" if name is None else _NUMBER.sub("", name)


def fingerprint_of(manifest: Manifest) -> dict[str, Any]:
    """Machine and versions, and what the recorder was told to do: another load on the machine is another condition."""
    relevant = ("ops", "queue_interval", "service", "memory", "schedule")
    options = {name: manifest.options[name] for name in relevant if name in manifest.options}
    ranks = max((len(rep.ranks) for rep in manifest.reps), default=0)
    return {**manifest.fingerprint, "ranks": ranks, "recording": json.dumps(options, sort_keys=True)}


def _notes(run: Run, ended_well: int) -> list[Note]:
    manifest, where, reps = run.manifest, str(run.path), len(run.manifest.reps)
    notes: list[Note] = []
    if manifest.state != "complete":
        notes.append(note("run_state", run=where, state=manifest.state, reason=manifest.reason_facts))
    if ended_well < reps:
        notes.append(note("failed_left_out", run=where, failed=reps - ended_well, reps=reps))
    return notes
