"""Runs in object storage: pushed as a whole, and read as a verified copy in the cache.

`run.json` is the pointer (`objects.py`). A run that other programs have copied there, under its own names, is read too.
A copy is made in a folder of its own and gets its name when every checksum of its manifest holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.errors import RunError, UsageError
from pipeprof.record import checksums, limits
from pipeprof.record.cache import COPIES, ORIGIN, cache_folder, forget, remember
from pipeprof.record.lock import deciding
from pipeprof.record.object_account import words
from pipeprof.record.objects import Objects, StorageError, claimed, names_user, object_name, without_secrets
from pipeprof.record.place import SCHEME
from pipeprof.record.plain_file import MOST, open_file, read_file
from pipeprof.record.run import MANIFEST, MOST_BYTES, is_part_name, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pipeprof.record.run import Part, Run

_READERS = 8
_KEPT_S = 7 * 86_400  # a copy that nobody has asked for so long is removed
_PIECE = 1 << 20  # bytes
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Pushed(NamedTuple):
    """Where a run is now, how many files were written, and how many were there already."""

    where: str
    written: int
    there: int


def push(run: Run, url: str, *, force: bool = False, progress: Callable[[str], None] = lambda _text: None) -> Pushed:
    """Upload a complete run: the files of its tables, then its manifest. Begun again, it goes on where it was cut off.

    What is there with its size is taken to be whole; with `force` it is read, and replaced when its checksum is
    another. Raises UsageError for a URL that cannot be opened, and when another run is there, or comes there at the
    same time, unless `force`; RunError when the run is not complete, has no checksums or a changed file, or the storage
    fails: what was there before is whole then.
    """
    parts = _pushable(run)
    objects = storage_of(url)
    manifest = read_file(run.path / MANIFEST, MOST_BYTES, inside=run.path)
    _refuse_other(objects, manifest, force=force)
    named = {name: object_name(name, part.sha256) for name, part in parts.items()}
    waiting = _not_there(objects, named, parts, read=force)
    for number, name in enumerate(waiting, 1):
        progress(f"file {number} of {len(waiting)}, {name.partition('/')[0]}")
        try:
            objects.put_pieces(named[name], _verified(run.path / name, parts[name]))
        except BaseException:
            objects.discard(named[name])  # the next push would take it for whole if its size is right
            raise
    _point_to(objects, manifest, named, force=force)
    return Pushed(objects.shown, len(waiting), len(parts) - len(waiting))


def _not_there(objects: Objects, named: Mapping[str, str], parts: Mapping[str, Part], *, read: bool) -> list[str]:
    """The files that the storage has not, by their sizes; with `read`, by what they hold."""
    sizes = dict(zip(named, objects.sizes(named.values()), strict=True))

    def is_there(name: str) -> bool:
        if sizes[name] != parts[name].bytes:
            return False
        return not read or _digest(objects.pieces(named[name])) == parts[name].sha256

    with ThreadPoolExecutor(_READERS) as pool:
        return [name for name, there in zip(parts, pool.map(is_there, parts), strict=True) if not there]


def _point_to(objects: Objects, manifest: bytes, named: Mapping[str, str], *, force: bool) -> None:
    """Write the manifest, unless another run came there meanwhile: of two that are pushed at once one is refused."""
    with claimed(objects, hashlib.sha256(manifest).hexdigest()[:16]):
        there = _refuse_other(objects, manifest, force=force)
        if there != manifest:
            objects.put(MANIFEST, manifest)
            _refuse_other(objects, manifest, force=False)
    if there not in (None, manifest):
        objects.prune(set(named.values()))


def _refuse_other(objects: Objects, manifest: bytes, *, force: bool) -> bytes | None:
    """The manifest that is there. Raises UsageError when it is another run's, unless `force`."""
    there = _manifest(objects)
    if there is not None and there != manifest and not force:
        raise UsageError(f"another run is at `{objects.shown}`", "choose another URL, or replace it with --force")
    return there


def refuse_taken(url: str, *, force: bool) -> None:
    """Raises as `push` for a URL where no run can be put, before there is one."""
    _refuse_other(storage_of(url), b"", force=force)


