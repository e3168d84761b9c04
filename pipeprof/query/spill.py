"""Folders for what queries cannot keep in memory: of a random name, open to this user alone, and gone afterwards."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path

_PREFIX = "pipeprof-duckdb-"
_there: dict[Path, int] = {}  # the process that made each: a child of it removes none


def new_folder() -> Path:
    """A folder of mode 0700; where none can be made, a name that nothing has, which a query that needs it names."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    except OSError:
        return Path("/tmp", _PREFIX + secrets.token_hex(8))  # noqa: S108 - it is not there, and cannot be guessed
    _there[folder] = os.getpid()
    return folder


def remove(folder: Path) -> None:
    """Remove a folder with what queries have left in it."""
    if _there.pop(folder, None) == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def remove_all() -> None:
    """Remove all of this process: it is about to end, and its queries do not."""
    for folder in list(_there):
        remove(folder)
