"""Baselines in object storage. There is no rename: `baseline.json` is the pointer, written last (`objects.py`).

Each entry of the history is an object of its own: objects cannot be appended to.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from pyarrow import fs

from pipeprof.record.objects import Objects, is_url, located, object_name
from pipeprof.record.place import MOST_READ, POINTER, SCHEME, LocalPlace, Place, open_git_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ENTRIES = "history"
_READERS = 16


def open_place(root: str) -> Place:
    """The place that a folder or URL names: `baselines`, `file:///data/baselines`, `s3://bucket/prefix`, `gs://...`.

    Raises UsageError for a URL that cannot be opened, as `located`.
    """
    if not is_url(root):
        return LocalPlace(Path(root))
    if root.startswith(SCHEME):
        return open_git_place(root)
    location = located(root)
    if isinstance(location.system, fs.LocalFileSystem):
        return LocalPlace(Path(location.path))
    return ObjectPlace(*location)


class ObjectPlace(Objects):
    """A prefix in a bucket. `system` is any pyarrow file system, `prefix` is without slashes at its ends."""

    def names(self) -> list[tuple[str, str]]:
        """See Place."""
        below = (name.split("/") for name in self.every() or ())
        # where a baseline itself is named, its history is none below it
        return sorted({(parts[0], parts[1]) for parts in below if len(parts) > 2 and parts[1] != _ENTRIES})

    def read(self, workload: str, machine: str, name: str, sha256: str = "") -> bytes | None:
        """See Place."""
        data = self._get(f"{self._at(workload, machine)}/{object_name(name, sha256)}")
        if data is None and name == POINTER:
            self.refuse_no_bucket()
        return data

    def replace(self, workload: str, machine: str, files: Mapping[str, bytes], entry: bytes) -> None:
        """See Place."""
        at = self._at(workload, machine)
        pointer = msgspec.json.decode(files[POINTER])
        named = {name: object_name(name, part["sha256"]) for name, part in pointer["files"].items()}
        for name, data in files.items():
            if name != POINTER:
                self.put(f"{at}/{named[name]}", data)
        if entry:
            stamp = dt.datetime.now(dt.timezone.utc).strftime("%Y%m%dT%H%M%S%fZ")
            self.put(f"{at}/{_ENTRIES}/{stamp}-{hashlib.sha256(entry).hexdigest()[:8]}.jsonl", entry)
        self.put(f"{at}/{POINTER}", files[POINTER])
        self.prune(at, {POINTER, *named.values()})

    def history(self, workload: str, machine: str) -> list[tuple[str, bytes]]:
        """See Place."""
        paths = [
            info.path
            for info in self.listed(f"{self._at(workload, machine)}/{_ENTRIES}")
            if info.type == fs.FileType.File
        ]
        with ThreadPoolExecutor(_READERS) as pool:
            contents = list(pool.map(self._get, sorted(paths)))
        return [(path, data) for path, data in zip(sorted(paths), contents, strict=True) if data is not None]

    def remove(self, workload: str, machine: str) -> None:
        """See Place: the pointer goes first."""
        at = self._at(workload, machine)
        with self.errors(at, "remove"):
            with contextlib.suppress(FileNotFoundError):
                self.system.delete_file(f"{at}/{POINTER}")
            with contextlib.suppress(FileNotFoundError):  # Google's has removed all in it, and then misses the folder
                self.system.delete_dir(at)

    @contextlib.contextmanager
    def turn(self, workload: str) -> Iterator[None]:  # noqa: ARG002 - writers cannot wait for each other here
        """See Place: the last pointer written wins; every entry of the history stays."""
        yield

    def _at(self, workload: str, machine: str) -> str:
        return f"{self.prefix}/{workload}/{machine}"

    def _get(self, path: str) -> bytes | None:
        return self.get(path, MOST_READ)
