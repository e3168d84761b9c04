"""A bisection on disk: `session.json` is whole at every moment.

A repetition is entered before it starts and confirmed when it is over, so that after a kill at any moment what is
complete is known.
"""

from __future__ import annotations

import datetime as dt
import shutil
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pipeprof.errors import MeasureError, RunError
from pipeprof.experiment.runs import write_json
from pipeprof.experiment.session import SESSION
from pipeprof.record.document import read_document
from pipeprof.record.run import new_run_id
from pipeprof.verdict.gate.fingerprint import differences

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA_VERSION = 1


class Commit(msgspec.Struct, kw_only=True):
    """A commit by its full hash; `broken`: its command failed, so it cannot be measured."""

    revision: str
    subject: str
    broken: bool = False


class Run(msgspec.Struct, kw_only=True):
    """One repetition: its folder's name, the commit's place from 0, the metric's value, seconds with its checkout."""

    name: str
    commit: int
    state: Literal["running", "discarded", "counted", "failed"] = "running"
    value: float | None = None
    seconds: float | None = None


class Bisection(msgspec.Struct, kw_only=True):
    """What `session.json` holds. `key` is the hash of what is asked; `commits` from the good one to the bad one."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["bisect"] = "bisect"
    session_id: str
    key: str
    metric: str
    command: list[str]
    commits: list[Commit]
    started_at: str
    starts: int = 0
    fingerprint: dict[str, Any] = {}
    job: str | None = None
    runs: list[Run] = []

    def counted(self) -> list[tuple[int, float]]:
        """(commit, value) of the repetitions that count, in order."""
        return [(run.commit, run.value) for run in self.runs if run.state == "counted" and run.value is not None]

    def counts(self) -> list[int]:
        """Counted repetitions of each commit."""
        places = [commit for commit, _ in self.counted()]
        return [places.count(at) for at in range(len(self.commits))]

    def measurable(self) -> list[int]:
        """Places of the commits whose command does not fail."""
        return [at for at, commit in enumerate(self.commits) if not commit.broken]

    def usual_seconds(self) -> dict[int, float]:
        """What a repetition takes, of the commits that have one that counts: its checkout and what it builds, too."""
        found: dict[int, list[float]] = {}
        for run in self.runs:
            if run.state == "counted" and run.seconds:
                found.setdefault(run.commit, []).append(run.seconds)
        return {commit: median(seconds) for commit, seconds in found.items()}

    @property
    def spent(self) -> float:
        """Seconds that all repetitions took, discarded and failed ones too."""
        return sum(run.seconds or 0.0 for run in self.runs)

    def enter(self, commit: int) -> Run:
        """A new repetition, about to start: `run-000`, `run-001`, ..."""
        run = Run(name=f"run-{len(self.runs):03d}", commit=commit)
        self.runs.append(run)
        return run


def new_bisection(key: str, metric: str, command: tuple[str, ...], commits: list[Commit]) -> Bisection:
    """One without repetitions."""
    return Bisection(
        session_id=new_run_id(), key=key, metric=metric, command=list(command), commits=commits,
        started_at=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
    )  # fmt: skip


def open_bisection(folder: Path, fresh: Bisection, conditions: tuple[Mapping[str, Any], str | None]) -> Bisection:
    """The bisection of a folder, or `fresh`, saved.

    Raises RunError for a damaged one and one that asks something else, MeasureError when it was begun on another
    machine or in another job.
    """
    known = _load(folder)
    if known is None:
        fresh.fingerprint, fresh.job = dict(conditions[0]), conditions[1]
        save(folder, fresh)
        return fresh
    if known.key != fresh.key:
        raise RunError(f"`{folder}` holds a bisection of something else", "give another folder with -o")
    found = [entry["name"] for entry in differences(known.fingerprint, conditions[0])]
    if known.runs and (found or known.job != conditions[1]):
        why = f"under different conditions: {', '.join(found)}" if found else "in another job, or before the last start"
        raise MeasureError(
            f"the bisection in `{folder}` was begun {why}",
            "times of two machines or jobs cannot be compared; start over in another folder with -o",
        )
    return known


def throw_away_incomplete(folder: Path, bisection: Bisection) -> None:
    """Remove repetitions that were not confirmed, with their folders: the process was killed meanwhile."""
    for run in [run for run in bisection.runs if run.state == "running"]:
        shutil.rmtree(folder / run.name, ignore_errors=True)
        (folder / f"{run.name}.log").unlink(missing_ok=True)
        bisection.runs.remove(run)


def save(folder: Path, bisection: Bisection) -> None:
    """Write `session.json`, whole. Raises MeasureError when it cannot be written."""
    write_json(folder / SESSION, msgspec.to_builtins(bisection))


def _load(folder: Path) -> Bisection | None:
    path = folder / SESSION
    if not path.is_file():
        return None
    return read_document(path, Bisection, SCHEMA_VERSION, "bisection", "start over in another folder with -o")
