"""The timelines of several processes, each a rank, into a run: looked through, then read, each in any process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pipeprof import processes
from pipeprof.errors import SourceError
from pipeprof.read.megengine.kinds import by_pid
from pipeprof.read.megengine.survey import MARK, Survey, survey
from pipeprof.read.megengine.timeline import read_timeline
from pipeprof.read.tables.operators import FULL
from pipeprof.read.tables.outcome import count_ranks, left_out
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
    seen = [(path, surveyed) for path, surveyed in zip(paths, surveys, strict=True) if isinstance(surveyed, Survey)]
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


def _survey(path: Path) -> Survey | SourceError:
    processes.say(f"looking through {path.name}")
    try:
        return survey(path)
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
    return Rank(
        rank=part.rank, pid=by_pid(part.path)[0], host="", zero_realtime_ns=part.survey.zero_ns or 0,
        zero_monotonic_ns=0, step_evidence=outcome.steps,
    )  # fmt: skip
