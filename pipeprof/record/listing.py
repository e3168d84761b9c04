"""The runs of a folder, newest first, by their manifests alone."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.errors import RunError
from pipeprof.record.plain_file import RefusedError, refuse_outside
from pipeprof.record.run import MANIFEST, load

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.record.run import Run


class Listed(NamedTuple):
    """A run folder. `run` is None, and `problem` says why, when its manifest is damaged. `began` is in seconds."""

    path: Path
    began: float
    run: Run | None
    problem: str = ""


def runs_in(folder: Path, *, linked: bool = True) -> list[Listed]:
    """The run that a folder is, or the runs directly in it, newest first; damaged ones too.

    A folder in it that may not be looked into is one of them, with that as its problem. Without `linked` what a link
    out of the folder leads to is none. Raises RunError when the folder itself is not there or cannot be read.
    """
    try:
        inside = [path for path in folder.iterdir() if _may_be_run(path) and (linked or _lies_in(path, folder))]
        own = [folder] if folder.joinpath(MANIFEST).is_file() else []
    except OSError as error:
        raise RunError(
            f"cannot list the runs in `{folder}`: {error.strerror}", "give a folder that holds runs"
        ) from error
    changed = [_changed(path) for path in own or inside]
    listed = map(_listed, own or inside, changed)
    return [one for one, _ in sorted(zip(listed, changed, strict=True), key=_began, reverse=True)]


def _began(listed: tuple[Listed, float]) -> tuple[float, float]:
    return listed[0].began, listed[1]


def _may_be_run(path: Path) -> bool:
    try:
        return path.joinpath(MANIFEST).is_file()
    except PermissionError:
        return True


def _lies_in(path: Path, folder: Path) -> bool:
    try:
        refuse_outside(path, folder)
    except RefusedError:
        return False
    return True


def folders_of_runs(folder: Path) -> list[Path]:
    """The folders in a folder that hold runs themselves, by name."""
    return sorted({path.parent.parent for path in folder.glob(f"*/*/{MANIFEST}")})


def _listed(path: Path, changed: float) -> Listed:
    try:
        run = load(path)
    except (RunError, OSError) as error:
        return Listed(path, changed, None, str(error))
    return Listed(path, began(run, changed), run)


def began(run: Run, otherwise: float) -> float:
    """When a run began, in seconds; `otherwise` where its manifest does not say."""
    try:
        began_s = dt.datetime.fromisoformat(run.manifest.started_at.replace("Z", "+00:00")).timestamp()
        dt.datetime.fromtimestamp(began_s, dt.timezone.utc)  # as it will be shown
    except (ValueError, OverflowError):
        return otherwise
    return began_s


def _changed(path: Path) -> float:
    for written in (path / MANIFEST, path):
        with contextlib.suppress(OSError):
            return written.stat().st_mtime
    return 0.0
