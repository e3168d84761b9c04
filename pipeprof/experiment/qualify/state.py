"""What `pipeprof qualify` has measured so far, on disk: `pool.json` is whole at every moment, so it can go on."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from pipeprof.collect import fingerprint
from pipeprof.collect.probe.redact import without_secrets
from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment.arms import Workspace, tree_state
from pipeprof.experiment.journal import Journal, refuse_links, refuse_orphans, saved
from pipeprof.experiment.runs import make_folder
from pipeprof.record.document import FileName  # noqa: TC001 - msgspec reads it
from pipeprof.record.git import git_or_none
from pipeprof.record.plain_file import remove
from pipeprof.record.text import printable, printable_all
from pipeprof.verdict.gate.policy import differences
from pipeprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeprof.experiment.repetition import Bench

SCHEMA_VERSION = 1


class Measured(msgspec.Struct, kw_only=True):
    """One repetition: how long it took, from start to exit (seconds), and its metrics."""

    seconds: float
    values: dict[str, float]


class PoolState(Journal, kw_only=True):
    """What was ordered, and the complete repetitions by the names of their folders.

    `code`: what is measured; None in a state of an older pipeprof.
    """

    FILE: ClassVar[str] = "pool.json"

    schema_version: int = SCHEMA_VERSION
    command: list[str]
    slow_downs: list[float]
    seed: int
    fingerprint: dict[str, Any] = msgspec.field(default_factory=dict, name="machine")
    code: list[str | None] | None = None
    repetitions: dict[FileName, Measured] = {}

    def keep(self, folder: Path, name: str, seconds: float, values: dict[str, float]) -> None:
        """Confirm a repetition. Raises MeasureError when it cannot be written."""
        self.repetitions[name] = Measured(seconds=seconds, values=values)
        self.save(folder)


def new_state(command: Sequence[str], slow_downs: Sequence[float], seed: int | None) -> PoolState:
    """Nothing is measured yet."""
    return PoolState(
        command=printable_all(without_secrets(command)), slow_downs=list(slow_downs),
        seed=secrets.randbits(32) if seed is None else seed, code=_code(),
    )  # fmt: skip


def _code() -> list[str | None]:
    """The working directory, the revision and content of its repository, and the version of pipeprof."""
    here = Workspace.here()
    head = git_or_none(here.root, "rev-parse", "HEAD") if here.root else None
    return [printable(str(here.cwd)), head, tree_state(here.root)[1] if here.root and head else None, __version__]


def open_state(folder: Path, command: Sequence[str], slow_downs: Sequence[float], seed: int | None) -> PoolState:
    """The state in `folder`, with the seed that it began with, or a new one; the folder is made.

    Raises UsageError for a folder that holds something else or another order, RunError for a damaged file, MeasureError
    for one of another machine or job.
    """
    fresh = new_state(command, slow_downs, seed)
    refuse_links(folder)
    hint = "start over in another folder with -o"
    earlier = saved(folder, PoolState, SCHEMA_VERSION, "qualification", hint)
    if earlier is None:
        make_folder(folder)
        fresh.begin(folder)
        return fresh
    if (earlier.command, earlier.slow_downs) != (fresh.command, fresh.slow_downs):
        raise UsageError(f"`{folder}` holds the runs of another order", "give another folder with -o")
    if seed not in (None, earlier.seed):
        raise UsageError(f"`{folder}` was begun with --seed {earlier.seed}, not {seed}", "leave --seed out, or -o")
    differing = differences(earlier.fingerprint, fingerprint.machine())
    if earlier.job != fingerprint.job() or any(one["hard"] for one in differing):
        raise MeasureError(
            f"the runs in `{folder}` were made on another machine, in another job, or before its last start",
            "such times cannot be put together: start over in another folder with -o",
        )
    if earlier.code not in (None, fresh.code):
        raise MeasureError(f"the runs in `{folder}` are of other code, another folder or another pipeprof", hint)
    return earlier


def clear(folder: Path, name: str, bench: Bench) -> None:
    """Remove what a kill left of a repetition. Raises UsageError while a process of it is still running."""
    if (folder / name).exists():
        refuse_orphans(folder, [name], bench.still_running)
        remove(folder / name)
        remove(folder / f"{name}.log")
