"""What a tuning needs from the world: a clock, a recording of the training, and short runs with changed settings."""

from __future__ import annotations

import os
import shutil
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from pipeprof.collect.launch import ProbeOptions, signals_held
from pipeprof.collect.probe.redact import without_secrets
from pipeprof.errors import MeasureError, PipeprofError, WorkloadError
from pipeprof.experiment.pairs import LEAST_RUN
from pipeprof.experiment.repetition import Clocks
from pipeprof.experiment.runs import HOST_INTERVAL_S, changed_probe, kept_nothing, run_once
from pipeprof.experiment.stages import loop_of, storage_advice, training_pipelines, uses_of
from pipeprof.experiment.trial import Trial, run_trial, watched_memory
from pipeprof.experiment.tune import RECORDED
from pipeprof.experiment.tune.rows import epochs_of
from pipeprof.query.engine import Engine
from pipeprof.query.rows import HostAccount, HostRoom, RunAccount, StorageUse
from pipeprof.record.plain_file import remove
from pipeprof.record.run import load
from pipeprof.record.trials import Trials, trials_beside
from pipeprof.verdict.account import find_contention
from pipeprof.verdict.candidate import Recorded
from pipeprof.verdict.capacity import SOURCE
from pipeprof.verdict.loader import STAGES
from pipeprof.verdict.rules import MODERATE_WAIT
from pipeprof.verdict.run_account import judge_run
from pipeprof.verdict.storage import small_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.experiment.pairs import Side
    from pipeprof.experiment.runs import Measured
    from pipeprof.experiment.stages import Pipeline
    from pipeprof.experiment.tune.rows import Epoch
    from pipeprof.record.settings_file import Settings
    from pipeprof.verdict.capacity import Loop
    from pipeprof.verdict.tuning import Goal

EVERY_S = 0.25  # CPU time is read so often where it is to be saved
OTHERS = ("profiler", "neighbour")  # whose CPU time is not the job's
SAMPLE = 8  # batches whose fingerprints are compared
SLOWER = 4.0  # times the seconds of the slowest run so far: a candidate that takes longer hangs
GRACE_S = 30.0
PART, LEAST_S = 20, 20.0  # a longer training is recorded for that part of the budget, or for so many seconds


@dataclass(frozen=True)
class Recording:
    """A recording of the training: its loop, its operators (rows of diagnose/load), where its iterator is made.

    `others`: lines that make operators of other pipelines, or lead there; `recorded`: what else it says of candidates;
    `outside`: large parts of the run that are no training step; `epochs`: how many it trained; `process`: one that
    takes CPU that the training needs; `small_files`: a source that waits for them. `ended_after`: training steps after
    which it was ended, None: by itself. `waits_elsewhere`: it waits longer for another iterator of the training.
    """

    loop: Loop
    ops: Sequence[Mapping[str, Any]]
    site: str | None
    seconds: float
    others: frozenset[str] = frozenset()
    recorded: Recorded = field(default_factory=Recorded)
    outside: Sequence[Mapping[str, Any]] = ()
    epochs: int = 1
    process: Mapping[str, Any] | None = None
    small_files: Mapping[str, Any] | None = None
    ended_after: int | None = None
    waits_elsewhere: bool = False


@dataclass(frozen=True)
class RunResult:
    """One short run: steps/s, seconds, and the fingerprints of the first batches of each iterator of the training.

    `need`: what is to be saved: CPU s of a step, or the most bytes; None where the goal is time. `later`: steps/s from
    the second epoch on; None for too few of them.
    """

    rate: float
    seconds: float
    batches: tuple[str, ...] = ()
    need: float | None = None
    later: float | None = None


def recorded_s(budget_s: float) -> float:
    """Seconds of training after which a recording is ended, and each run after a quarter of its steps."""
    return max(LEAST_S, budget_s / PART)


