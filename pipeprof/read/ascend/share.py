"""What is to be read of one rank, and what came of it: both can be sent to another process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.read.ascend.cluster import add_cluster
from pipeprof.read.ascend.files import one_line
from pipeprof.read.ascend.out import Out
from pipeprof.read.ascend.rank import RankFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeprof.record.run import Run


class Share(msgspec.Struct):
    """One rank's files by kind, the zeros of its clocks, and its rows in files about all ranks."""

    rank: int
    files: dict[str, list[str]] = {}
    zeros: dict[str, int] = {}
    rows: dict[str, list[tuple[str, int | None, dict[str, Any]]]] = {}

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(_size(path) for paths in self.files.values() for path in paths)


class Outcome(msgspec.Struct):
    """What was read of one rank: rows by table, what was odd, damage (message, hint), and facts for the manifest."""

    rank: int
    counts: dict[str, int] = {}
    notes: list[tuple[str, str]] = []
    damage: list[tuple[str, str]] = []
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    steps: str | None = None
    points: dict[str, Any] = {}
    config: dict[str, Any] = {}


def read_share(share: Share, run: Run, progress: Callable[[str], None]) -> Outcome:
    """Read one rank into the run's folder. Raises RunError when it cannot be written; leaves no unfinished file."""
    out = Out(run, share.rank, share.zeros, progress)
    read = RankFiles({kind: [Path(path) for path in paths] for kind, paths in share.files.items()}, out)
    try:
        read.read()
        add_cluster(share.rows, out)
        counts = out.close()
    except BaseException:
        out.abort()
        raise
    if out.steps.more:
        out.notes.add("steps", "there are more steps than can be told apart: what belongs to the later ones has none")
    return Outcome(
        share.rank, counts, [(code, one_line(message)) for code, message in out.notes.all()],
        [(one_line(error.message), error.hint) for error in read.damage], out.first, out.last, out.steps.source,
        read.points, read.config,
    )  # fmt: skip


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
