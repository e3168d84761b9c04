"""What the manifest says of the files that were read: rows, what was left out, and what was damaged."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeprof.record import store
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeprof.errors import SourceError
    from pipeprof.read.megengine.outcome import Outcome
    from pipeprof.record.run import Manifest, Run

_PID = re.compile(r"([0-9]{1,9})\.")


def by_pid(path: Path) -> tuple[int, str]:
    """Files in the order of the process numbers that their names begin with; 0 without one."""
    found = _PID.match(path.name)
    return (int(found[1]) if found else 0, str(path))


def write(outcome: Outcome, run: Run, rep: int, rank: int, damage: list[SourceError], part: int = 0) -> None:
    """Write an outcome's rows and tell of it."""
    for table, rows in outcome.rows.items():
        store.write(run, table, rep, rank, rows, part)
    tell(outcome, run, rep, rank, damage)


def tell(outcome: Outcome, run: Run, rep: int, rank: int, damage: list[SourceError]) -> None:
    """Count an outcome's rows, and say what was wrong with it."""
    for table, rows in outcome.kept.counts.items():
        count(run.manifest, table, rows)
    say(run.manifest, outcome.problems, rep, rank)
    if outcome.damage is not None:
        damage.append(outcome.damage)


def count(manifest: Manifest, table: str, rows: int) -> None:
    """Rows that were written."""
    if rows:
        manifest.tables[table] = manifest.tables.get(table, 0) + rows


def say(manifest: Manifest, problems: dict[str, int], rep: int, rank: int) -> None:
    """What was left out of a file."""
    for text, number in problems.items():
        manifest.warn("left_out", f"left out {format_count(number, 'time')}: {text}", rep=rep, rank=rank)


def leave_out(manifest: Manifest, paths: Sequence[Path], why: str) -> None:
    """Files that were left out."""
    for path in paths:
        manifest.warn("left_out", f"`{path.name}` was left out: {why}")
