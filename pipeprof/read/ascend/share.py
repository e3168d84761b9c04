"""What is to be read of one rank, and what came of it: both can be sent to another process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.read.ascend.cluster import add_cluster
from pipeprof.read.ascend.out import Out
from pipeprof.read.ascend.rank import RankFiles
from pipeprof.read.source.content import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeprof.errors import SourceError
    from pipeprof.record.run import Run


class Share(msgspec.Struct):
    """One rank's captures in order of time, each as files by kind; the zeros of its clocks; its rows in other files."""

    rank: int
    captures: list[dict[str, list[str]]] = []
    zeros: dict[str, int] = {}
    rows: dict[str, list[tuple[str, int | None, dict[str, Any]]]] = {}

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(_size(path) for files in self.captures for paths in files.values() for path in paths)


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
    damage: list[SourceError] = []
    points: dict[str, Any] = {}
    config: dict[str, Any] = {}
    with out:
        for number, files in enumerate(share.captures):
            if number:
                out.next_capture()
            read = RankFiles({kind: [Path(path) for path in paths] for kind, paths in files.items()}, out)
            read.read()
            damage += read.damage
            points, config = read.points | points, read.config | config
        add_cluster(share.rows, out)
    if out.steps.more:
        out.notes.add("steps", "there are too many steps: what belongs to the later ones has no step")
    return Outcome(
        share.rank, out.counts, [(code, one_line(message)) for code, message in out.notes.all()],
        [(one_line(error.message), error.hint) for error in damage], out.first, out.last,
        out.sources or out.steps.source, points, config,
    )  # fmt: skip


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
