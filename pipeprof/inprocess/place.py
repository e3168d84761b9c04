"""The folder of a run that the program records: a new one, or a further repetition of one that is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import psutil

from pipeprof.collect.session import Surroundings, make_folder, new_run, surroundings
from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run, Warn


@dataclass
class Before:
    """What a run held before this repetition, to be kept when its manifest is written anew."""

    rep: int = 0
    state: Any = "complete"
    reason: str | None = None
    tables: dict[str, int] = field(default_factory=dict)
    warnings: list[Warn] = field(default_factory=list)

    def put_back(self, run: Run) -> None:
        """Add it to what the new repetition left; the worst repetition decides the state."""
        manifest = run.manifest
        for table, rows in self.tables.items():
            manifest.tables[table] = manifest.tables.get(table, 0) + rows
        manifest.not_measured = [item for item in manifest.not_measured if not manifest.tables.get(item.what)]
        manifest.warnings = [
            *self.warnings,
            *(warning for warning in manifest.warnings if warning not in self.warnings),
        ]
        if self.state != "complete" and manifest.state == "complete":
            manifest.state, manifest.reason = self.state, self.reason
        run.save()


def new_place(path: Path, command: Sequence[str], options: dict[str, Any], *, force: bool) -> tuple[Run, Before]:
    """A new run. Raises UsageError when the folder exists, and is no run that `force` may replace."""
    try:
        make_folder(path, force=force)
    except UsageError as error:
        raise UsageError(error.message, "give another out=, force=True to replace the run, or add=True") from error
    return new_run(path, command, options, _around(), "profile"), Before()


def further_place(path: Path, options: dict[str, Any]) -> tuple[Run, Before]:
    """The run that is there, ready for one more repetition.

    Raises UsageError when it holds something else: another revision, machine or settings, or this very process.
    Repetitions are executions of the program, or their spread says nothing. Raises RunError when it cannot be read.
    """
    from pipeprof.read.spool.finish import open_run  # noqa: PLC0415 - Arrow before the block only in this case

    run, around = open_run(path), _around()
    manifest = run.manifest
    mine: dict[str, Callable[[], bool]] = {
        "another revision": lambda: manifest.git == around.git,
        "another machine": lambda: all(manifest.fingerprint.get(key) == value for key, value in around.machine.items()),
        "other settings": lambda: (
            {k: v for k, v in manifest.options.items() if k in options and k != "profile"}
            == {k: v for k, v in options.items() if k != "profile"}
        ),
    }
    for what, same in mine.items():
        if not same():
            raise UsageError(f"`{path}` is of {what}: it cannot get a further repetition; give another out=")
    here = psutil.Process()
    if manifest.launcher_pid == here.pid and manifest.launcher_start == here.create_time():
        raise UsageError(f"`{path}` was recorded by this process: repetitions are executions of the program")
    before = Before(
        max((rep.rep for rep in manifest.reps), default=-1) + 1, manifest.state, manifest.reason,
        dict(manifest.tables), list(manifest.warnings),
    )  # fmt: skip
    manifest.launcher_pid, manifest.launcher_start = here.pid, here.create_time()
    manifest.state, manifest.reason = "running", None
    run.save()
    return run, before


@lru_cache(maxsize=1)
def _around() -> Surroundings:
    return surroundings()
