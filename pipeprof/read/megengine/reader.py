"""A whole import: static-graph profiles, timelines, logs of load_and_run, and memory files, into a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.kineto.writing import TableWriter
from pipeprof.read.megengine import kinds
from pipeprof.read.megengine.log_steps import read_log_steps
from pipeprof.read.megengine.memory_flow import read_memory_flow
from pipeprof.read.megengine.profile import read_profile
from pipeprof.read.megengine.profile_rows import Tables
from pipeprof.read.megengine.static_memory import read_static_memory
from pipeprof.read.megengine.steps import MARK
from pipeprof.read.megengine.timeline import read_timeline
from pipeprof.record import store
from pipeprof.record.run import NotMeasured, Rank, Rep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.read.megengine.outcome import Outcome
    from pipeprof.record.run import Manifest, Run

KIND = "megengine"
WHAT = (
    "MegEngine profiles (static-graph JSON, chrome timelines, memory_flow.svg, StaticMemoryInfo.json) and logs of "
    "load_and_run"
)
_PID = re.compile(r"([0-9]{1,9})\.")


def recognise(path: Path) -> bool:
    """Whether a file is one of these, by its content. Raises SourceError when it cannot be read."""
    return kinds.identify(path) is not None


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """Read the files into a run and fill in its manifest, which is not saved.

    Each static-graph profile is a repetition (such a file holds one iteration); without one, each timeline is a rank;
    without either, each log of load_and_run is a repetition. Memory files go beside the first of them. Raises
    SourceError when nothing usable is in any file.
    """
    found = [(kinds.identify(path), path) for path in paths]
    profiles = [path for kind, path in found if kind == kinds.PROFILE]
    timelines = sorted((path for kind, path in found if kind == kinds.TIMELINE), key=_by_pid)
    logs = [path for kind, path in found if kind == kinds.LOG]
    others = [(kind, path) for kind, path in found if kind in (kinds.MEMORY_FLOW, kinds.STATIC_MEMORY)]
    damage: list[SourceError] = [_no_times(path) for kind, path in found if kind == kinds.FOOTPRINT]
    if profiles:
        _each_a_repetition(profiles, run, progress, damage)
        _leave_out(run.manifest, timelines, "a static-graph profile was read; import the timelines by themselves")
    elif timelines:
        _each_a_rank(timelines, run, progress, damage)
    else:
        _each_log_a_repetition(logs, run, progress, damage)
    if profiles or timelines:
        _leave_out(run.manifest, logs, "a profile was read; import the logs by themselves")
    _beside(others, run, progress, damage)
    if not run.manifest.tables:
        raise damage[0] if damage else _empty(paths, timelines)
    run.manifest.reps = run.manifest.reps or [Rep(rep=0, zero_realtime_ns=0, zero_monotonic_ns=0, ranks=[_rank(0)])]
    run.manifest.options["kinds"] = sorted({f"MegEngine {kind}" for kind, _ in found if kind})
    _decide(run.manifest, damage)


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
            _count(run.manifest, table, out.rows)
        if profile.compat:
            run.manifest.warn("time_unit", _UNIT, rep=rep)
        _say(run.manifest, {**profile.problems, **tables.problems}, rep, 0)
        run.manifest.options["profile"] = "static graph; times in seconds"
        run.manifest.reps.append(Rep(rep=rep, zero_realtime_ns=0, zero_monotonic_ns=0, ranks=[_rank(0)]))


_UNIT = (
    "this profile is of MegEngine 1.0 to 1.2, which counted in milliseconds; its times are taken as seconds here, "
    "as profile_analyze takes them"
)


def _each_a_rank(
    timelines: Sequence[Path], run: Run, progress: Callable[[str], None], damage: list[SourceError]
) -> None:
    outcomes = []
    for path in timelines:
        progress(f"reading {path.name}")
        try:
            outcomes.append((path, read_timeline(path)))
        except SourceError as error:
            damage.append(error)
    if not outcomes:
        return
    zeros = [outcome.zero_ns for _, outcome in outcomes if outcome.zero_ns is not None]
    first = min(zeros, default=0)
    ranks = []
    for rank, (path, outcome) in enumerate(outcomes):
        outcome.shift((outcome.zero_ns or first) - first)
        _write(outcome, run, 0, rank, damage)
        pid = _PID.match(path.name)
        ranks.append(_rank(rank, int(pid[1]) if pid else 0, outcome.zero_ns or 0))
        ranks[-1].step_evidence = MARK if outcome.rows.get("step") else None
    rep = Rep(rep=0, zero_realtime_ns=first, zero_monotonic_ns=0, ranks=ranks)
    rep.dur_ns = max((outcome.end_ns for _, outcome in outcomes), default=0)
    run.manifest.reps = [rep]


def _each_log_a_repetition(
    logs: Sequence[Path], run: Run, progress: Callable[[str], None], damage: list[SourceError]
) -> None:
    checks: list[dict[str, object]] = []
    for path in logs:
        rep = len(run.manifest.reps)
        progress(f"reading {path.name}")
        try:
            outcome, found = read_log_steps(path)
        except SourceError as error:
            damage.append(error)
            continue
        _write(outcome, run, rep, 0, damage)
        checks += [{"file": path.name, "rep": rep, **check} for check in found]
        rank = _rank(0)
        rank.step_evidence = kinds.LOG
        run.manifest.reps.append(
            Rep(rep=rep, zero_realtime_ns=0, zero_monotonic_ns=0, dur_ns=outcome.end_ns, ranks=[rank])
        )
    if checks:
        run.manifest.options["load_and_run"] = checks


def _beside(
    others: Sequence[tuple[str | None, Path]], run: Run, progress: Callable[[str], None], damage: list[SourceError]
) -> None:
    """Memory files: those of one kind go one after the other into the ranks of repetition 0."""
    ranks = {kinds.MEMORY_FLOW: 0, kinds.STATIC_MEMORY: 0}
    taken: set[int] = set()
    for kind, path in sorted(others, key=lambda item: _by_pid(item[1])):
        if kind is None:
            continue
        progress(f"reading {path.name}")
        try:
            outcome = read_memory_flow(path) if kind == kinds.MEMORY_FLOW else read_static_memory(path)
        except SourceError as error:
            damage.append(error)
            continue
        rank = ranks[kind]
        ranks[kind] += 1
        if rank in taken:
            _leave_out(run.manifest, [path], "the rank has the lifetimes of another file already")
            continue
        taken.add(rank)
        _write(outcome, run, 0, rank, damage)


def _write(outcome: Outcome, run: Run, rep: int, rank: int, damage: list[SourceError]) -> None:
    for table, rows in outcome.rows.items():
        _count(run.manifest, table, store.write(run, table, rep, rank, rows))
    _say(run.manifest, outcome.problems, rep, rank)
    if outcome.damage is not None:
        damage.append(outcome.damage)


def _count(manifest: Manifest, table: str, rows: int) -> None:
    if rows:
        manifest.tables[table] = manifest.tables.get(table, 0) + rows


def _say(manifest: Manifest, problems: dict[str, int], rep: int, rank: int) -> None:
    for text, count in problems.items():
        manifest.warn("left_out", f"{count} x {text}", rep=rep, rank=rank)


def _leave_out(manifest: Manifest, paths: Sequence[Path], why: str) -> None:
    for path in paths:
        manifest.warn("left_out", f"`{path.name}` was left out: {why}")


def _rank(rank: int, pid: int = 0, realtime: int = 0) -> Rank:
    return Rank(rank=rank, pid=pid, host="", zero_realtime_ns=realtime, zero_monotonic_ns=0)


def _by_pid(path: Path) -> tuple[int, str]:
    found = _PID.match(path.name)
    return (int(found[1]) if found else 0, str(path))


def _no_times(path: Path) -> SourceError:
    return SourceError(
        f"`{path}` is a footprint dump: it has no times", "record them with `load_and_run --profile FILE`"
    )


def _empty(paths: Sequence[Path], timelines: Sequence[Path]) -> SourceError:
    if timelines:
        return SourceError(
            f"`{timelines[0]}` is a chrome timeline without events that can be kept, not a static-graph profile",
            "for operator tables record one with `load_and_run --profile FILE`; a timeline opens in ui.perfetto.dev",
        )
    return SourceError(f"nothing to import: {len(paths)} file(s) without a time", "give the profiler's files")


def _decide(manifest: Manifest, damage: Sequence[SourceError]) -> None:
    for error in damage:
        manifest.warn("damaged_file", error.message)
    manifest.state, manifest.reason = "complete", None
    if damage:
        more = f" (and {len(damage) - 1} more)" if len(damage) > 1 else ""
        manifest.state, manifest.reason = "partial", f"a file could not be read to its end: {damage[0].message}{more}"
    why = {
        "step": "no step() of MegEngine's profiler is in a timeline; a static-graph profile has one iteration",
        "op": "no file with operators",
        "queue": "MegEngine's files have no dataset queues",
        "op_service": "MegEngine's files have no dataset operators",
        "memory": "no timeline with memory samples (sample_rate)",
        "cpu": "MegEngine's files have no CPU samples",
    }
    manifest.not_measured = [
        NotMeasured(what=table, why=text) for table, text in why.items() if table not in manifest.tables
    ]