class TuneBench(Clocks):
    """Runs the command. `record_s`: seconds after which a recording is ended that no number of steps ends.

    `stop_after`: training steps after which each run ends. Tests bring a bench of their own.
    """

    def __init__(self, command: Sequence[str], goal: Goal = "time", record_s: float | None = None) -> None:
        self.command, self.goal, self.record_s = list(command), goal, record_s
        self.stop_after: int | None = None

    def look(self, settings: Settings, path: Path, longest_s: float | None) -> Recording | None:
        """Record the training with settings, or read what is recorded already; None: no pipeline fed it.

        Raises WorkloadError for a command that fails or takes longer.
        """
        began = self.now()
        if not _is_complete(path):
            self._record(settings, path, longest_s)
        beside: Trials = []
        if settings.is_empty:  # what was measured before was measured on the unchanged training
            beside = trials_beside(path.parent.parent, without_secrets(self.command), but=path.parent)
        return _seen(path, self.now() - began, settings.site, beside)

    def run(self, settings: Settings, folder: Path, name: tuple[Side, int], longest_s: float | None) -> RunResult:
        """One unprofiled run; what is left of an interrupted one is thrown away.

        Raises WorkloadError for one that fails or takes too long, MeasureError for others.
        """
        began = self.now()
        watched = watched_memory() if self.goal == "memory" else nullcontext()
        with watched as peak:
            done = self._run(settings, folder, name, longest_s, digest=SAMPLE)
        batches = [event for event in done.events("batch_digest") if event["site"] == (settings.site or event["site"])]
        batches.sort(key=lambda event: (event["number"], event["row"]))
        if settings.keeps_rows and not _later_epoch(batches):
            batches = []  # those of a first epoch are no proof that rows may be kept
        if peak and not peak.bytes:
            why = f"the memory of the processes of run `{done.path}` cannot be read"
            raise MeasureError(why, "tune for --goal time or cores here")
        rate = done.rate.per_second
        need = peak.bytes if peak else cpu_seconds(done.path) / rate if self.goal == "cores" else None
        later = None if done.later_rate is None else done.later_rate.per_second
        return RunResult(rate, self.now() - began, tuple(str(event["digest"]) for event in batches), need, later)

    def rows(
        self, settings: Settings, folder: Path, longest_s: float | None, *, other_seed: bool = False
    ) -> list[Epoch]:
        """All epochs of a run that is not timed; with other random numbers where asked. Raises as `run` does."""
        done = self._run(settings, folder, ("b", 0), longest_s, digest_all=True, other_seed=other_seed)
        epochs = epochs_of(done.events("epoch_digest"), settings.site)
        return [] if settings.keeps_rows and len(epochs) < 2 else epochs  # a first one is no proof for kept rows

    def _run(
        self, settings: Settings, folder: Path, name: tuple[Side, int], longest_s: float | None, **options: Any
    ) -> Measured:
        """A run with the settings, all of which were applied."""
        side, number = name
        remove(folder / f"{side}{number}")
        folder.mkdir(parents=True, exist_ok=True)
        override = settings.override()
        every_s = EVERY_S if self.goal == "cores" else HOST_INTERVAL_S
        probe = changed_probe(override=override, stop_after=self.stop_after, **options)
        done = run_once(folder, settings.command(self.command), side, number, probe, every_s, longest_s)
        _check_applied(done, override)
        return done

    def _record(self, settings: Settings, path: Path, longest_s: float | None) -> None:
        remove(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        override = settings.override()
        seconds = None if self.stop_after else self.record_s
        steps = LEAST_RUN if seconds else self.stop_after
        probe = ProbeOptions(override=override, stop_after=steps and RECORDED * steps, stop_after_s=seconds)
        trial = Trial(path, settings.command(self.command), probe, {"override": override}, longest_s=longest_s)
        try:
            ended = run_trial(trial, processes=steps is not None)
        except KeyboardInterrupt:
            remove(path)  # of a script that ends well then it would look complete
            raise
        except WorkloadError as error:
            remove(path)  # a part of the training, which the next call would take for it
            hint = "end each run earlier with --steps, or give it more time with --budget"
            raise WorkloadError(f"the command {error.message}", hint) from error
        if ended.failure:
            raise trial.failed(f"the command failed in run `{path}`: {ended.failure}")
        reason = ended.run.manifest.reason_facts or {}
        if reason.get("code") == "process_alive":
            why = f"the command ended, but process {reason['pid']} of it runs on in the background"
            raise WorkloadError(why, "end it, and let the command wait for its processes (msrun: --join=True)")


def cpu_seconds(path: Path) -> float:
    """Cores that the job kept busy in its steady steps. Raises MeasureError where none of them was sampled."""
    with signals_held(), Engine.open(load(path)) as engine:
        rows = [row for row in engine.rows("host/account") if row["phase"] == "steady"]
    mine = [row["cores"] or 0.0 for row in rows if row["part"] not in OTHERS and row["rank"] == rows[0]["rank"]]
    if not mine or not sum(mine):
        raise MeasureError(f"no CPU time was seen in the steady steps of run `{path}`", "let the script train longer")
    return sum(mine)


def _check_applied(done: Measured, override: Mapping[str, Any] | None) -> None:
    """Raises MeasureError for a run whose settings were not all applied, or whose cache kept nothing."""
    why = kept_nothing(done)
    if why:
        raise MeasureError(why)
    applied = {event["node"] for event in done.events("override")}
    if override is not None and len(applied) < len(override["changes"]):
        missed = done.events("override_missed")
        why = missed[0]["why"] if missed else "not every operator was found in the pipeline"
        raise MeasureError(f"the change was not applied in run `{done.path}`: {why}")


def _later_epoch(digests: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there are fingerprints of a second epoch, of the same iterator or of another one."""
    return any(event["epoch"] for event in digests) or len({event["number"] for event in digests}) > 1


def _is_complete(path: Path) -> bool:
    try:
        return load(path).manifest.state == "complete"
    except PipeprofError:
        return False


def _seen(path: Path, seconds: float, site: str | None, trials: Sequence[Mapping[str, Any]] = ()) -> Recording | None:
    """What a recording says of the pipeline that is read at a place, as before; else of the one that is waited for.

    `trials`: of record/trials, what was measured of changes of the same training.
    """
    with signals_held():
        from pipeprof.read.spool.finish import open_run  # noqa: PLC0415 - its libraries start threads
        from pipeprof.record import store  # noqa: PLC0415

        run = open_run(path)
        with Engine.open(run) as engine:
            pipelines = training_pipelines(engine)
            storage, account = engine.typed(StorageUse), engine.typed(RunAccount)
            process = find_contention(engine.typed(HostAccount), engine.typed(HostRoom))
        if not pipelines:
            return None
        pipeline = next((one for one in pipelines if one.site == site), pipelines[0])
        # Numbers of pipelines are each rank's own.
        rank = [(stage.rep, stage.rank) for stage in pipeline.load[:1]]
        made, made_ops = (
            [row for row in store.read(run, name).to_pylist() if (row["rep"], row["rank"]) in rank]
            for name in ("pipeline", "pipeline_op")
        )
        others_ids = {row["pipeline_id"] for row in made if row["pipeline_key"] != pipeline.key}
        epochs = {row["epoch"] for row in store.read(run, "step").to_pylist() if row["kind"] != "eval"}
    duration = run.manifest.reps[0].dur_ns
    seconds = max(seconds, (duration or 0) / 1e9)
    own_ops = {row["op_id"]: row for row in made_ops if row["pipeline_id"] not in others_ids}
    origins = {op_id: {name: row.get(name) for name in ("site", "callers")} for op_id, row in own_ops.items()}
    ops = [{**asdict(stage), **origins.get(stage.op_id, {})} for stage in pipeline.load if stage.node is not None]
    own = uses_of(pipeline, storage)
    loop = loop_of(pipeline, trials)
    advice, caches = storage_advice(pipeline, own, loop)
    lines = (f"{row['site'] or ''}\n{row.get('callers') or ''}" for row in made_ops if row["pipeline_id"] in others_ids)
    others = frozenset(filter(None, "\n".join(lines).split("\n")))
    sizes = {point.op_id: point.row_bytes for point in caches if point.row_bytes}
    leaves = frozenset(use.op_id for use in own if not use.producers and use.op_type not in (SOURCE, *STAGES))
    changeable = frozenset(row["op_id"] for row in ops)
    nodes = numa_nodes() if shutil.which("taskset") else []
    recorded = Recorded(
        caches,
        sizes,
        nodes,
        leaves,
        changeable,
        _set_together([row for row in ops if row.get("op_type") not in STAGES]),
    )
    outside = judge_run(account)
    small = next(filter(None, (small_files(one, pipeline.load, own) for one in advice)), None)
    ended = run.manifest.options.get("stopped_after")
    return Recording(
        loop, ops, pipeline.site, seconds, others, recorded, outside, len(epochs), process, small,
        ended, waits_elsewhere=_wait_share(pipelines[0]) > max(_wait_share(pipeline), MODERATE_WAIT),
    )  # fmt: skip


def _wait_share(pipeline: Pipeline) -> float:
    return next((stage.wait_share or 0.0 for stage in pipeline.load), 0.0)


def _set_together(ops: Sequence[Mapping[str, Any]]) -> Mapping[tuple[int, str], frozenset[int]]:
    """Which operators one argument sets; none are known without libcst."""
    try:
        from pipeprof.experiment.tune.arguments import set_together  # noqa: PLC0415 - an extra
    except ImportError:
        return {}
    return set_together(ops)


def numa_nodes(root: Path = Path("/sys/devices/system/node")) -> list[tuple[str, int]]:
    """The cores of each NUMA node that this process may use, as ranges, and how many they are; [] where not known."""
    allowed = os.sched_getaffinity(0)
    nodes = []
    for path in sorted(root.glob("node[0-9]*/cpulist")):
        cores = [core for core in _cores(path.read_text(encoding="ascii").strip()) if core in allowed]
        if cores:
            nodes.append((",".join(map(str, cores)), len(cores)))
    return nodes


def _cores(text: str) -> list[int]:
    """The numbers in `0-3,8`."""
    parts = [part.partition("-") for part in text.split(",") if part]
    return [core for first, _, last in parts for core in range(int(first), int(last or first) + 1)]


def environment() -> Mapping[str, str]:
    """The variables of the training."""
    return os.environ
