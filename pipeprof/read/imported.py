"""A foreign file as a run: read once, then found again by its path, size and time of change."""

from __future__ import annotations

import atexit
import hashlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pipeprof import processes
from pipeprof.errors import PipeprofError, SourceError, UsageError
from pipeprof.record.cache import cache_folder, forget
from pipeprof.record.run import Run, load
from pipeprof.record.schema import SCHEMA_VERSION
from pipeprof.version import __version__

IMPORTS = "imports"  # in the cache
KEPT = 20  # imports that are kept
BIG = 64 << 20  # bytes


def imported(file: Path, progress: Callable[[str], None] = lambda _text: None) -> Run:
    """The run that a file is read into.

    Raises SourceError when it cannot be read, or holds no operators: this is what tables of operators are made of.
    """
    run = _cached(file) or _read(file, progress)
    if not run.manifest.tables.get("op") and not run.manifest.tables.get("op_total"):
        kinds = run.manifest.options.get("kinds") or [run.manifest.source.removeprefix("import:")]
        raise SourceError(
            f"`{file}` holds no operators: found a {', '.join(kinds)}, expected a profile with operators",
            f"pipeprof import {shlex.quote(str(file))} -o RUN, then pipeprof sql RUN, for what it does hold",
        )
    return run


def _cached(file: Path) -> Run | None:
    folder = cache_folder(IMPORTS) / _key(file)
    try:
        run = load(folder)
        os.utime(folder)
    except (PipeprofError, OSError):
        return None
    return run


def _read(file: Path, progress: Callable[[str], None]) -> Run:
    folder = _writable()
    target = folder / _key(file)
    try:
        progress(f"reading {file.name}")
        read = _read_apart if file.stat().st_size >= BIG and sys.executable else _read_here
        run = read(file, target, progress)
    except UsageError:
        run_beside = _cached(file)  # another process was faster
        if run_beside is None:
            raise
        return run_beside
    forget(folder, KEPT)
    return run


def _read_here(file: Path, target: Path, progress: Callable[[str], None]) -> Run:
    from pipeprof.read import foreign  # noqa: PLC0415 - slow to import; a kept import does without

    return foreign.import_path(file, target, progress=progress)


def _read_apart(file: Path, target: Path, progress: Callable[[str], None]) -> Run:
    """As `_read_here`, in a process of its own: what reading a big file took is then free for the queries."""
    try:
        list(processes.each(_read_part, [(file, target)], 1, progress))
    except processes.ProcessEndedError as error:
        raise SourceError(
            f"reading `{file}` was ended by the system (status {error.status})", "is there enough memory?"
        ) from error
    return load(target)


def _read_part(part: tuple[Path, Path]) -> None:
    _read_here(*part, processes.listener())


def _writable() -> Path:
    folder = cache_folder(IMPORTS)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    passing = tempfile.mkdtemp(prefix="pipeprof-import-")
    atexit.register(shutil.rmtree, passing, ignore_errors=True)
    return Path(passing)


def _key(file: Path) -> str:
    """Text that changes with the file, and with the version that reads it."""
    facts = file.stat()
    parts = (file.resolve(), facts.st_size, facts.st_mtime_ns, __version__, SCHEMA_VERSION)
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogateescape")).hexdigest()[:24]
