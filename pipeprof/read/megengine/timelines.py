"""The timelines of several processes, each a rank, into a run: looked through, then read, each in any process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pipeprof import processes
from pipeprof.errors import SourceError
from pipeprof.read.megengine.kinds import by_pid
from pipeprof.read.megengine.survey import MARK, Survey, by_process, survey
from pipeprof.read.megengine.timeline import read_timeline
from pipeprof.read.tables.operators import FULL
from pipeprof.read.tables.outcome import count_ranks, leave_out, left_out
from pipeprof.read.tables.share import Outcome, folder_alone, size_of
from pipeprof.read.tables.streamed import Streamed
from pipeprof.read.tables.workers import as_nodes_see, check_folder, spread
from pipeprof.record.run import Rank, Rep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

_CLOCK = "file"


class _Timeline(NamedTuple):
    run: Path
    rank: int
    path: Path
    survey: Survey
    by_ns: int  # from its own zero to the run's


def add_timelines(paths: Sequence[Path], run: Run, progress: Callable[[str], None], damage: list[SourceError]) -> None:
    """Read them into repetition 0 of a run. One that cannot be read is damage, and its rank is not in the run."""
    sizes, names = [size_of(path) for path in paths], [path.name for path in paths]
    surveys = spread(_survey, [as_nodes_see(path) for path in paths], sizes, names, progress)
    damage += [surveyed for surveyed in surveys if isinstance(surveyed, SourceError)]
    seen = _processes(
        [(path, each) for path, each in zip(paths, surveys, strict=True) if not isinstance(each, SourceError)], run
    )
    first = min((surveyed.zero_ns for _, surveyed in seen if surveyed.zero_ns is not None), default=0)
    parts = [
        _Timeline(run.path.resolve(), rank, as_nodes_see(path), surveyed, (surveyed.zero_ns or first) - first)
        for rank, (path, surveyed) in enumerate(seen)
    ]
    outcomes = spread(
        _read, parts, [size_of(part.path) for part in parts], [part.path.name for part in parts], progress
    )
    count_ranks(run.manifest, outcomes)
    damage += [SourceError(message, hint) for one in outcomes for message, hint in one.damage]
    ranks = [_entry(part, one) for part, one in zip(parts, outcomes, strict=True) if one.last]
    if ranks:
        end = max(0, *(time for one in outcomes for time in one.last.values()))
        run.manifest.reps = [Rep(rep=0, zero_realtime_ns=first, zero_monotonic_ns=0, dur_ns=end, ranks=ranks)]


def _processes(surveys: Sequence[tuple[Path, list[Survey]]], run: Run) -> list[tuple[Path, Survey]]:
    """The processes, each once: what is in a merged file beside the files of its processes is left out."""
    own = set().union(*(each[0].pids for _, each in surveys if len(each) == 1))
    seen = []
    for path, each in surveys:
        new = [(path, one) for one in each if one.pid is None or one.pid not in own]
        if len(new) < len(each):
            shown = "" if not new else "in part "
            leave_out(run.manifest, [path], f"{shown}its processes have timelines of their own")
        seen += new
    return seen


def _survey(path: Path) -> list[Survey] | SourceError:
    processes.say(f"looking through {path.name}")
    try:
        return by_process(path, survey(path))
    except SourceError as error:
        return error


def _read(part: _Timeline) -> Outcome:
    """What came of it; `last` is empty when it could not be read."""
    check_folder(part.run)
    processes.say(f"reading {part.path.name}")
    try:
        with Streamed(folder_alone(part.run), part.rank, part.by_ns) as tables:
            outcome = read_timeline(part.path, part.survey, tables)
    except SourceError as error:
        return Outcome(part.rank, damage=[(error.message, error.hint)])
    full = [("operators", FULL)] if tables.operators.full else []
    cut = [] if outcome.damage is None else [(outcome.damage.message, outcome.damage.hint)]
    return Outcome(
        part.rank, tables.counts, left_out(outcome.problems) + full, cut,
        last={_CLOCK: outcome.end_ns + part.by_ns}, steps=MARK if "step" in tables.counts else None,
    )  # fmt: skip


def _entry(part: _Timeline, outcome: Outcome) -> Rank:
    pid, zero = part.survey.pid, part.survey.zero_ns
    return Rank(
        rank=part.rank, pid=pid if isinstance(pid, int) else by_pid(part.path)[0], host="", zero_realtime_ns=zero or 0,
        zero_monotonic_ns=0, step_evidence=outcome.steps,
    )  # fmt: skip
