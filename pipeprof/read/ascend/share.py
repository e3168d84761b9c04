"""One rank's files, capture by capture, to its tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.read.ascend.cluster import add_cluster
from pipeprof.read.ascend.out import Out
from pipeprof.read.ascend.rank import RankFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeprof.errors import SourceError
    from pipeprof.read.tables.share import Outcome, Share
    from pipeprof.record.run import Run


def read_rank(share: Share, run: Run, progress: Callable[[str], None]) -> Outcome:
    """Read one rank into the run's folder. Raises RunError when it cannot be written; leaves no unfinished file."""
    out = Out(run, share.rank, share.zeros, progress)
    damage: list[SourceError] = []
    facts: dict[str, dict[str, Any]] = {"points": {}, "config": {}}
    with out:
        for number, files in enumerate(share.captures):
            if number:
                out.next_capture()
            read = RankFiles({kind: [Path(path) for path in paths] for kind, paths in files.items()}, out)
            read.read()
            damage += read.damage
            facts = {"points": read.points | facts["points"], "config": read.config | facts["config"]}
        add_cluster(share.rows, out)
    if out.steps.more:
        out.notes.add("steps", "there are too many steps: what belongs to the later ones has no step")
    return out.outcome(damage, steps=out.sources or out.steps.source, facts=facts)