def fetch(url: str, progress: Callable[[str], None] = lambda _text: None) -> Path:
    """The folder in the cache with the run at a URL, every file of it verified.

    What is there already is not read again as long as the manifest at the URL is the same. Raises UsageError for a URL
    that cannot be opened; RunError when no run is there, it is not complete or damaged, or the storage fails.
    """
    objects = storage_of(url)
    return _copy(objects, url, _present(objects), progress)


@contextlib.contextmanager
def copied(url: str) -> Iterator[Run]:
    """The run at a URL, verified, for as long as the context: no copy of it is kept. Raises as `fetch`."""
    objects = storage_of(url)
    manifest = _present(objects)
    cached = _cached_path(objects, url, manifest)
    if _is_whole(cached):
        with called(cached, objects.shown):
            yield load(cached)
        return
    with tempfile.TemporaryDirectory(prefix="pipeprof-") as folder:
        path = Path(folder) / cached.name
        with called(path, objects.shown):
            path.mkdir()
            path.joinpath(MANIFEST).write_bytes(manifest)
            _fill(objects, load(path), lambda _text: None)
            yield load(path)


def fetch_if_run(url: str) -> Path | None:
    """As `fetch`; None when there is no `run.json`, and for URLs that may hold baselines alone."""
    if holds_baselines_alone(url):
        return None
    objects = storage_of(url)
    manifest = _manifest(objects)
    return None if manifest is None else _copy(objects, url, manifest, lambda _text: None)


def holds_baselines_alone(url: str) -> bool:
    """Whether a URL is one in git, or has a user or password: no run is at such a one."""
    return names_user(url) or url.startswith(SCHEME)


def storage_of(url: str) -> Objects:
    """What lies below the URL of a run. Raises UsageError for one that cannot be opened, or that holds a password."""
    if names_user(url):
        raise UsageError(
            f"the URL of a run may not hold a user or password: `{without_secrets(url)}`",
            f"leave them out: credentials come from the environment: {words(url).login}",
        )
    if "://" not in url:
        raise UsageError(f"`{url}` is no URL", "give one such as s3://bucket/runs/RUN, or file:///folder for a folder")
    return Objects.at(url)


def _pushable(run: Run) -> Mapping[str, Part]:
    if run.manifest.state != "complete" or run.spool.is_dir():
        raise RunError(f"`{run.path}` is not a complete run: only those are pushed", "record it again")
    if run.manifest.parts is None:
        raise RunError(f"an older pipeprof wrote `{run.path}`: it has no checksums", "record it again")
    checksums.refuse_changed(run)
    return run.manifest.parts


def _verified(path: Path, part: Part) -> Iterator[bytes]:
    """A file in pieces. Raises RunError at its end when it is not the one that the manifest notes."""
    digest = hashlib.sha256()
    with open_file(path, packed=False) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            yield piece
    if digest.hexdigest() != part.sha256:
        raise RunError(f"damaged file `{path}`: it was changed after the run was made", "`pipeprof verify` checks all")


