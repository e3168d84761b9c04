"""Whether the Parquet files of a run are those that its manifest was written for.

`seal` notes size, footer and SHA-256 of every file; `refuse_changed` looks at size and footer when a run is opened, or
at sizes alone when it is listed, and `changes` reads everything.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from pipeprof.errors import RunError
from pipeprof.record import limits
from pipeprof.record.plain_file import open_handle, refuse_outside
from pipeprof.record.run import Part, is_compact
from pipeprof.record.schema import TABLES
from pipeprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from pipeprof.record.run import Run

Code = Literal["missing", "unknown", "unreadable", "size", "footer", "content"]

_TAIL = 8  # bytes at the end of a Parquet file: the footer's length, and a mark
_LONGEST_FOOTER = 1 << 26  # bytes; a longer one is read no further
_CHUNK = 1 << 20
_BLOCK = 512  # bytes; a file with holes has fewer than its size says
# Tables made of the others. Whoever reads the answers asks for `problem_of`, and can do without them.
ROLLUP, ANSWERS = "rollup", "kept_answer"


class Change(NamedTuple):
    """A file of a run that is not as it was written: what differs, what was found, and what was expected, as text."""

    file: str
    code: Code
    found: str
    expected: str


def seal(run: Run, reps: Collection[int] | None = None) -> None:
    """Note in the manifest (which is not saved) what the files of these repetitions hold, of all without `reps`.

    Files of other repetitions keep what was noted when they were written; a run whose older ones have no checksums
    gets none. Raises RunError when a file cannot be read.
    """
    paths = stored(run)
    fresh = {name: path for name, path in paths.items() if reps is None or _rep(path) in reps}
    if run.manifest.parts is None and len(fresh) != len(paths):
        return
    older = {name: part for name, part in (run.manifest.parts or {}).items() if name in paths and name not in fresh}
    try:
        parts = older | {name: part_of(path) for name, path in fresh.items()}
    except OSError as error:
        raise RunError(f"cannot read `{error.filename}`: {error.strerror}", "open the run again") from error
    run.manifest.parts = {name: parts[name] for name in sorted(parts)}


def part_of(path: Path) -> Part:
    """What the manifest notes about a file. Raises OSError when it cannot be read."""
    handle, size = _opened(path)
    try:
        most = limits.most_unpacked(_BLOCK * os.fstat(handle).st_blocks)
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size:,} bytes, most of them holes", str(path))
        footer, digest = _footer(handle, size), hashlib.sha256()
        at = 0
        while chunk := os.pread(handle, _CHUNK, at):
            digest.update(chunk)
            at += len(chunk)
        return Part(bytes=size, footer=footer, sha256=digest.hexdigest())
    finally:
        os.close(handle)


def forget(run: Run, reps: Collection[int]) -> None:
    """Drop what the manifest (which is not saved) says about the files of these repetitions."""
    if run.manifest.parts is not None:
        gone = [f"/rep={rep}/" for rep in reps]
        parts = run.manifest.parts.items()
        run.manifest.parts = {name: part for name, part in parts if not any(key in name for key in gone)}


def refuse_changed(run: Run, *, footers: bool = True) -> None:
    """Raises RunError that names a file which was rewritten, added or removed, as far as size and footer show it.

    So does one that is no regular file, or that a link out of the run leads to; also in a run without checksums.
    Without `footers` the sizes alone are looked at, and no file is opened but in a run without checksums. The answers
    kept for a report are left out.
    """
    paths = stored(run)
    for folder in {path.parent for path in paths.values()}:
        _refused(run, folder, "a link out of the run", refuse_outside)
    for path in paths.values() if run.manifest.parts is None else ():
        _refused(run, path, "no regular file", _refuse_other_kinds)
    for change in _changes(run, paths, _glance if footers else _size):
        if change.file.startswith(f"{ANSWERS}/"):
            continue
        raise RunError(
            f"damaged file `{run.path / change.file}`: {_WORDS[change.code]}: found {change.found}, "
            f"expected {change.expected}",
            "restore the file, or collect or import the run again; `pipeprof verify` checks all files",
        )


def changes(run: Run, *, everything: bool = True) -> Iterator[Change]:
    """What is not as it was written, by file name; with `everything` the whole content of each file is read.

    Nothing for a run without checksums: an older pipeprof wrote it.
    """
    yield from _changes(run, stored(run), part_of if everything else _glance)


def problem_of(run: Run, table: str) -> str | None:
    """What the first of `changes` among a table's files is, in words; None when all are as they were written."""
    noted = {name: part for name, part in (run.manifest.parts or {}).items() if name.startswith(f"{table}/")}
    paths = {name: run.path / name for name in run.names(table)}
    return next((f"`{one.file}`: {_WORDS[one.code]}" for one in _compared(noted, paths, part_of)), None)


