"""A whole import of a source that has one or more files for each rank: all that is not special about its format.

A reader gives `read_file(path, out)` and the time at which a file begins; several ranks are read at once.

Several ranks or files at once, here or on a cluster. What is written does not depend on how many there are.

What was read of a file when others must be looked at before its tables can be written waits, in a process that shares
the work in a file, since another process may go on with it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from pipeprof import cluster, processes
from pipeprof.errors import RunError, SourceError, UsageError
from pipeprof.read.tables.share import Damage, Outcome, RankTables, Share, decide, folder_alone, take_in
from pipeprof.record.run import Rank, Rep, Run
from pipeprof.record.store import not_written
from pipeprof.units import format_count

Part = TypeVar("Part")
Answer = TypeVar("Answer")

VARIABLE = "PIPEPROF_IMPORT_JOBS"
WORTH_BYTES = 32 << 20  # less is read sooner than processes are started


def read_shares(shares: Sequence[Share], run: Run, progress: Callable[[str], None]) -> list[Outcome]:
    """Outcomes in the order of the shares. Raises as `spread`, and RunError when the run cannot be written."""
    folder = run.path.resolve()
    parts = [(folder, share) for share in shares]
    return spread(_read, parts, [share.size for share in shares], [f"rank {share.rank}" for share in shares], progress)


def spread(
    function: Callable[[Part], Answer],
    parts: Sequence[Part],
    sizes: Sequence[int],
    names: Sequence[str],
    progress: Callable[[str], None],
) -> list[Answer]:
    """A function's answers in the order of the parts, each so many bytes to read. It may say what it does: `say`.

    Raises RunError when a process is ended from outside, UsageError for a number of processes that is none. No process
    is left behind.
    """
    wanted = _wanted()
    count = min(wanted, len(parts)) if sum(sizes) >= WORTH_BYTES else 1
    order = sorted(range(len(parts)), key=lambda number: -sizes[number])  # the biggest first
    done: dict[int, Answer] = {}
    shared = count > 1 or cluster.is_connected()

    def so_far(text: str) -> None:
        progress(f"{text} ({len(done)} of {len(parts)} done)" if shared else text)

    try:
        for number, answer in cluster.each(function, [parts[at] for at in order], count=count, progress=so_far):
            done[order[number]] = answer
            if shared:
                progress(f"{len(done)} of {len(parts)} done")
    except processes.ProcessEndedError as error:
        raise RunError(
            f"the process that read {names[order[error.part]]} was ended (status {error.status})",
            f"is there enough memory? {VARIABLE}=1 reads one after the other",
        ) from error
    return [done[number] for number in range(len(parts))]


def as_nodes_see(path: Path) -> Path:
    """The path as it was given; on a cluster the whole one, since its processes work in other folders."""
    return path.resolve() if cluster.is_connected() else path


def check_folder(folder: Path) -> None:
    """Raises RunError where the run's folder is not seen."""
    if not folder.is_dir():
        raise RunError(
            f"a node of the cluster does not see `{folder}`", "import from and into a folder that all nodes share"
        )


def _read(part: tuple[Path, Share]) -> Outcome:
    folder, share = part
    check_folder(folder)
    outcome: Outcome = import_module(share.reader).read_rank(share, folder_alone(folder), processes.say)
    return outcome


def _wanted() -> int:
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return min(processes.MOST, processes.cores())
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise UsageError(f"`{VARIABLE}` is `{text[:40]}`, expected a number from 1 to 256", f"unset {VARIABLE}")
    return int(text)


@contextlib.contextmanager
def halfway(run: Run) -> Iterator[Path]:
    """A folder for what waits, which is gone afterwards."""
    where = run.path.resolve()
    with tempfile.TemporaryDirectory(prefix=".half-", suffix=".tmp", dir=where, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


class Waiting:
    """Content that waits for the second pass. Raises RunError when it cannot be written."""

    def __init__(self, content: Any, folder: Path) -> None:
        self._content = content
        self._path: Path | None = None
        if processes.is_one_of_several():
            try:
                with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                    pickle.dump(content, file, pickle.HIGHEST_PROTOCOL)
            except OSError as error:
                raise not_written(folder, error) from error
            self._content, self._path = None, Path(file.name)

    def take(self) -> Any:
        """The content."""
        if self._path is None:
            return self._content
        with self._path.open("rb") as file:
            return pickle.load(file)  # noqa: S301 - this import wrote it


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
    nothing = Damage(f"nothing to import: {format_count(len(paths), 'file')} without a row")
    damage = take_in(run.manifest, outcomes, nothing)
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
