"""A bisection on disk."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Literal

import msgspec

from pipeprof.errors import RunError
from pipeprof.experiment.journal import Repeated, Repetition, saved
from pipeprof.record.document import Revision  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_VERSION = 1


class Commit(msgspec.Struct, kw_only=True):
    """A commit by its full hash; `broken`: its command failed, or had not the metric."""

    revision: Revision
    subject: str
    broken: bool = False


class Run(Repetition, kw_only=True):
    """One repetition, with the commit's place from 0 and the metric's value; its seconds include its checkout."""

    commit: int
    state: Literal["running", "discarded", "counted", "failed"] = "running"
    value: float | None = None


class Bisection(Repeated[Run], kw_only=True):
    """What `session.json` holds. `key` is the hash of what is asked; `commits` from the good one to the bad one."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["bisect"] = "bisect"
    key: str
    metric: str
    command: list[str]
    commits: list[Commit]
    repetitions: list[Run] = msgspec.field(default_factory=list, name="runs")

    def counted(self) -> list[tuple[int, float]]:
        """(commit, value) of the repetitions that count, in order."""
        return [(run.commit, run.value) for run in self.repetitions if run.state == "counted" and run.value is not None]

    def counts(self) -> list[int]:
        """Counted repetitions of each commit."""
        places = [commit for commit, _ in self.counted()]
        return [places.count(at) for at in range(len(self.commits))]

    def measurable(self) -> list[int]:
        """Places of the commits that are not broken."""
        return [at for at, commit in enumerate(self.commits) if not commit.broken]

    def usual_seconds(self) -> dict[int, float]:
        """What a repetition takes, of the commits that have one that counts: its checkout and what it builds, too."""
        by_commit: dict[int, list[float]] = {}
        for run in self.repetitions:
            if run.state == "counted" and run.seconds:
                by_commit.setdefault(run.commit, []).append(run.seconds)
        return {commit: median(seconds) for commit, seconds in by_commit.items()}

    def enter(self, commit: int) -> Run:
        """A new repetition, about to start: `run-000`, `run-001`, ..."""
        return self.entered(Run(name=f"run-{len(self.repetitions):03d}", commit=commit))


def open_bisection(folder: Path, fresh: Bisection) -> Bisection:
    """The bisection of a folder, or `fresh`, saved.

    Raises RunError for a damaged one and one that asks something else, MeasureError when it was begun on another
    machine or in another job.
    """
    hint = "start over in another folder with -o"
    earlier = saved(folder, Bisection, SCHEMA_VERSION, "bisection", hint)
    if earlier is None:
        fresh.begin(folder)
        return fresh
    if earlier.key != fresh.key:
        raise RunError(f"`{folder}` holds a bisection of something else", "give another folder with -o")
    if [one.revision for one in earlier.commits] != [one.revision for one in fresh.commits]:
        raise RunError(f"damaged bisection in `{folder}`: it names other commits", hint)
    if any(not 0 <= run.commit < len(earlier.commits) for run in earlier.repetitions):
        raise RunError(f"damaged bisection in `{folder}`: it has runs of no commit", hint)
    if earlier.repetitions:
        hint = f"times of two machines or jobs cannot be compared; {hint}"
        earlier.refuse_elsewhere(f"the bisection in `{folder}`", hint, in_a_job=True)
    return earlier
