"""Where baselines lie: a local folder, object storage, or a git revision, whose objects are read and never written.

In a local folder each is replaced as a whole, so that no reader and no crash sees half of one.

`ROOT/WORKLOAD/MACHINE/` holds the files of one baseline and its `history.jsonl`. A writer prepares a folder beside it,
moves the old one to `.MACHINE.old`, and the new one to its name; until that is done a reader takes the old one.

In object storage there is no rename: `baseline.json` is the pointer, written last (`objects.py`), and each entry of the
history is an object of its own, as objects cannot be appended to.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import NoReturn, Protocol
from urllib.parse import quote, unquote

import msgspec

from pipeprof.errors import RunError, UsageError
from pipeprof.record.git import Repository
from pipeprof.record.objects import Objects, is_url, object_name
from pipeprof.record.plain_file import read_file, refuse_outside, sync

POINTER = "baseline.json"
HISTORY = "history.jsonl"
MOST_BYTES = 100_000  # of a file that is written: what is reviewed and committed stays small
MOST_READ = 2 * MOST_BYTES  # git may have changed the line ends
MOST_HISTORY = 1 << 26
SCHEME = "git-revision://"
_ADDRESS = re.compile(re.escape(SCHEME) + r"([0-9a-f]{40,64})(?:/(.*))?")


class Place(Protocol):
    """Somewhere baselines are kept. `shown` is its name for people, without secrets."""

    shown: str

    def exists(self) -> bool:
        """Whether there is such a folder, or anything below such a prefix."""

    def names(self) -> list[tuple[str, str]]:
        """(workload, machine) of every baseline, also of damaged ones, sorted; empty when nothing is there."""

    def read(self, workload: str, machine: str, name: str, sha256: str = "") -> bytes | None:
        """One file; None when it is not there. `sha256` is what `baseline.json` says of it."""

    def replace(self, workload: str, machine: str, files: Mapping[str, bytes], entry: bytes) -> None:
        """Write a baseline in place of the one there and add a line, or nothing, to its history: all or nothing.

        Raises RunError.
        """

    def history(self, workload: str, machine: str) -> list[tuple[str, bytes]]:
        """(where, line) of every entry of the history: here, of the lines of a file."""
        data = self.read(workload, machine, HISTORY) or b""
        where = f"{self.shown}/{workload}/{machine}/{HISTORY}"
        return [(f"{where}:{at}", line) for at, line in enumerate(data.splitlines(), 1) if line.strip()]

    def remove(self, workload: str, machine: str) -> None:
        """Remove a baseline and its history."""

    def turn(self, workload: str) -> contextlib.AbstractContextManager[None]:
        """Held while a baseline is read, changed and written back, where writers can wait for each other."""


class LocalPlace(Place):
    """A folder on a disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.shown = str(root)

    def exists(self) -> bool:
        """See Place."""
        return self.root.is_dir()

    def names(self) -> list[tuple[str, str]]:
        """See Place."""
        names: set[tuple[str, str]] = set()
        for folder in _folders(self.root):
            for inner in _folders(folder, hidden=True):
                name = inner.name
                if name.startswith("."):
                    if not name.endswith(".old"):
                        continue
                    name = name[1 : -len(".old")]
                names.add((folder.name, name))
        return sorted(names)

    def read(self, workload: str, machine: str, name: str, sha256: str = "") -> bytes | None:  # noqa: ARG002
        """See Place."""
        final, previous = self.root / workload / machine, self._previous(workload, machine)
        while True:
            before = _identity(final), _identity(previous)
            for folder in (final, previous):  # a writer may be about to change them over
                try:
                    return read_file(folder / name, MOST_HISTORY if name == HISTORY else MOST_READ, inside=folder)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except OSError as error:
                    raise RunError(f"cannot read `{folder / name}`: {error.strerror or error}") from error
            if (_identity(final), _identity(previous)) == before:  # no writer came between
                return None

    def replace(self, workload: str, machine: str, files: Mapping[str, bytes], entry: bytes) -> None:
        """See Place. Call it within `turn`."""
        final = self.root / workload / machine
        self._refuse_other_case(workload)
        fresh = final.with_name(f".{machine}.{os.getpid()}.tmp")
        previous = self._previous(workload, machine)
        try:
            self._tidy(workload, machine)
            fresh.mkdir(parents=True)
            for name, data in files.items():
                _write(fresh / name, data)
            past = final / HISTORY
            lines = read_file(past, MOST_HISTORY, inside=final) if past.exists() else b""
            cut = bool(lines) and not lines.endswith(b"\n")
            _write(fresh / HISTORY, lines + (b"\n" if cut else b"") + entry)
            if final.exists():
                final.rename(previous)
            fresh.rename(final)
            sync(final.parent)
            shutil.rmtree(previous, ignore_errors=True)
        except OSError as error:
            shutil.rmtree(fresh, ignore_errors=True)
            if previous.exists() and not final.exists():
                previous.rename(final)
            raise RunError(
                f"cannot write the baseline `{final}`: {error.strerror or error}",
                "choose another folder with --root, or free some space; the old baseline is unchanged",
            ) from error

    def remove(self, workload: str, machine: str) -> None:
        """See Place."""
        try:
            refuse_outside(self.root / workload, self.root)
            for folder in (self._previous(workload, machine), self.root / workload / machine):
                if folder.exists():
                    shutil.rmtree(folder)
            with contextlib.suppress(OSError):
                (self.root / workload).rmdir()
        except OSError as error:
            raise RunError(f"cannot remove `{error.filename}`: {error.strerror or error}") from error

    @contextlib.contextmanager
    def turn(self, workload: str) -> Iterator[None]:
        """See Place: the folder of the workload is locked; the lock ends with the process."""
        folder = self.root / workload
        try:
            refuse_outside(folder, self.root)
            handle = _locked(folder)
        except OSError as error:
            raise UsageError(
                f"cannot write baselines in `{self.root}`: {error.strerror}", "choose another folder with --root"
            ) from error
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # succeeds when nothing was written
                folder.rmdir()
            os.close(handle)

    def _previous(self, workload: str, machine: str) -> Path:
        return self.root / workload / f".{machine}.old"

    def _tidy(self, workload: str, machine: str) -> None:
        """Finish what a writer that was killed has left."""
        final, previous = self.root / workload / machine, self._previous(workload, machine)
        if previous.exists() and not final.exists():
            previous.rename(final)
        for left in [previous, *final.parent.glob(f".{machine}.*.tmp")]:
            if left.exists():
                shutil.rmtree(left)

    def _refuse_other_case(self, workload: str) -> None:
        for folder in _folders(self.root):
            if folder.name != workload and folder.name.lower() == workload.lower():
                raise UsageError(
                    f"`{workload}` and the workload `{folder.name}` there would be one folder on some systems",
                    f"use --workload {folder.name}, or another name",
                )


