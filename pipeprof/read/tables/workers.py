"""Several ranks or files at once, here or on a cluster. What is written does not depend on how many there are.

What was read of a file when others must be looked at before its tables can be written waits, in a process that shares
the work in a file, since another process may go on with it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pipeprof import cluster, processes
from pipeprof.errors import RunError, UsageError
from pipeprof.read.tables.share import folder_alone
from pipeprof.record.store import not_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipeprof.read.tables.share import Outcome, Share
    from pipeprof.record.run import Run


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
