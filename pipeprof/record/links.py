"""Folders that came from elsewhere are written to, and parts of them removed: no link may lead such a step outside."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING

from pipeprof.errors import RunError
from pipeprof.record.plain_file import RefusedError, refuse_outside

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path


def remove(path: Path) -> None:
    """Remove a folder with all in it, or a file. Of a link the link alone goes. A failure leaves the rest in place."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def refuse_links_out(folder: Path, depth: int, but: Collection[str] = ()) -> None:
    """Raises RunError, naming it, when a link in a folder leads out of it.

    `depth`: so many levels are looked at. `but`: folders at the top whose content is the user's own.
    """
    for entry in _links(str(folder), depth, but):
        try:
            refuse_outside(folder / entry, folder)
        except RefusedError as error:
            raise RunError(f"`{folder / entry}` is a link out of `{folder}`", "remove the link") from error


def _links(folder: str, depth: int, but: Collection[str], inside: str = "") -> Iterator[str]:
    """The links in a folder, as paths from there; nothing where it is not there or may not be read."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = inside + entry.name
            if entry.is_symlink():
                yield name
            elif depth > 1 and entry.name not in but and entry.is_dir(follow_symlinks=False):
                yield from _links(entry.path, depth - 1, (), f"{name}/")
