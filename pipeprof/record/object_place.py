"""Baselines in object storage, through pyarrow.fs. There is no rename: `baseline.json` is a pointer, written last.

The other files lie beside it under names that hold their hash (`measures-1f0c...parquet`), so that two writers never
touch one another's and a reader that holds an older pointer still finds its own. What no pointer names is removed by
a later write, a day afterwards. Each entry of the history is an object of its own: objects cannot be appended to.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import pyarrow as pa
from pyarrow import fs

from pipeprof.errors import RunError, UsageError
from pipeprof.record.git_place import SCHEME, open_git_place
from pipeprof.record.place import MOST_READ, POINTER, LocalPlace, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_KEPT = dt.timedelta(days=1)
_ENTRIES = "history"
_READERS = 16
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def open_place(root: str) -> Place:
    """The place that a folder or URL names: `baselines`, `file:///data/baselines`, `s3://bucket/prefix`, `gs://...`.

    Options of s3 go into the query, as `?endpoint_override=http://host:9000&region=eu-1`. Credentials come from the
    environment. Raises UsageError for a URL that pyarrow does not know.
    """
    if not _URL.match(root):
        return LocalPlace(Path(root))
    if root.startswith(SCHEME):
        return open_git_place(root)
    shown = without_secrets(root)
    try:
        system, path = fs.FileSystem.from_uri(root)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UsageError(
            f"cannot open `{shown}`: {_short(error, root)}",
            "use a folder, s3://bucket/prefix?region=..., gs://bucket/prefix or file:///folder",
        ) from error
    if isinstance(system, fs.LocalFileSystem):
        return LocalPlace(Path(path))
    return ObjectPlace(system, path.strip("/"), shown)


def without_secrets(url: str) -> str:
    """A URL for people: no user, password or options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


class ObjectPlace:
    """A prefix in a bucket. `system` is any pyarrow file system, `prefix` is without slashes at its ends."""

    def __init__(self, system: Any, prefix: str, shown: str) -> None:
        self.system = system
        self.prefix = prefix
        self.shown = shown

    def exists(self) -> bool:
        """See Place."""
        with self._errors(self.prefix, "read"):
            return bool(self.system.get_file_info(self.prefix).type != fs.FileType.NotFound)

    def names(self) -> list[tuple[str, str]]:
        """See Place."""
        return sorted(
            (workload.base_name, machine.base_name)
            for workload in self._folders(self.prefix)
            for machine in self._folders(workload.path)
        )

    def read(self, workload: str, machine: str, name: str, sha256: str = "") -> bytes | None:
        """See Place."""
        return self._get(f"{self._at(workload, machine)}/{_object_name(name, sha256)}")

    def replace(self, workload: str, machine: str, files: Mapping[str, bytes], entry: bytes) -> None:
        """See Place."""
        at = self._at(workload, machine)
        pointer = msgspec.json.decode(files[POINTER])
        named = {name: _object_name(name, part["sha256"]) for name, part in pointer["files"].items()}
        for name, data in files.items():
            if name != POINTER:
                self._put(f"{at}/{named[name]}", data)
        if entry:
            stamp = dt.datetime.now(dt.timezone.utc).strftime("%Y%m%dT%H%M%S%fZ")
            self._put(f"{at}/{_ENTRIES}/{stamp}-{hashlib.sha256(entry).hexdigest()[:8]}.jsonl", entry)
        self._put(f"{at}/{POINTER}", files[POINTER])
        self._prune(at, {POINTER, *named.values()})

    def history(self, workload: str, machine: str) -> list[tuple[str, bytes]]:
        """See Place."""
        paths = [
            info.path
            for info in self._listed(f"{self._at(workload, machine)}/{_ENTRIES}")
            if info.type == fs.FileType.File
        ]
        with ThreadPoolExecutor(_READERS) as pool:
            contents = list(pool.map(self._get, sorted(paths)))
        return [(path, data) for path, data in zip(sorted(paths), contents, strict=True) if data is not None]

    def remove(self, workload: str, machine: str) -> None:
        """See Place: the pointer goes first."""
        at = self._at(workload, machine)
        with self._errors(at, "remove"):
            with contextlib.suppress(FileNotFoundError):
                self.system.delete_file(f"{at}/{POINTER}")
            self.system.delete_dir(at)

    @contextlib.contextmanager
    def turn(self, workload: str) -> Iterator[None]:  # noqa: ARG002 - writers cannot wait for each other here
        """See Place: the last pointer written wins; every entry of the history stays."""
        yield

    def _at(self, workload: str, machine: str) -> str:
        return f"{self.prefix}/{workload}/{machine}"

    def _get(self, path: str, most: int = MOST_READ) -> bytes | None:
        with self._errors(path, "read"):
            try:
                with self.system.open_input_stream(path) as stream:
                    data = bytes(stream.read(most + 1))
            except FileNotFoundError:
                return None
        if len(data) > most:
            raise RunError(
                f"`{path}` in `{self.shown}` has more than {most:,} bytes, expected a file of a baseline",
                "remove it, or write the baseline again",
            )
        return data

    def _put(self, path: str, data: bytes) -> None:
        with self._errors(path, "write"), self.system.open_output_stream(path) as stream:
            stream.write(data)

    def _listed(self, path: str) -> list[Any]:
        with self._errors(path, "list"):
            return list(self.system.get_file_info(fs.FileSelector(path, allow_not_found=True)))

    def _folders(self, path: str) -> list[Any]:
        return [info for info in self._listed(path) if info.type == fs.FileType.Directory]

    def _prune(self, at: str, kept: set[str]) -> None:
        """Remove data files that no pointer has named for a day. A failure here harms nothing."""
        limit = dt.datetime.now(dt.timezone.utc) - _KEPT
        with contextlib.suppress(RunError, OSError):
            for info in self._listed(at):
                if info.type == fs.FileType.File and info.base_name not in kept and info.mtime and info.mtime < limit:
                    self.system.delete_file(info.path)

    @contextlib.contextmanager
    def _errors(self, path: str, verb: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise RunError(
                f"cannot {verb} `{path}` in `{self.shown}`: {_short(error, self.shown)}",
                "check the URL, its region and endpoint_override, and the credentials in the environment",
            ) from error


def _object_name(name: str, sha256: str) -> str:
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{sha256[:16]}{dot}{suffix}" if sha256 else name


def _short(error: Exception, url: str) -> str:
    return str(error).replace(url, without_secrets(url)).splitlines()[0][:300] if str(error) else type(error).__name__