def as_it_lies(run: Run) -> bytes:
    """What differs when the manifest or a file does, as far as sizes and times show it, or a file was added.

    Nothing is opened, and no folder listed: of a list of many runs each is looked at so.
    """
    names = sorted(stored(run) if run.manifest.parts is None else run.manifest.parts)
    folders: dict[str, None] = {}
    for name in names:
        folder = name.rpartition("/")[0]
        while folder and folder not in folders:
            folders[folder] = None
            folder = folder.rpartition("/")[0]
    root, facts = os.fspath(run.path), []
    for name in ("", *folders, *names):
        try:
            about = os.lstat(f"{root}/{name}")
        except OSError:  # one that is gone; whoever asks the run tells
            continue
        facts.append((name, about.st_mode, about.st_mtime_ns, 0 if name in folders else about.st_size))
    return b"\n".join([__version__.encode(), msgspec.json.encode(run.manifest), msgspec.json.encode(facts)])


def stored(run: Run) -> dict[str, Path]:
    """The Parquet files of a run by their names in it, `step/rep=0/rank=0/part-00000.parquet`."""
    try:
        folders = {path.name for path in run.path.iterdir()}
    except OSError:
        folders = set()
    tables = [table.name for table in TABLES if table.name in folders]  # most runs have few of them
    return {name: run.path / name for table in tables for name in run.names(table)}


def _changes(run: Run, paths: Mapping[str, Path], look: Callable[[Path], Part]) -> Iterator[Change]:
    if run.manifest.parts is not None:
        yield from _compared(run.manifest.parts, paths, look)


def _compared(noted: Mapping[str, Part], paths: Mapping[str, Path], look: Callable[[Path], Part]) -> Iterator[Change]:
    for name in sorted({*noted, *paths}):
        if name not in paths:
            yield Change(name, "missing", "none", f"a file of {noted[name].bytes:,} bytes")
        elif name not in noted:
            yield Change(name, "unknown", "a file", "none")
        else:
            change = _change(name, paths[name], noted[name], look)
            if change is not None:
                yield change


def _refused(run: Run, path: Path, what: str, check: Callable[[Path, Path], object]) -> None:
    try:
        check(path, run.path)
    except OSError as error:
        raise RunError(
            f"damaged file `{path}`: found {what}: {error.strerror}", "restore it, or collect or import the run again"
        ) from error


def _refuse_other_kinds(path: Path, folder: Path) -> None:
    os.close(open_handle(path, folder))


_WORDS = {
    "missing": "it is gone",
    "unknown": "it was added after the run was made",
    "unreadable": "it cannot be read",
    "size": "it was rewritten after the run was made",
    "footer": "it was rewritten after the run was made",
    "content": "it was changed after the run was made",
}  # fmt: skip


def _change(name: str, path: Path, noted: Part, look: Callable[[Path], Part]) -> Change | None:
    """How a file differs, as far as `look` sees it: what it leaves empty is not compared."""
    try:
        part = look(path)
    except OSError as error:
        found_instead = "a link" if error.errno == errno.ELOOP else str(error.strerror)
        return Change(name, "unreadable", found_instead, f"a file of {noted.bytes:,} bytes")
    if part.bytes != noted.bytes:
        return Change(name, "size", f"{part.bytes:,} bytes", f"{noted.bytes:,} bytes")
    if part.footer and part.footer != noted.footer:
        return Change(name, "footer", f"footer {part.footer}", f"footer {noted.footer}")
    if part.sha256 and part.sha256 != noted.sha256:
        return Change(name, "content", f"SHA-256 {part.sha256}", f"SHA-256 {noted.sha256}")
    return None


def _size(path: Path) -> Part:
    """Size alone; opens nothing."""
    facts = path.lstat()
    if not stat.S_ISREG(facts.st_mode):
        number = errno.ELOOP if stat.S_ISLNK(facts.st_mode) else errno.EINVAL
        raise OSError(number, "not a regular file", str(path))
    return Part(bytes=facts.st_size, footer="", sha256="")


def _glance(path: Path) -> Part:
    """Size and footer alone; reads no other part of the file."""
    handle, size = _opened(path)
    try:
        return Part(bytes=size, footer=_footer(handle, size), sha256="")
    finally:
        os.close(handle)


def _opened(path: Path) -> tuple[int, int]:
    """A handle on a regular file, and its size. Raises OSError for anything else: a link, a pipe, a device."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        os.close(handle)
        raise OSError(0, "not a regular file", str(path))
    return handle, facts.st_size


def _footer(handle: int, size: int) -> str:
    """16 hexadecimal digits of the SHA-256 of the footer: the row counts, places and statistics of all columns."""
    tail = os.pread(handle, _TAIL, max(0, size - _TAIL))
    length = min(int.from_bytes(tail[:4], "little") + _TAIL, size, _LONGEST_FOOTER)
    return hashlib.sha256(os.pread(handle, length, size - length)).hexdigest()[:16]


def _rep(path: Path) -> int | None:
    """The repetition of a file; None when it holds all."""
    return None if is_compact(path) else int(path.parts[-3].partition("=")[2])