def _digest(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _manifest(objects: Objects) -> bytes | None:
    """`run.json`; None without one, and for an empty one: Azure's client begins with that, and may be interrupted."""
    return objects.get(MANIFEST, MOST_BYTES) or None


def _present(objects: Objects) -> bytes:
    """`run.json`. Raises RunError without one."""
    manifest = _manifest(objects)
    if manifest is not None:
        return manifest
    if objects.exists():
        raise RunError(
            f"no whole run at `{objects.shown}`: found files, but no `{MANIFEST}`, which is uploaded last",
            "run the same `pipeprof push` again: it goes on where it was cut off",
        )
    raise RunError(f"no run at `{objects.shown}`", "check the URL, or upload one with `pipeprof push RUN URL`")


def _copy(objects: Objects, url: str, manifest: bytes, progress: Callable[[str], None]) -> Path:
    """The copy in the cache, made now unless it is there as it was made."""
    home, path = cache_folder(COPIES), _cached_path(objects, url, manifest)
    try:
        if not _is_whole(path):
            _make(objects, url, path, manifest, progress)
        os.utime(path.parent)
    except OSError as error:
        raise RunError(
            f"cannot keep a copy of `{objects.shown}` in `{home}`: {error.strerror or error}",
            "free some space, or set XDG_CACHE_HOME to another folder",
        ) from error
    forget(home, unused_s=_KEPT_S)
    return path


def _cached_path(objects: Objects, url: str, manifest: bytes) -> Path:
    key = hashlib.sha256(url.encode(errors="surrogatepass") + b"\0" + manifest).hexdigest()[:24]
    name = _UNSAFE.sub("_", objects.prefix.rpartition("/")[2])[:80].lstrip(".") or "run"
    return cache_folder(COPIES) / key / name


@contextlib.contextmanager
def called(path: Path, shown: str) -> Iterator[None]:
    """Errors name what is in the bucket, not the copy of it."""
    try:
        yield
    except StorageError:
        raise
    except RunError as error:
        raise RunError(error.message.replace(str(path), shown), error.hint) from error


def _is_whole(path: Path) -> bool:
    try:
        checksums.refuse_changed(load(path))
    except RunError:
        return False
    return True


def _make(objects: Objects, url: str, path: Path, manifest: bytes, progress: Callable[[str], None]) -> None:
    home = path.parent.parent
    home.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=home))
    try:
        copy = fresh / path.name
        copy.mkdir()
        copy.joinpath(MANIFEST).write_bytes(manifest)
        with called(copy, objects.shown):
            _fill(objects, load(copy), progress)
        remember(fresh / ORIGIN, url)
        with deciding(home, wait=True):  # what one has just put there is not whole to another
            if not _is_whole(path):  # no other process has made it meanwhile
                shutil.rmtree(path.parent, ignore_errors=True)
                with contextlib.suppress(OSError):  # another one was faster after all
                    fresh.rename(path.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    if not _is_whole(path):
        raise RunError(f"the copy of `{objects.shown}` was changed while it was made", "run the same command again")


def _fill(objects: Objects, copy: Run, progress: Callable[[str], None]) -> None:
    """Read the files that the manifest names, and no others, and compare each with its checksum."""
    parts = readable(copy, objects.shown)

    is_missing = threading.Event()  # one is enough: the others are asked for no more

    def read(name: str) -> None:
        if is_missing.is_set():
            return
        path = copy.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not _download(objects, name, parts[name], path):
            is_missing.set()
            raise _damaged(objects, name, "none", f"a file of {parts[name].bytes:,} bytes")
        progress(f"{name.partition('/')[0]}, of {len(parts)} files")

    with ThreadPoolExecutor(_READERS) as pool:
        list(pool.map(read, parts))
    for change in checksums.changes(copy):
        raise _damaged(objects, change.file, change.found, change.expected)


def _damaged(objects: Objects, name: str, found: str, expected: str) -> RunError:
    return RunError(
        f"damaged file `{name}` in `{objects.shown}`: found {found}, expected {expected}",
        "push the run again with --force",
    )


def readable(copy: Run, shown: str) -> Mapping[str, Part]:
    """The files of a run that may be read. Raises RunError for one that changes still, or that names anything else."""
    manifest = copy.manifest
    if manifest.state == "running" or manifest.parts is None:
        why = "it was copied while it was recorded" if manifest.state == "running" else "it has no checksums"
        raise RunError(f"cannot read the run at `{shown}`: {why}", "upload a complete run with `pipeprof push RUN URL`")
    for name in manifest.parts:
        if not is_part_name(name):
            raise RunError(f"damaged manifest at `{shown}`: `{name[:80]}` is no file of a table", "push the run again")
    most = limits.most_bytes(MOST)
    size = sum(part.bytes for part in manifest.parts.values())
    if size > most:
        raise RunError(f"the run at `{shown}` has {size:,} bytes, more than {most:,}", limits.raised_by(limits.BYTES))
    return manifest.parts


def _download(objects: Objects, name: str, part: Part, path: Path) -> bool:
    """Write one file, no further than it should be long: under the name of its hash, or else under its own.

    False when it is not there.
    """
    for there in (object_name(name, part.sha256), name):
        size = 0
        with path.open("wb") as file:
            for piece in objects.pieces(there):
                size += len(piece)
                file.write(piece)
                if size > part.bytes:
                    break
        if size:
            return True
    return False
