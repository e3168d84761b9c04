"""A whole import of a source that has one or more files for each rank: all that is not special about its format.

A reader gives `read_file(path, out)` and the time at which a file begins; several ranks are read at once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.tables.share import Damage, RankTables, Share, count_ranks, decide, of_ranks
from pipeprof.read.tables.workers import read_shares
from pipeprof.record.run import Rank, Rep
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.read.tables.share import Outcome
    from pipeprof.record.run import Run

CLOCK = "file"
NAMED_RANK = re.compile(r"rank[_=-]?([0-9]{1,6})")
_RANK = re.compile(NAMED_RANK.pattern + r"|_([0-9]{1,6})\.")


def add_files(
    reader: str, paths: Sequence[Path], run: Run, progress: Callable[[str], None],
    begins: Callable[[Path], int | None], missing: Mapping[str, str],
) -> None:  # fmt: skip
    """Read files into repetition 0 of a run and fill in its manifest, which is not saved.

    `reader` is the module with `read_rank`; `begins` the first time in a file, ns; `missing` says why a table may be
    absent. Raises SourceError when nothing usable is in any file.
    """
    starts = [_first(path, begins) for path in paths]
    zero = min((start for start in starts if start is not None), default=0)
    shares = [
        Share(reader, rank, [{"file": [str(path.resolve()) for path in mine]}], {CLOCK: zero})
        for rank, mine in sorted(by_rank(paths).items())
    ]
    outcomes = read_shares(shares, run, progress)
    damage = of_ranks(outcomes)
    count_ranks(run.manifest, outcomes)
    if not run.manifest.tables:
        raise (damage or [Damage(f"nothing to import: {format_count(len(paths), 'file')} without a row")])[0].error()
    ranks = [Rank(rank=one.rank, pid=0, host="", zero_realtime_ns=zero, zero_monotonic_ns=0) for one in outcomes]
    lasts = [last for one in outcomes for last in one.last.values()]
    run.manifest.reps = [
        Rep(rep=0, zero_realtime_ns=zero, zero_monotonic_ns=0, dur_ns=max(lasts, default=0), ranks=ranks)
    ]
    decide(run.manifest, damage, missing)


def read_files(
    share: Share, run: Run, progress: Callable[[str], None], read_file: Callable[[Path, RankTables], None]
) -> Outcome:
    """Read the files of one rank; what a damaged one gave until its damage is kept."""
    damage = []
    with RankTables(run, share.rank, share.zeros, progress) as out:
        for path in share.paths():
            progress(f"rank {share.rank}: {path.name}")
            try:
                read_file(path, out)
            except SourceError as error:
                damage.append(error)
    return out.outcome(damage)


def by_rank(paths: Sequence[Path]) -> dict[int, list[Path]]:
    """Files by the rank in their names or in those of their folders; those without one are ranks of their own."""
    named = {path: [one or other for one, other in _RANK.findall("/".join(path.parts[-2:]))] for path in paths}
    ranks: dict[int, list[Path]] = defaultdict(list)
    for path in sorted(paths):
        if named[path]:
            ranks[int(named[path][-1])].append(path)
    free = (number for number in count() if number not in ranks)
    for path, rank in zip([path for path in sorted(paths) if not named[path]], free):  # noqa: B905 - the ranks go on
        ranks[rank].append(path)
    return ranks


def _first(path: Path, begins: Callable[[Path], int | None]) -> int | None:
    try:
        return begins(path)
    except SourceError:  # reading it will say so
        return None
