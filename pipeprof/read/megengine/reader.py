"""A whole import: static-graph profiles, timelines, logs of load_and_run, and memory files, into a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.megengine import files
from pipeprof.read.megengine.files import by_pid, write
from pipeprof.read.megengine.load_and_run import read_log_steps
from pipeprof.read.megengine.memory_files import add_beside
from pipeprof.read.megengine.profile import read_profile
from pipeprof.read.megengine.profile_rows import Tables
from pipeprof.read.megengine.timeline import add_timelines
from pipeprof.read.tables.outcome import Damage, count, decide, leave_out, say_problems
from pipeprof.read.tables.writer import TableWriter
from pipeprof.record.run import Rank, Rep
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

KIND = "megengine"
WHAT = (
    "MegEngine profiles (static-graph JSON, chrome timelines, memory_flow.svg, StaticMemoryInfo.json) and logs of "
    "load_and_run"
)

_MISSING = {
    "step": "no step() of MegEngine's profiler is in a timeline; a static-graph profile has one iteration",
    "op": "no file with operators",
    "queue": "MegEngine's files have no dataset queues",
    "op_service": "MegEngine's files have no dataset operators",
    "memory": "no timeline with memory samples (sample_rate)",
    "cpu": "MegEngine's files have no CPU samples",
}


def recognise(path: Path) -> bool:
    """Whether a file is one of these, by its content. Raises SourceError when it cannot be read."""
    return files.identify(path) is not None


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """Read the files into a run and fill in its manifest, which is not saved.

    Each static-graph profile is a repetition (such a file holds one iteration); without one, each timeline is a rank;
    without either, each log of load_and_run is a repetition. Memory files go beside the first of them. Raises
    SourceError when nothing usable is in any file.
    """
    recognised = [(files.identify(path), path) for path in paths]
    profiles = [path for kind, path in recognised if kind == files.PROFILE]
    timelines = sorted((path for kind, path in recognised if kind == files.TIMELINE), key=by_pid)
    logs = [path for kind, path in recognised if kind == files.LOG]
    others = [(kind, path) for kind, path in recognised if kind in (files.MEMORY_FLOW, files.STATIC_MEMORY)]
    damage = [
        SourceError(f"`{path}` is a footprint dump: it has no times", "record them with `load_and_run --profile FILE`")
        for kind, path in recognised
        if kind == files.FOOTPRINT
    ]
    if profiles:
        _each_a_repetition(profiles, run, progress, damage)
        leave_out(run.manifest, timelines, "a static-graph profile was read; import the timelines by themselves")
    elif timelines:
        add_timelines(timelines, run, progress, damage)
    else:
        _each_log_a_repetition(logs, run, progress, damage)
    if profiles or timelines:
        leave_out(run.manifest, logs, "a profile was read; import the logs by themselves")
    add_beside(others, run, progress, damage)
    if not run.manifest.tables:
        raise damage[0] if damage else _empty(paths, timelines)
    run.manifest.reps = run.manifest.reps or [_rep(0)]
    run.manifest.options["kinds"] = sorted({f"MegEngine {kind}" for kind, _ in recognised if kind})
    decide(run.manifest, [Damage(error.message, error.hint) for error in damage], _MISSING)


def _each_a_repetition(
    profiles: Sequence[Path], run: Run, progress: Callable[[str], None], damage: list[SourceError]
) -> None:
    for path in profiles:
        rep = len(run.manifest.reps)
        progress(f"reading {path.name}")
        try:
            profile = read_profile(path)
        except SourceError as error:
            damage.append(error)
            continue
        if profile.damage is not None:
            damage.append(profile.damage)
        tables = Tables(profile)
        progress(f"writing the tables of {path.name}")
        for table, pieces in (("op", tables.op()), ("op_info", tables.op_info()), ("allocation", tables.allocation())):
            with TableWriter(run, table, rep, 0) as out:
                for piece in pieces:
                    out.add(piece)
            count(run.manifest, table, out.rows)
        if profile.compat:
            run.manifest.warn("time_unit", _UNIT, rep=rep)
        say_problems(run.manifest, {**profile.problems, **tables.problems}, rep, 0)
        run.manifest.options["profile"] = "static graph; times in seconds"
        run.manifest.reps.append(_rep(rep))


_UNIT = (
    "this profile is of MegEngine 1.0 to 1.2, which counted in milliseconds; its times are taken as seconds here, "
    "as profile_analyze takes them"
)


def _each_log_a_repetition(
    logs: Sequence[Path], run: Run, progress: Callable[[str], None], damage: list[SourceError]
) -> None:
    checks: list[dict[str, object]] = []
    for path in logs:
        rep = len(run.manifest.reps)
        progress(f"reading {path.name}")
        try:
            outcome, log_checks = read_log_steps(path)
        except SourceError as error:
            damage.append(error)
            continue
        write(outcome, run, rep, 0, damage)
        checks += [{"file": path.name, "rep": rep, **check} for check in log_checks]
        run.manifest.reps.append(_rep(rep, outcome.end_ns, files.LOG))
    if checks:
        run.manifest.options["load_and_run"] = checks


def _rep(number: int, end: int | None = None, evidence: str | None = None) -> Rep:
    rank = Rank(rank=0, pid=0, host="", zero_realtime_ns=0, zero_monotonic_ns=0, step_evidence=evidence)
    return Rep(rep=number, zero_realtime_ns=0, zero_monotonic_ns=0, dur_ns=end, ranks=[rank])


def _empty(paths: Sequence[Path], timelines: Sequence[Path]) -> SourceError:
    if timelines:
        return SourceError(
            f"`{timelines[0]}` is a chrome timeline without events that can be kept, not a static-graph profile",
            "for operator tables record one with `load_and_run --profile FILE`; a timeline opens in ui.perfetto.dev",
        )
    return SourceError(
        f"nothing to import: {format_count(len(paths), 'file')} without a time", "give the profiler's files"
    )
