"""Who may write the pointer below a prefix, where the storage has no write that fails when the object is there.

A writer puts a claim of its own, an object with a random name, below the prefix, and lists the claims. It may write
when there is no other. Else the one with the smaller name waits for the others to go, and the others take theirs back,
wait for it, and begin again. A claim is written before the claims are listed and goes after the pointer is written, so
of two writers at least one sees the other; that needs a storage whose listing has what was written before, as those of
Amazon, Google and Azure, and a local disk, have. Claims last for seconds: one that is older than DEAD_S is left from a
writer that was killed.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import TYPE_CHECKING

from pyarrow import fs

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator

    from pipeprof.record.objects import Objects

CLAIM = ".claim-"
DEAD_S = 60.0
_LOOK_S = 0.2


@contextlib.contextmanager
def claimed(objects: Objects, subject: str, pause: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Hold the prefix against writers of another `subject`, a short hash. Raises StorageError."""
    name = f"{CLAIM}{secrets.token_hex(8)}-{subject}"
    path = f"{objects.prefix}/{name}"
    try:
        while not _holds(objects, path, name, pause):
            pass
        yield
    finally:
        objects.discard(path)


def _holds(objects: Objects, path: str, name: str, pause: Callable[[float], None]) -> bool:
    """Put the claim, and wait. True when it is the only one; False when it was taken back and the others have gone."""
    objects.put(path, b"pipeprof push\n")
    began, put_at = time.monotonic(), None
    while True:
        claims = _claims(objects)
        put_at = claims.get(name) or put_at
        others = _alive(objects, claims, name, put_at, time.monotonic() - began)
        if name in claims and not others:
            return True
        if name not in claims:
            if not others:
                return False  # it was taken back, or somebody took it for dead
        elif min(others) < name:
            objects.discard(path)
        pause(_LOOK_S)


def _claims(objects: Objects) -> dict[str, dt.datetime | None]:
    """Name -> time of change, by the storage's clock."""
    listed = [info for info in objects.listed(objects.prefix) if info.type == fs.FileType.File]
    return {info.base_name: info.mtime for info in listed if info.base_name.startswith(CLAIM)}


def _alive(
    objects: Objects, claims: dict[str, dt.datetime | None], name: str, put_at: dt.datetime | None, waited_s: float
) -> list[str]:
    """The claims of others on something else; those of writers that must be gone are removed.

    Their age is told by the storage's own clock: it is that of the own claim, and as much older as was waited since.
    """
    subject = name.rpartition("-")[2]
    others = [one for one in claims if one != name and one.rpartition("-")[2] != subject and not one.endswith(".tmp")]
    alive = []
    for one in others:
        at = claims[one]
        age = waited_s + ((put_at - at).total_seconds() if put_at and at else 0.0)
        if age > DEAD_S:
            objects.discard(f"{objects.prefix}/{one}")
        else:
            alive.append(one)
    return alive
