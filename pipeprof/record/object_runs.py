"""The runs below a prefix in object storage: found by one listing, and known by their manifests and rollups alone.

A listing gives a thousand keys with a request. It says where each run is, what its `run.json` looks like, and how long
each of its files is, so that a run costs two objects more: its manifest, and the one small table that sums it up.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pipeprof.errors import RunError
from pipeprof.record.cache import cache_folder, forget, recall, remember
from pipeprof.record.objects import StorageError, below, object_name
from pipeprof.record.run import MANIFEST, MOST_BYTES, is_part_name, load
from pipeprof.record.run_objects import called, readable, storage_of
from pipeprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyarrow import fs

    from pipeprof.record.objects import Objects
    from pipeprof.record.run import Part, Run

Answer = TypeVar("Answer")

TABLE = "rollup"
DEEPEST = 6  # folders below the prefix, as in folders of this machine
HALF = f"only a part of it is there: it has no `{MANIFEST}`, which `pipeprof push` uploads last"
READERS = 8  # of a process, that wait for the network at the same time
_MOST_URLS = 32  # that were asked about last
_MOST_KNOWN = 1 << 28  # bytes
_TRIES = 2  # beside those of the client
_PAUSE_S = 0.5
_SETTLED_S = 60  # an object may change within the second of its time, which is as exact as a listing is
_MOST_ROLLUP = 1 << 28  # bytes; 16,384 ranks have 2 MB
_HASHED = re.compile(r"-[0-9a-f]{16}(?=\.parquet$)")


class Stored(NamedTuple):
    """A run below a prefix: its name there, its URL, and what the listing shows of it.

    `seen` differs when its manifest does; empty while it may still change unseen. `began_s`: time of its manifest.
    `sizes`: bytes by path below the run. `problem`: why it cannot be read, if that is known already.
    """

    name: str
    url: str
    seen: str
    began_s: float
    sizes: Mapping[str, int]
    problem: str = ""


def runs_below(url: str, deepest: int = DEEPEST) -> list[Stored]:
    """The runs below a prefix, or the run that it is, by name; a prefix that holds but files of tables is one, too.

    Raises UsageError for a URL that cannot be opened, RunError when nothing is there or the storage fails.
    """
    objects = storage_of(url)
    files = _retried(objects.every)
    if files is None:
        raise RunError(
            f"nothing is at `{objects.shown}`", "check the URL, or upload a run with `pipeprof push RUN URL`"
        )
    manifests = {name.rpartition("/")[0] for name in files if name.rpartition("/")[2] == MANIFEST}
    by_run: dict[str, dict[str, fs.FileInfo]] = {}
    for name, info in files.items():
        run_name = _run_of(name, manifests)
        if run_name is not None:
            by_run.setdefault(run_name, {})[name[len(run_name) + 1 :] if run_name else name] = info
    runs = (_stored(url, run_name, by_run[run_name]) for run_name in sorted(by_run) if _is_looked_at(run_name, deepest))
    return [one for one in runs if one is not None]


@contextlib.contextmanager
def glimpsed(root: Objects, stored: Stored) -> Iterator[Run]:
    """A run below `root` of which only `run.json` is here, for as long as the context, in which errors name its URL.

    Raises RunError for one that cannot be read, StorageError when the storage fails.
    """
    objects = root.below(stored.name)
    if stored.problem:
        raise RunError(stored.problem, "push it again, to another key")
    with tempfile.TemporaryDirectory(prefix="pipeprof-") as folder:
        run = Path(folder) / "run"
        with called(run, objects.shown):
            run.mkdir()
            run.joinpath(MANIFEST).write_bytes(_read(objects, MANIFEST, MOST_BYTES))
            yield load(run)


def add_rollup(root: Objects, stored: Stored, run: Run) -> None:
    """Read the table `rollup`, if there is one, into a run that is `glimpsed`.

    Raises RunError for a run that is damaged as far as its listing shows it, StorageError when the storage fails.
    """
    objects = root.below(stored.name)
    parts = readable(run, objects.shown)
    there = {name: _name_of(stored, name, part) for name, part in parts.items()}
    for name, part in parts.items():
        path = run.path / name
        if there[name] is None:
            raise RunError(f"damaged file `{path}`: it is not there with {part.bytes:,} bytes", "push it again")
        if not name.startswith(f"{TABLE}/"):
            continue
        data = _read(objects, there[name] or name, min(part.bytes, _MOST_ROLLUP))
        if hashlib.sha256(data).hexdigest() != part.sha256:
            raise RunError(f"damaged file `{path}`: it has another checksum than was noted", "push it again")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def each_run(
    url: str, runs: Sequence[Stored], read: Callable[[Objects, Stored], tuple[Answer, bool]], kind: type[Answer],
    *, what: str, readers: int = READERS, progress: Callable[[str], None] = lambda _text: None,
) -> list[Answer]:  # fmt: skip
    """What `read` says of each of the runs below a URL, and whether that lasts as long as the run is as it was.

    What lasts is kept in the cache under `what`, so that the next question needs nothing but the listing. `kind`: what
    an answer is read back as. So many `readers` at a time.
    """
    key = hashlib.sha256(f"{__version__} {url}".encode(errors="surrogatepass")).hexdigest()[:32]
    cache_file = cache_folder(what) / f"{key}.json"
    cached = recall(cache_file, dict[str, tuple[str, kind]], _MOST_KNOWN) or {}  # type: ignore[valid-type]
    lasting = {one.name: cached[one.name] for one in runs if one.seen and cached.get(one.name, ("",))[0] == one.seen}
    waiting = [one for one in runs if one.name not in lasting]
    answers = {name: answer for name, (_seen, answer) in lasting.items()}
    root = storage_of(url)
    try:
        with ThreadPoolExecutor(readers) as pool:
            asked = zip(waiting, pool.map(lambda one: read(root, one), waiting), strict=True)
            for number, (one, (answer, lasts)) in enumerate(asked, 1):
                progress(f"{number:,} of {len(waiting):,} runs that are new or changed")
                answers[one.name] = answer
                if lasts and one.seen:
                    lasting[one.name] = one.seen, answer
    finally:
        if waiting or len(lasting) < len(cached):
            remember(cache_file, lasting)
            forget(cache_file.parent, _MOST_URLS)
    return [answers[one.name] for one in runs]


def _run_of(name: str, manifests: set[str]) -> str | None:
    """The run that an object belongs to, the outermost; that of a half of one is found by the names of its files."""
    parts = name.split("/")
    for depth in range(len(parts)):
        if "/".join(parts[:depth]) in manifests:
            return "/".join(parts[:depth])
    for depth in (2, 4):  # `step/rows.parquet`, `step/rep=0/rank=0/part-00000.parquet`
        if len(parts) >= depth and is_part_name(_HASHED.sub("", "/".join(parts[-depth:]))):
            return "/".join(parts[:-depth])
    return None


def _is_looked_at(run_name: str, deepest: int) -> bool:
    parts = run_name.split("/") if run_name else []
    return len(parts) <= deepest and not any(part.startswith(".") and part.strip(".") for part in parts)


def _stored(url: str, run_name: str, files: Mapping[str, fs.FileInfo]) -> Stored | None:
    sizes = {name: info.size for name, info in files.items()}
    manifest = files.get(MANIFEST)
    parts = run_name.split("/") if run_name else []
    odd = any(part in ("", ".", "..") for part in parts)
    problem = "its key has an empty part, `.` or `..`, which other programs take for another key" if odd else ""
    newest = manifest or max(files.values(), key=lambda info: info.mtime_ns or 0)
    began_s = (newest.mtime_ns or 0) / 1e9
    if manifest is None or not manifest.size:  # an empty one is what an upload to Azure begins with
        return Stored(run_name, below(url, run_name), "", began_s, sizes, problem or HALF)
    lasting = manifest.mtime_ns and began_s < time.time() - _SETTLED_S
    seen = f"{manifest.size} {manifest.mtime_ns} {_digest(sizes)}" if lasting else ""
    return Stored(run_name, below(url, run_name), seen, began_s, sizes, problem)


def _digest(sizes: Mapping[str, int]) -> str:
    """Another one when a file came, went or has another length."""
    return hashlib.sha256(repr(sorted(sizes.items())).encode(errors="surrogatepass")).hexdigest()[:16]


def _name_of(stored: Stored, name: str, part: Part) -> str | None:
    """Under which name an object of this length is there: the one with its hash, or else its own."""
    named = object_name(name, part.sha256)
    return next((one for one in (named, name) if stored.sizes.get(one) == part.bytes), None)


def _read(objects: Objects, name: str, most: int) -> bytes:
    def got() -> bytes:
        data = objects.get(name, most)
        if data is None:
            raise RunError(
                f"`{name}` in `{objects.shown}` was removed after it was listed", "run the same command again"
            )
        return data

    return _retried(got)


def _retried(read: Callable[[], Answer]) -> Answer:
    for number in range(1, _TRIES):
        try:
            return read()
        except StorageError as error:
            if not error.passes:
                raise
            time.sleep(_PAUSE_S * number)
    return read()