def address(revision: str, path: PurePosixPath) -> str:
    """What stands for a folder of a revision where a folder or URL is expected; `revision` is a full hash."""
    return f"{SCHEME}{revision}/{quote(str(path))}"


def open_git_place(root: str) -> GitPlace:
    """The place that an address names, in the repository of the working directory. Raises UsageError for none."""
    parts = _ADDRESS.fullmatch(root)
    repository = Repository.around(Path.cwd())
    if parts is None or repository is None:
        raise UsageError(f"cannot read `{root}`: no such revision here", f"{SCHEME}COMMIT/FOLDER, in its repository")
    return GitPlace(repository, parts[1], PurePosixPath(unquote(parts[2] or "")))


class GitPlace(Place):
    """A folder of a revision."""

    def __init__(self, repository: Repository, revision: str, folder: PurePosixPath) -> None:
        self.repository, self.revision, self.folder = repository, revision, folder
        self.shown = f"{revision[:10]}:{folder}"

    def exists(self) -> bool:
        """See Place."""
        return bool(self.repository.files(self.revision, self.folder))

    def names(self) -> list[tuple[str, str]]:
        """See Place."""
        paths = (path.relative_to(self.folder).parts for path in self.repository.files(self.revision, self.folder))
        return sorted({(parts[0], parts[1]) for parts in paths if len(parts) == 3 and not parts[1].startswith(".")})

    def read(self, workload: str, machine: str, name: str, sha256: str = "") -> bytes | None:  # noqa: ARG002
        """See Place."""
        return self.repository.read(self.revision, self.folder / workload / machine / name)

    def replace(self, workload: str, machine: str, files: Mapping[str, bytes], entry: bytes) -> NoReturn:  # noqa: ARG002
        """Raises UsageError: a revision is never written."""
        self._refuse()

    def remove(self, workload: str, machine: str) -> NoReturn:  # noqa: ARG002
        """Raises UsageError: a revision is never written."""
        self._refuse()

    def turn(self, workload: str) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002
        """Raises UsageError: a revision is never written."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(f"`{self.shown}` is a revision: it cannot be written", "write into the folder and commit it")


def _locked(folder: Path) -> int:
    """A handle on the folder, made if need be, that no other process holds; not of one removed while we waited."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if folder.stat().st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Tells a folder from the one that takes its place; None when there is none."""
    try:
        info = folder.stat()
    except OSError:
        return None
    return info.st_ino, info.st_mtime_ns


