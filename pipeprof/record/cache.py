"""The folder for what can be made again."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pipeprof.record.document import BAD_JSON
from pipeprof.record.plain_file import read_file, remove, replacing

Kept = TypeVar("Kept")

COPIES, ORIGIN = "runs", "url.json"  # copies of runs in object storage, and what stands beside each
_LONGEST_URL = 1 << 16
_LARGEST = 1 << 25  # bytes of what `cached` keeps
_LEFT_S = 86_400  # after that nobody writes it any more
_NO_HOME = Path(os.devnull)  # below it nothing is there, and nothing can be made


def cache_folder(name: str) -> Path:
    """`$XDG_CACHE_HOME/pipeprof/<name>`, or below ~/.cache; it may not be there yet, or have no place to be.

    A user without a name or HOME, as in some containers, has no home.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base, "pipeprof", name)
    try:
        home = Path.home()
    except RuntimeError:
        home = _NO_HOME
    return home / ".cache" / "pipeprof" / name


def origin_of(folder: Path) -> str | None:
    """The URL that a folder of the cache is a copy of; None of any other folder."""
    if folder.parent.parent != cache_folder(COPIES):
        return None
    return recall(folder.parent / ORIGIN, str, _LONGEST_URL)


def cached(room: str, made_of: bytes, kind: type[Kept], make: Callable[[], Kept], most: int | None = None) -> Kept:
    """What `make` makes of `made_of`: from the folder `room` of the cache, or made now and kept there as JSON.

    `most` files stay in the folder; None: all.
    """
    path = file_of(room, made_of)
    value = recall(path, kind, _LARGEST)
    if value is None:
        value = make()
        remember(path, value)
        if most is not None:
            forget(path.parent, most)
    return value


def file_of(room: str, made_of: bytes) -> Path:
    """Where `cached` keeps it."""
    return cache_folder(room) / f"{hashlib.sha256(made_of).hexdigest()[:32]}.json"


def recall(path: Path, kind: type[Kept], most_bytes: int) -> Kept | None:
    """What `remember` wrote as JSON; None when it is not there, or is something else."""
    try:
        return msgspec.json.decode(read_file(path, most_bytes), type=kind)
    except (OSError, *BAD_JSON):
        return None


def remember(path: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all; where that fails it will be made again."""
    encoded = msgspec.json.encode(value)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(encoded)


def forget(folder: Path, most: float = math.inf, unused_s: float = math.inf) -> None:
    """Remove what lies in a folder of the cache but the `most` used last, and what nobody has used for `unused_s`.

    What is being written has a dot in front of its name: it counts as left after a day.
    """
    with contextlib.suppress(OSError):
        now = time.time()
        ages = {path: now - path.stat().st_mtime for path in folder.iterdir()}
        unfinished = {path for path in ages if path.name.startswith(".")}
        whole = sorted(ages.keys() - unfinished, key=ages.__getitem__)
        old = [path for place, path in enumerate(whole) if place >= most or ages[path] > unused_s]
        for path in (*old, *(path for path in unfinished if ages[path] > _LEFT_S)):
            remove(path)