def _folders(folder: Path, *, hidden: bool = False) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and (hidden or path.name[0] != "."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise RunError(f"cannot read `{folder}`: {error.strerror or error}") from error


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


_ENTRIES = "history"
_READERS = 16


def open_place(root: str) -> Place:
    """The place that a folder or URL names: `baselines`, `file:///data/baselines`, `s3://bucket/prefix`, `gs://...`.

    Raises UsageError for a URL that cannot be opened, as `Objects.at`.
    """
    if not is_url(root):
        return LocalPlace(Path(root))
    if root.startswith(SCHEME):
        return open_git_place(root)
    place = ObjectPlace.at(root)
    return LocalPlace(Path(place.path(""))) if place.is_local else place


class ObjectPlace(Objects):
    """A prefix in a bucket."""

    def names(self) -> list[tuple[str, str]]:
        """See Place."""
        below = (name.split("/") for name in self.every() or ())
        # where a baseline itself is named, its history is none below it
        return sorted({(parts[0], parts[1]) for parts in below if len(parts) > 2 and parts[1] != _ENTRIES})

    def read(self, workload: str, machine: str, name: str, sha256: str = "") -> bytes | None:
        """See Place."""
        data = self.get(f"{workload}/{machine}/{object_name(name, sha256)}", MOST_READ)
        if data is None and name == POINTER:
            self.refuse_no_bucket()
        return data

    def replace(self, workload: str, machine: str, files: Mapping[str, bytes], entry: bytes) -> None:
        """See Place."""
        at = f"{workload}/{machine}"
        pointer = msgspec.json.decode(files[POINTER])
        named = {name: f"{at}/{object_name(name, part['sha256'])}" for name, part in pointer["files"].items()}
        for name, path in named.items():
            self.put(path, files[name])
        if entry:
            stamp = dt.datetime.now(dt.timezone.utc).strftime("%Y%m%dT%H%M%S%fZ")
            self.put(f"{at}/{_ENTRIES}/{stamp}-{hashlib.sha256(entry).hexdigest()[:8]}.jsonl", entry)
        self.put(f"{at}/{POINTER}", files[POINTER])
        self.prune({f"{at}/{POINTER}", *named.values()})

    def history(self, workload: str, machine: str) -> list[tuple[str, bytes]]:
        """See Place."""
        folder = f"{workload}/{machine}/{_ENTRIES}"
        names = [f"{folder}/{name}" for name in sorted(self.listed(folder))]
        with ThreadPoolExecutor(_READERS) as pool:
            contents = list(pool.map(lambda name: self.get(name, MOST_READ), names))
        return [(self.path(name), data) for name, data in zip(names, contents, strict=True) if data is not None]

    def remove(self, workload: str, machine: str) -> None:
        """See Place: the pointer goes first."""
        at = self.path(f"{workload}/{machine}")
        with self.errors(at, "remove"):
            with contextlib.suppress(FileNotFoundError):
                self.system.delete_file(f"{at}/{POINTER}")
            with contextlib.suppress(FileNotFoundError):  # Google's has removed all in it, and then misses the folder
                self.system.delete_dir(at)

    @contextlib.contextmanager
    def turn(self, workload: str) -> Iterator[None]:  # noqa: ARG002 - writers cannot wait for each other here
        """See Place: the last pointer written wins; every entry of the history stays."""
        yield
